// Cosh(x).

#include <cmath>

#include "graph/elementwise.h"

namespace mendel {
namespace {

constexpr ScalarFunction kCosh = {.name = "Cosh",
                                  .real = [](std::span<const double> x, std::span<const double>) { return std::cosh(x[0]); }};

OpDefinition Make() { return UnaryOp<kCosh>(); }

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel
