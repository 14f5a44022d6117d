// Tanh(x).

#include <cmath>

#include "graph/elementwise.h"

namespace mendel::ops::tanh {
namespace {

constexpr ScalarFunction kTanh = {
    .name = "Tanh",
    .real = [](std::span<const double> x, std::span<const double>) { return std::tanh(x[0]); },
    .zero_at_zero = true};

OpDefinition Make() {
  OpDefinition op = UnaryOp<kTanh>();
  op.sign = &SignOfFirst;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::tanh
