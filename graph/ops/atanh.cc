// Atanh(x), defined for -1 < x < 1.

#include <cmath>

#include "graph/elementwise.h"

namespace mendel::ops::atanh {
namespace {

constexpr ScalarFunction kAtanh = {
    .name = "Atanh",
    .real = [](std::span<const double> x, std::span<const double>) { return std::atanh(x[0]); },
    .zero_at_zero = true};

OpDefinition Make() {
  OpDefinition op = UnaryOp<kAtanh>();
  op.sample = [](Rng& rng) { return SampleUnaryIn(rng, -0.9, 0.9); };
  op.domain = {{.demand = Demand::kSameNode}};
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::atanh
