// Graphs on the fake driver, for tests: lowered, run, compared with their meaning.
#ifndef MENDEL_KERNELS_CUDA_DEVICE_CASE_H_
#define MENDEL_KERNELS_CUDA_DEVICE_CASE_H_

#include <cmath>
#include <string>
#include <vector>

#include "base/status.h"
#include "graph/evaluate.h"
#include "graph/graph.h"
#include "kernels/cuda/backend/executable.h"
#include "kernels/cuda/backend/program.h"
#include "kernels/cuda/fake/fake_driver.h"

namespace mendel::cuda {

/// Text is its own image.
inline absl::StatusOr<std::vector<char>> TextImage(const std::string& text) {
  return std::vector<char>(text.c_str(), text.c_str() + text.size() + 1);
}

/// "" when `got` is `expected` up to `tolerance` of the largest element, or the first element that is not.
inline std::string Difference(const HostValue& expected, const Tensor& got, double tolerance) {
  const Tensor rounded = expected.ToTensor();
  double largest = 1;
  for (int64_t k = 0; k < got.size(); ++k) {
    if (std::isfinite(rounded.DoubleAt(k))) largest = std::max(largest, std::abs(rounded.DoubleAt(k)));
  }
  for (int64_t k = 0; k < got.size(); ++k) {
    const double a = rounded.DoubleAt(k), b = got.DoubleAt(k);
    if ((std::isnan(a) && std::isnan(b)) || a == b) continue;
    if (IsFloat(got.dtype()) && std::abs(a - b) <= tolerance * largest) continue;
    return Cat("element ", k, " is ", b, ", not ", a);
  }
  return "";
}

/// Rounding of a kernel in this dtype, relative to the largest element.
inline double ToleranceOf(DType dtype) {
  return dtype == DType::kBF16 ? 1.0 / 64 : (dtype == DType::kF16 ? 1.0 / 512 : (dtype == DType::kF64 ? 1e-12 : 2e-5));
}

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_DEVICE_CASE_H_
