// Asinh(x).

#include <cmath>

#include "graph/elementwise.h"

namespace mendel::ops::asinh {
namespace {

constexpr ScalarFunction kAsinh = {
    .name = "Asinh",
    .real = [](std::span<const double> x, std::span<const double>) { return std::asinh(x[0]); },
    .zero_at_zero = true};

OpDefinition Make() {
  OpDefinition op = UnaryOp<kAsinh>();
  op.sign = &SignOfFirst;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::asinh
