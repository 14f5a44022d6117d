// Floor(x): the largest integer not above x.

#include <cmath>

#include "graph/elementwise.h"

namespace mendel::ops::floor {
namespace {

constexpr ScalarFunction kFloor = {
    .name = "Floor",
    .real = [](std::span<const double> x, std::span<const double>) { return std::floor(x[0]); },
    .zero_at_zero = true};

OpDefinition Make() {
  OpDefinition op = UnaryOp<kFloor>();
  op.sample = [](Rng& rng) { return SampleUnaryIn(rng, -6, 6); };
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::floor
