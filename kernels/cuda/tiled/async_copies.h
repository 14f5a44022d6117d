// Asynchronous copies from global to shared memory, as text: cp.async, which needs no registers on
// the way.
//
// PTX ISA, "Data Movement and Conversion Instructions: Asynchronous copy"; sm_80 and newer.
#ifndef MENDEL_KERNELS_CUDA_TILED_ASYNC_COPIES_H_
#define MENDEL_KERNELS_CUDA_TILED_ASYNC_COPIES_H_

#include <string_view>

namespace mendel::cuda {

inline constexpr int kAsyncArchitecture = 80;
inline constexpr int kAsyncBytes = 16;  ///< of a copy

/// Declares, once a module, after PreambleText():
///   CopyAsync(To* to, const From* from, bool there): objects of kAsyncBytes from global to shared
///   memory, or zeros. AwaitCopies(): what this thread has copied is there; for the other threads
///   after a barrier.
std::string_view AsyncCopiesText();

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TILED_ASYNC_COPIES_H_
