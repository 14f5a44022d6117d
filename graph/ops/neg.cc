// Neg(x) = -x.

#include "graph/elementwise.h"

namespace mendel::ops::neg {
namespace {

struct NegMeaning {
  template <class S>
  static S At(const Reader<S>& in, const NodeView&, int, Index i) {
    return Negated(in(0, i));
  }
};

OpDefinition Make() {
  OpDefinition op = ElementwiseOp("Neg", 1);
  op.infer = &InferSameNumeric;
  op.meaning = MeaningOf<NegMeaning>();
  op.linear_inputs = &LinearInFirst;
  op.access = &AccessElementwiseSum;
  op.sample = &SampleUnaryNumeric;
  op.storage = StorageTypes::kU64;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::neg
