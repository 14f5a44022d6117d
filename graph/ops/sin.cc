// Sin(x), x in radians.

#include <cmath>

#include "graph/elementwise.h"

namespace mendel::ops::sin {
namespace {

constexpr ScalarFunction kSin = {
    .name = "Sin",
    .real = [](std::span<const double> x, std::span<const double>) { return std::sin(x[0]); },
    .zero_at_zero = true};

OpDefinition Make() { return UnaryOp<kSin>(); }

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::sin
