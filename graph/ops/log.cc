// Log(x): the natural logarithm, of positive x.

#include "graph/elementwise.h"
#include "graph/functions.h"

namespace mendel::ops::log {
namespace {

OpDefinition Make() {
  OpDefinition op = UnaryOp<functions::kLog>();
  op.sample = [](Rng& rng) { return SampleUnaryIn(rng, 0.125, 8); };
  op.domain = {{.demand = Demand::kPositive}};
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::log
