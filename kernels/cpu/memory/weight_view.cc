#include "kernels/cpu/memory/weight_view.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {

void DropSubnormals(float* weights, int64_t count) {
  ParallelRange(count, int64_t{1} << 14, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) weights[k] = WithoutSubnormal(weights[k]);
  });
}

Tensor WithoutSubnormals(const Tensor& weights) {
  if (weights.dtype() != DType::kF32) return weights;
  const std::span<const float> from = weights.As<float>();
  bool any = false;  // without an early end the loop is one of vectors
  for (const float weight : from) any |= weight != WithoutSubnormal(weight);
  if (!any) return weights;
  std::vector<std::byte> bytes(weights.bytes().begin(), weights.bytes().end());
  DropSubnormals(reinterpret_cast<float*>(bytes.data()), weights.size());
  return Tensor(weights.type(), std::move(bytes));
}

void ScaledWeights::WriteTo(float* to) const {
  static const std::vector<double> kOne = {1.0};
  const std::vector<double>& each = factors.empty() ? kOne : factors;
  const int64_t count = static_cast<int64_t>(values.size());
  const int64_t number = static_cast<int64_t>(each.size());
  MENDEL_CHECK(run > 0 && count % (run * number) == 0);
  constexpr int64_t kGrain = int64_t{1} << 14;
  values.Visit([&](const auto* from) {
    ParallelRange(count / run, std::max<int64_t>(1, kGrain / run), [&](int64_t begin, int64_t end) {
      int64_t k = begin % number;
      for (int64_t line = begin; line < end; ++line, k = k + 1 < number ? k + 1 : 0) {
        const double factor = each[static_cast<size_t>(k)];
        for (int64_t i = line * run; i < (line + 1) * run; ++i)
          to[i] = ScaledWeight(from[i], factor);
      }
    });
  });
}

}  // namespace mendel::cpu
