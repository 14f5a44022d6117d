// A window plan describes any direct convolution that slides a window over up to three dimensions.
#ifndef MENDEL_KERNELS_CPU_KERNELS_WINDOW_PLAN_H_
#define MENDEL_KERNELS_CPU_KERNELS_WINDOW_PLAN_H_

#include <cstdint>

#include "kernels/cpu/kernels/direct_kernels.h"

namespace mendel::cpu {

/// Missing dimensions come first and have extent one. Channels of source and destination lie in
/// whole vectors.
struct WindowPlan {
  const DirectIsa* isa = nullptr;
  int64_t batch = 1;
  int64_t in[3] = {1, 1, 1};
  int64_t out[3] = {1, 1, 1};
  int64_t taps[3] = {1, 1, 1};
  int64_t pad[3] = {0, 0, 0};  ///< before
  int64_t stride[3] = {1, 1, 1};
  int64_t dilation[3] = {1, 1, 1};
  WinogradStrides src{};
  WinogradStrides dst{};
  int64_t shares = 1;  ///< threads

  int64_t Taps() const { return taps[0] * taps[1] * taps[2]; }
};

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_KERNELS_WINDOW_PLAN_H_
