// Ceil(x): the smallest integer not below x.

#include <cmath>

#include "graph/elementwise.h"

namespace mendel::ops::ceil {
namespace {

constexpr ScalarFunction kCeil = {
    .name = "Ceil",
    .real = [](std::span<const double> x, std::span<const double>) { return std::ceil(x[0]); },
    .zero_at_zero = true};

OpDefinition Make() {
  OpDefinition op = UnaryOp<kCeil>();
  op.sample = [](Rng& rng) { return SampleUnaryIn(rng, -6, 6); };
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::ceil
