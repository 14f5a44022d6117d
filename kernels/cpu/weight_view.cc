#include "kernels/cpu/weight_view.h"

#include <algorithm>
#include <memory>

#include "base/check.h"
#include "kernels/cpu/program.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {

Tensor ScaledTensor(const Shape& shape, const WeightView& weights, const std::vector<double>& factors, int64_t run) {
  const TensorType type{DType::kF32, shape};
  const int64_t count = NumElements(shape);
  const int64_t number = static_cast<int64_t>(factors.size());
  MENDEL_CHECK(number > 0 && run > 0 && count % (run * number) == 0 && static_cast<int64_t>(weights.size()) == count);
  const auto bytes = std::make_shared<AlignedBytes>(ByteSize(type));
  float* const to = reinterpret_cast<float*>(bytes->data());
  constexpr int64_t kGrain = int64_t{1} << 14;
  weights.Visit([&](const auto* from) {
    ParallelRange(count / run, std::max<int64_t>(1, kGrain / run), [&](int64_t begin, int64_t end) {
      int64_t k = begin % number;
      for (int64_t line = begin; line < end; ++line, k = k + 1 < number ? k + 1 : 0) {
        const double factor = factors[static_cast<size_t>(k)];
        for (int64_t i = line * run; i < (line + 1) * run; ++i) to[i] = ScaledWeight(from[i], factor);
      }
    });
  });
  return Tensor(type, std::span<const std::byte>(bytes->data(), static_cast<size_t>(bytes->size())), bytes);
}

}  // namespace mendel::cpu
