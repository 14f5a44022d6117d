// TF32, for the fakes of libraries that multiply in it.
#ifndef MENDEL_KERNELS_CUDA_TESTING_FAKE_TF32_H_
#define MENDEL_KERNELS_CUDA_TESTING_FAKE_TF32_H_

#include <bit>
#include <cmath>
#include <cstdint>

namespace mendel::cuda {

/// f32 with ten explicit bits of significand: to nearest, ties to even. NaN stays one.
inline float RoundedToTf32(float value) {
  if (std::isnan(value)) return value;
  constexpr uint32_t kDropped = 13;
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = bits + (uint32_t{1} << (kDropped - 1)) - 1 + (bits >> kDropped & 1);
  return std::bit_cast<float>(rounded >> kDropped << kDropped);
}

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TESTING_FAKE_TF32_H_
