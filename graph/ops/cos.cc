// Cos(x), x in radians.

#include <cmath>

#include "graph/elementwise.h"

namespace mendel::ops::cos {
namespace {

constexpr ScalarFunction kCos = {
    .name = "Cos",
    .real = [](std::span<const double> x, std::span<const double>) { return std::cos(x[0]); }};

OpDefinition Make() { return UnaryOp<kCos>(); }

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::cos
