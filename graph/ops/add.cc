// Add(a, b) = a + b with NumPy broadcasting.

#include "graph/op_helpers.h"

namespace mendel {
namespace {

struct AddMeaning {
  template <class S>
  static S At(const Reader<S>& in, const NodeView&, int, Index i) {
    return in.Broadcast(0, i) + in.Broadcast(1, i);
  }
};

OpDefinition Make() {
  OpDefinition op;
  op.name = "Add";
  op.min_inputs = op.max_inputs = 2;
  op.infer = &InferBroadcast;
  op.meaning = MeaningOf<AddMeaning>();
  op.restrict = &RestrictElementwise;
  op.access = &AccessElementwiseSum;
  op.sample = &SampleBinary;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel
