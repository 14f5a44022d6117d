// Or(a, b) of Booleans: a + b - a b, since they are 0 and 1.

#include "graph/elementwise.h"

namespace mendel::ops::logical_or {
namespace {

struct OrMeaning {
  template <class S>
  static S At(const Reader<S>& in, const NodeView&, int, Index i) {
    const S a = in.Broadcast(0, i);
    const S b = in.Broadcast(1, i);
    return a + b - a * b;
  }
};

OpDefinition Make() {
  OpDefinition op = ElementwiseOp("Or", 2);
  op.infer = &InferBroadcastBool;
  op.meaning = MeaningOf<OrMeaning>();
  op.sample = &SampleBinaryBool;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::logical_or
