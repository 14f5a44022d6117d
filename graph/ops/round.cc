// Round(x): to the nearest integer, halves to the even one.

#include <cmath>

#include "graph/elementwise.h"

namespace mendel::ops::round {
namespace {

constexpr ScalarFunction kRound = {
    .name = "Round",
    .real = [](std::span<const double> x, std::span<const double>) { return std::nearbyint(x[0]); },
    .zero_at_zero = true};

OpDefinition Make() {
  OpDefinition op = UnaryOp<kRound>();
  op.sample = [](Rng& rng) { return SampleUnaryIn(rng, -6, 6); };
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::round
