// Checks of the buffers that a caller gives a run against the program's inputs and outputs.
#ifndef MENDEL_KERNELS_CUDA_BACKEND_BUFFER_CHECKS_H_
#define MENDEL_KERNELS_CUDA_BACKEND_BUFFER_CHECKS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "kernels/cuda/backend/program.h"

namespace mendel::cuda {

/// Checks number, sizes and alignment (to the element size) of host buffers. InvalidArgument names
/// the first wrong one; `what` is "input" or "output".
absl::Status CheckBuffers(std::string_view what, const std::vector<DeviceCopy>& copies,
                          std::span<const std::span<const std::byte>> buffers);
absl::Status CheckBuffers(std::string_view what, const std::vector<DeviceCopy>& copies,
                          std::span<const std::span<std::byte>> buffers);

/// Checks addresses on the device, whose sizes are unknown.
absl::Status CheckAddresses(std::string_view what, const std::vector<DeviceCopy>& copies,
                            std::span<const uint64_t> addresses);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_BACKEND_BUFFER_CHECKS_H_
