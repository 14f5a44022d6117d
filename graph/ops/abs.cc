// Abs(x) = |x|; the most negative integer stays, as wrapping gives.

#include <cmath>

#include "graph/elementwise.h"

namespace mendel {
namespace {

constexpr ScalarFunction kAbs = {
    .name = "Abs",
    .real = [](std::span<const double> x, std::span<const double>) { return std::abs(x[0]); },
    .integer = [](std::span<const int64_t> x, std::span<const double>) { return x[0] < 0 ? Negated(x[0]) : x[0]; },
    .zero_at_zero = true};

OpDefinition Make() { return UnaryOp<kAbs>(); }

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel
