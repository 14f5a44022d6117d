#include "optimizer/output_check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "graph/tensor.h"
#include "optimizer/numeric_gate.h"
#include "runtime/allowed_error.h"

namespace mendel {
namespace {

Tensor View(const TensorType& type, const std::vector<std::byte>& bytes) {
  return Tensor(type, std::span<const std::byte>(bytes), std::shared_ptr<const void>());
}

double ShareUnequal(const Tensor& want, const Tensor& have) {
  int64_t unequal = 0;
  for (int64_t i = 0; i < want.size(); ++i) unequal += want.IntAt(i) != have.IntAt(i);
  return static_cast<double>(unequal) / static_cast<double>(std::max<int64_t>(1, want.size()));
}

double RelativeDifference(const Tensor& want, const Tensor& have) {
  double scale = kSmallestScale, largest = 0;
  for (int64_t i = 0; i < want.size(); ++i) {
    const double a = want.DoubleAt(i), b = have.DoubleAt(i);
    if (std::isfinite(a)) scale = std::max(scale, std::abs(a));
    if (std::isfinite(a) && std::isfinite(b)) {
      largest = std::max(largest, std::abs(a - b));
    } else if (a != b && !(std::isnan(a) && std::isnan(b))) {
      return std::numeric_limits<double>::infinity();
    }
  }
  return largest / scale;
}

}  // namespace

double OutputTolerance(DType dtype, Numerics numerics) {
  constexpr double kIntegralShare = 1.0 / 64;
  const double f32 = numerics == Numerics::kStrict ? 1e-4 : 1e-3;
  const double rounding = std::max(f32, 2 * AllowedError(numerics));
  if (IsIntegral(dtype)) return kIntegralShare;
  if (IsFloat8(dtype)) return std::max(rounding, 0.25);  // two steps of e5m2, one of them a tie
  if (dtype == DType::kF16) return std::max(rounding, 8 * 0x1p-11);
  if (dtype == DType::kBF16) return std::max(rounding, 8 * 0x1p-8);
  return rounding;
}

OutputDifference CompareOutputs(const Graph& graph, const OutputBytes& want,
                                const OutputBytes& have, Numerics numerics) {
  OutputDifference result;
  double worst = -1;
  for (size_t k = 0; k < graph.outputs().size(); ++k) {
    const TensorType& type = graph.type(graph.outputs()[k].value);
    if (want[k] == have[k]) continue;
    const Tensor a = View(type, want[k]), b = View(type, have[k]);
    const double error = IsIntegral(type.dtype) ? ShareUnequal(a, b) : RelativeDifference(a, b);
    const double excess = error / OutputTolerance(type.dtype, numerics);
    if (excess <= worst) continue;
    worst = excess;
    result = {error, !(excess <= 1), graph.outputs()[k].name};
  }
  return result;
}

}  // namespace mendel
