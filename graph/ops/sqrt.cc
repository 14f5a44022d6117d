// Sqrt(x), of x >= 0.

#include <cmath>

#include "graph/elementwise.h"

namespace mendel {
namespace {

constexpr ScalarFunction kSqrt = {.name = "Sqrt",
                                  .real = [](std::span<const double> x, std::span<const double>) { return std::sqrt(x[0]); },
                                  .zero_at_zero = true};

OpDefinition Make() {
  OpDefinition op = UnaryOp<kSqrt>();
  op.sample = [](Rng& rng) { return SampleUnaryIn(rng, 0, 8); };
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel
