// Sign(x): -1, 0 or 1.

#include "graph/elementwise.h"

namespace mendel::ops::sign {
namespace {

constexpr ScalarFunction kSign = {
    .name = "Sign",
    .real = [](std::span<const double> x,
               std::span<const double>) { return x[0] > 0 ? 1.0 : (x[0] < 0 ? -1.0 : x[0]); },
    .integer = [](std::span<const int64_t> x,
                  std::span<const double>) { return int64_t{x[0] > 0} - int64_t{x[0] < 0}; },
    .zero_at_zero = true};

OpDefinition Make() { return UnaryOp<kSign>(); }

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::sign
