// Sub(a, b) = a - b with NumPy broadcasting.

#include "graph/elementwise.h"

namespace mendel::ops::sub {
namespace {

struct SubMeaning {
  template <class S>
  static S At(const Reader<S>& in, const NodeView&, int, Index i) {
    return Minus(in.Broadcast(0, i), in.Broadcast(1, i));
  }
};

OpDefinition Make() {
  OpDefinition op = ElementwiseOp("Sub", 2);
  op.infer = &InferBroadcastNumeric;
  op.meaning = MeaningOf<SubMeaning>();
  op.access = &AccessElementwiseSum;
  op.sample = &SampleBinaryNumeric;
  op.storage = StorageTypes::kU64;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::sub
