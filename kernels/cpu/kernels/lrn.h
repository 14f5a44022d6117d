// Local response normalization across channels, f32, row-major.
#ifndef MENDEL_KERNELS_CPU_KERNELS_LRN_H_
#define MENDEL_KERNELS_CPU_KERNELS_LRN_H_

#include <cstdint>
#include <memory>

#include "kernels/cpu/kernels/kernel.h"

namespace mendel::cpu {

/// x / (bias + alpha / size * s)^beta, s the sum of squares over channels c - (size - 1) / 2 up to
/// c + size / 2. The tensors are [images, channels, plane].
struct LrnProblem {
  Place from, to;
  int64_t images = 1;
  int64_t channels = 1;
  int64_t plane = 1;
  int64_t size = 1;
  double alpha = 0;
  double beta = 0;
  double bias = 1;
};

std::unique_ptr<Kernel> MakeLrnKernel(const LrnProblem& problem);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_KERNELS_LRN_H_
