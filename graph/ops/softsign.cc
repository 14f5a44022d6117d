// Softsign(x) = x / (1 + |x|).

#include <cmath>

#include "graph/elementwise.h"

namespace mendel::ops::softsign {
namespace {

constexpr ScalarFunction kSoftsign = {
    .name = "Softsign",
    .real = [](std::span<const double> x,
               std::span<const double>) { return x[0] / (1 + std::abs(x[0])); },
    .zero_at_zero = true};

OpDefinition Make() {
  OpDefinition op = UnaryOp<kSoftsign>();
  op.sign = &SignOfFirst;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::softsign
