// IsNaN(x): whether x is not a number.

#include <cmath>

#include "graph/elementwise.h"

namespace mendel::ops::is_nan {
namespace {

constexpr ScalarFunction kIsNaN = {
    .name = "IsNaN",
    .real = [](std::span<const double> x,
               std::span<const double>) { return std::isnan(x[0]) ? 1.0 : 0.0; },
    .zero_at_zero = true};

OpDefinition Make() {
  OpDefinition op = UnaryOp<kIsNaN>();
  op.infer = &InferSameFloatToBool;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::is_nan
