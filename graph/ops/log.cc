// Log(x): the natural logarithm, of positive x.

#include <cmath>

#include "graph/elementwise.h"

namespace mendel {
namespace {

constexpr ScalarFunction kLog = {.name = "Log",
                                 .real = [](std::span<const double> x, std::span<const double>) { return std::log(x[0]); }};

OpDefinition Make() {
  OpDefinition op = UnaryOp<kLog>();
  op.sample = [](Rng& rng) { return SampleUnaryIn(rng, 0.125, 8); };
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel
