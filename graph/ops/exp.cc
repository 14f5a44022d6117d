// Exp(x) = e^x.

#include <cmath>

#include "graph/elementwise.h"

namespace mendel {
namespace {

constexpr ScalarFunction kExp = {.name = "Exp",
                                 .real = [](std::span<const double> x, std::span<const double>) { return std::exp(x[0]); }};

OpDefinition Make() { return UnaryOp<kExp>(); }

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel
