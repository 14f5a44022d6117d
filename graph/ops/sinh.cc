// Sinh(x).

#include <cmath>

#include "graph/elementwise.h"

namespace mendel::ops::sinh {
namespace {

constexpr ScalarFunction kSinh = {
    .name = "Sinh",
    .real = [](std::span<const double> x, std::span<const double>) { return std::sinh(x[0]); },
    .zero_at_zero = true};

OpDefinition Make() {
  OpDefinition op = UnaryOp<kSinh>();
  op.sign = &SignOfFirst;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::sinh
