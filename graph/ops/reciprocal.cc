// Reciprocal(x) = 1 / x: exact division, so that x * Reciprocal(y) = x / y.

#include "graph/elementwise.h"

namespace mendel {
namespace {

struct ReciprocalMeaning {
  template <class S>
  static S At(const Reader<S>& in, const NodeView&, int, Index i) {
    return in.Divide(in.FromInteger(1), in(0, i));
  }
};

OpDefinition Make() {
  OpDefinition op = ElementwiseOp("Reciprocal", 1);
  op.infer = &InferSameFloat;
  op.meaning = MeaningOf<ReciprocalMeaning>();
  op.sample = [](Rng& rng) { return SampleUnaryIn(rng, 0.5, 2); };
  op.domain = {{.demand = Demand::kNonZero, .group = "denominator"}};
  op.sign = &SignOfFirst;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel
