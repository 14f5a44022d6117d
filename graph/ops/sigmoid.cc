// Sigmoid(x) = 1 / (1 + e^-x). Never zero: nothing is pinned.

#include <cmath>

#include "graph/elementwise.h"

namespace mendel::ops::sigmoid {
namespace {

constexpr ScalarFunction kSigmoid = {
    .name = "Sigmoid", .real = [](std::span<const double> x, std::span<const double>) {
      const double e = std::exp(-std::abs(x[0]));
      return x[0] >= 0 ? 1 / (1 + e) : e / (1 + e);
    }};

OpDefinition Make() {
  OpDefinition op = UnaryOp<kSigmoid>();
  op.sign = &SignPositive;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::sigmoid
