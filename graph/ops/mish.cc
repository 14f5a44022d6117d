// Mish(x) = x tanh(log(1 + e^x)).

#include <algorithm>
#include <cmath>

#include "graph/elementwise.h"

namespace mendel::ops::mish {
namespace {

constexpr ScalarFunction kMish = {
    .name = "Mish",
    .real =
        [](std::span<const double> x, std::span<const double>) {
          return x[0] * std::tanh(std::max(x[0], 0.0) + std::log1p(std::exp(-std::abs(x[0]))));
        },
    .zero_at_zero = true};

OpDefinition Make() { return UnaryOp<kMish>(); }

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::mish
