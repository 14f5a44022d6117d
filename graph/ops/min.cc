// Min(a, b), NaN when either is. (onnx/ chains more operands.) One symmetric oracle: Min(a, b) = Min(b, a) and Min(a, a) = a.

#include <algorithm>
#include <cmath>

#include "graph/elementwise.h"

namespace mendel {
namespace {

constexpr ScalarFunction kMin = {
    .name = "Min",
    .real = [](std::span<const double> x, std::span<const double>) { return x[0] < x[1] || std::isnan(x[0]) ? x[0] : x[1]; },
    .integer = [](std::span<const int64_t> x, std::span<const double>) { return std::min(x[0], x[1]); },
    .symmetric = true};

OpDefinition Make() { return BinaryOp<kMin>(); }

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel
