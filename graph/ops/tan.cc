// Tan(x), x in radians.

#include <cmath>

#include "graph/elementwise.h"

namespace mendel::ops::tan {
namespace {

constexpr ScalarFunction kTan = {
    .name = "Tan",
    .real = [](std::span<const double> x, std::span<const double>) { return std::tan(x[0]); },
    .zero_at_zero = true};

OpDefinition Make() {
  OpDefinition op = UnaryOp<kTan>();
  op.domain = {{.demand = Demand::kSameNode}};
  op.sample = [](Rng& rng) { return SampleUnaryIn(rng, -1, 1); };
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::tan
