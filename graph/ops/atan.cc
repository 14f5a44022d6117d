// Atan(x).

#include <cmath>

#include "graph/elementwise.h"

namespace mendel::ops::atan {
namespace {

constexpr ScalarFunction kAtan = {
    .name = "Atan",
    .real = [](std::span<const double> x, std::span<const double>) { return std::atan(x[0]); },
    .zero_at_zero = true};

OpDefinition Make() {
  OpDefinition op = UnaryOp<kAtan>();
  op.sign = &SignOfFirst;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::atan
