// Xor(a, b) of Booleans: a + b - 2 a b, since they are 0 and 1.

#include "graph/elementwise.h"

namespace mendel::ops::logical_xor {
namespace {

struct XorMeaning {
  template <class S>
  static S At(const Reader<S>& in, const NodeView&, int, Index i) {
    const S a = in.Broadcast(0, i);
    const S b = in.Broadcast(1, i);
    return a + b - in.FromInteger(2) * a * b;
  }
};

OpDefinition Make() {
  OpDefinition op = ElementwiseOp("Xor", 2);
  op.infer = &InferBroadcastBool;
  op.meaning = MeaningOf<XorMeaning>();
  op.sample = &SampleBinaryBool;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::logical_xor
