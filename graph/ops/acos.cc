// Acos(x), of -1 <= x <= 1.

#include <cmath>

#include "graph/elementwise.h"

namespace mendel::ops::acos {
namespace {

constexpr ScalarFunction kAcos = {
    .name = "Acos",
    .real = [](std::span<const double> x, std::span<const double>) { return std::acos(x[0]); }};

OpDefinition Make() {
  OpDefinition op = UnaryOp<kAcos>();
  op.sample = [](Rng& rng) { return SampleUnaryIn(rng, -1, 1); };
  op.domain = {{.demand = Demand::kSameNode}};
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::acos
