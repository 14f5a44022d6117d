// Cosh(x).

#include <cmath>

#include "graph/elementwise.h"

namespace mendel::ops::cosh {
namespace {

constexpr ScalarFunction kCosh = {
    .name = "Cosh",
    .real = [](std::span<const double> x, std::span<const double>) { return std::cosh(x[0]); }};

OpDefinition Make() {
  OpDefinition op = UnaryOp<kCosh>();
  op.sign = &SignPositive;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::cosh
