// The architectures that every emitted text is compiled for where NVRTC is found.
#ifndef MENDEL_KERNELS_CUDA_NVRTC_ARCHITECTURES_H_
#define MENDEL_KERNELS_CUDA_NVRTC_ARCHITECTURES_H_

#include <array>

namespace mendel::cuda {

/// Turing, Ampere, Hopper and both Blackwells: 90 is sm_90.
inline constexpr std::array kCompiledArchitectures = {75, 80, 90, 100, 120};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_NVRTC_ARCHITECTURES_H_
