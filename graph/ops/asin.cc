// Asin(x), of -1 <= x <= 1.

#include <cmath>

#include "graph/elementwise.h"

namespace mendel::ops::asin {
namespace {

constexpr ScalarFunction kAsin = {
    .name = "Asin",
    .real = [](std::span<const double> x, std::span<const double>) { return std::asin(x[0]); },
    .zero_at_zero = true};

OpDefinition Make() {
  OpDefinition op = UnaryOp<kAsin>();
  op.sample = [](Rng& rng) { return SampleUnaryIn(rng, -1, 1); };
  op.domain = {{.demand = Demand::kSameNode}};
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::asin
