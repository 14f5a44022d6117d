// Logical conjunction: And(a, b) of Booleans is the product, since they are 0 and 1.

#include "graph/elementwise.h"

namespace mendel::ops::logical_and {
namespace {

struct AndMeaning {
  template <class S>
  static S At(const Reader<S>& in, const NodeView&, int, Index i) {
    return in.Broadcast(0, i) * in.Broadcast(1, i);
  }
};

OpDefinition Make() {
  OpDefinition op = ElementwiseOp("And", 2);
  op.infer = &InferBroadcastBool;
  op.meaning = MeaningOf<AndMeaning>();
  op.access = &AccessElementwiseProduct;
  op.sample = &SampleBinaryBool;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::logical_and
