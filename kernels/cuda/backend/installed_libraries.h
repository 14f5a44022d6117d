// The libraries of this machine whose calls the backend offers, and the tiled kernels of ours,
// which are offered like one.
#ifndef MENDEL_KERNELS_CUDA_BACKEND_INSTALLED_LIBRARIES_H_
#define MENDEL_KERNELS_CUDA_BACKEND_INSTALLED_LIBRARIES_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "kernels/cuda/backend/library_groups.h"

namespace mendel::cuda {

/// Bytes of workspace that one call may take: MENDEL_CUDA_WORKSPACE_MIB of the environment, 0 to
/// 1048576, or 256 MiB. InvalidArgument where that is no such number.
absl::StatusOr<int64_t> WorkspaceLimit();

/// Algorithms of a node and kind that a library offers: MENDEL_CUDA_ALGORITHMS of the environment,
/// 1 to kMostOffered, `all` (kEveryEngine), or kOffered. InvalidArgument where that is no such
/// number.
absl::StatusOr<size_t> OfferedAlgorithms();

/// Seconds that cuDNN may take in a process to compile engines while algorithms are searched:
/// MENDEL_CUDA_COMPILE_SECONDS of the environment, 0 to 86400, or 10. InvalidArgument where that is
/// no such number.
absl::StatusOr<double> CompileSeconds();

/// For device 0 of the driver, which is there; opened once in a process, whose primary context is
/// kept from then on (KeepPrimaryContext). A library that is absent or cannot be used is left out
/// ('mendel doctor' says why).
std::span<const CallLibrary* const> InstalledLibraries();

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_BACKEND_INSTALLED_LIBRARIES_H_
