// Sqrt(x), of x >= 0.

#include "graph/elementwise.h"
#include "graph/functions.h"

namespace mendel::ops::sqrt {
namespace {

OpDefinition Make() {
  OpDefinition op = UnaryOp<functions::kSqrt>();
  op.sample = [](Rng& rng) { return SampleUnaryIn(rng, 0, 8); };
  op.domain = {{.demand = Demand::kNonNegative}};
  op.sign = &SignOfFirst;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::sqrt
