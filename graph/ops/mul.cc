// Mul(a, b) = a * b with NumPy broadcasting.

#include "graph/elementwise.h"

namespace mendel::ops::mul {
namespace {

struct MulMeaning {
  template <class S>
  static S At(const Reader<S>& in, const NodeView&, int, Index i) {
    return Times(in.Broadcast(0, i), in.Broadcast(1, i));
  }
};

OpDefinition Make() {
  OpDefinition op;
  op.name = "Mul";
  op.min_inputs = op.max_inputs = 2;
  op.infer = &InferBroadcastNumeric;
  op.meaning = MeaningOf<MulMeaning>();
  op.linear_inputs = &LinearInAll;
  op.restrict = &RestrictElementwise;
  op.access = &AccessElementwiseProduct;
  op.sample = &SampleBinaryNumeric;
  op.sign = [](const NodeView& node, std::span<const Sign> inputs, bool one_operand) {
    // A square.
    return one_operand ? std::max(Sign::kNonNegative, inputs[0])
                       : SignLeast(node, inputs, one_operand);
  };
  op.storage = StorageTypes::kU64;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::mul
