// Acosh(x), of x >= 1.

#include <cmath>

#include "graph/elementwise.h"

namespace mendel::ops::acosh {
namespace {

constexpr ScalarFunction kAcosh = {
    .name = "Acosh",
    .real = [](std::span<const double> x, std::span<const double>) { return std::acosh(x[0]); }};

OpDefinition Make() {
  OpDefinition op = UnaryOp<kAcosh>();
  op.sample = [](Rng& rng) { return SampleUnaryIn(rng, 1, 4); };
  op.domain = {{.demand = Demand::kSameNode}};
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::acosh
