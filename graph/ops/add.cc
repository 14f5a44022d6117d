// Add(a, b) = a + b with NumPy broadcasting.

#include "graph/elementwise.h"

namespace mendel::ops::add {
namespace {

struct AddMeaning {
  template <class S>
  static S At(const Reader<S>& in, const NodeView&, int, Index i) {
    return Plus(in.Broadcast(0, i), in.Broadcast(1, i));
  }
};

OpDefinition Make() {
  OpDefinition op;
  op.name = "Add";
  op.min_inputs = op.max_inputs = 2;
  op.infer = &InferBroadcastNumeric;
  op.meaning = MeaningOf<AddMeaning>();
  op.restrict = &RestrictElementwise;
  op.access = &AccessElementwiseSum;
  op.sample = &SampleBinaryNumeric;
  op.sign = [](const NodeView&, std::span<const Sign> inputs, bool) {
    return std::min(inputs[0], inputs[1]) == Sign::kUnknown ? Sign::kUnknown
                                                            : std::max(inputs[0], inputs[1]);
  };
  op.storage = StorageTypes::kU64;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::add
