// Erf(x): Gauss' error function.

#include <cmath>

#include "graph/elementwise.h"

namespace mendel::ops::erf {
namespace {

constexpr ScalarFunction kErf = {
    .name = "Erf",
    .real = [](std::span<const double> x, std::span<const double>) { return std::erf(x[0]); },
    .zero_at_zero = true};

OpDefinition Make() {
  OpDefinition op = UnaryOp<kErf>();
  op.sign = &SignOfFirst;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::erf
