// HardSwish(x) = x max(0, min(1, x / 6 + 1/2)).

#include <algorithm>

#include "graph/elementwise.h"

namespace mendel::ops::hard_swish {
namespace {

constexpr ScalarFunction kHardSwish = {.name = "HardSwish",
                                       .real =
                                           [](std::span<const double> x, std::span<const double>) {
                                             return x[0] *
                                                    std::max(0.0, std::min(1.0, x[0] / 6 + 0.5));
                                           },
                                       .zero_at_zero = true};

OpDefinition Make() { return UnaryOp<kHardSwish>(); }

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::hard_swish
