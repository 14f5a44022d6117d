// Softplus(x) = log(1 + e^x), written so that neither end overflows.

#include <algorithm>
#include <cmath>

#include "graph/elementwise.h"

namespace mendel::ops::softplus {
namespace {

constexpr ScalarFunction kSoftplus = {
    .name = "Softplus", .real = [](std::span<const double> x, std::span<const double>) {
      return std::max(x[0], 0.0) + std::log1p(std::exp(-std::abs(x[0])));
    }};

OpDefinition Make() {
  OpDefinition op = UnaryOp<kSoftplus>();
  op.sign = &SignPositive;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::softplus
