// Not(c) = 1 - c of a Boolean, since it is 0 or 1.

#include "graph/elementwise.h"

namespace mendel::ops::logical_not {
namespace {

struct NotMeaning {
  template <class S>
  static S At(const Reader<S>& in, const NodeView&, int, Index i) {
    return in.FromInteger(1) - in(0, i);
  }
};

OpDefinition Make() {
  OpDefinition op = ElementwiseOp("Not", 1);
  op.infer = &InferBroadcastBool;
  op.meaning = MeaningOf<NotMeaning>();
  op.sample = [](Rng& rng) {
    OpSample sample = SampleUnary(rng);
    sample.inputs[0].dtype = DType::kBool;
    return sample;
  };
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::logical_not
