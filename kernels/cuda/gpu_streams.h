// These checks cover what the backend does on a GPU besides Run: times, the streams and memory of a
// caller, and the device's conditions.
#ifndef MENDEL_KERNELS_CUDA_GPU_STREAMS_H_
#define MENDEL_KERNELS_CUDA_GPU_STREAMS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/backend.h"

namespace mendel::cuda {

/// Returns "" if TimeRun's outputs are right, cold and warm, and its times are possible. Prints the
/// times and the device's conditions.
absl::StatusOr<std::string> WrongTimes(const Backend& backend);

/// Returns "" if runs on two streams with device memory compute what the graph means, and a later
/// run on host memory does, too.
absl::StatusOr<std::string> WrongOnStreams(const Backend& backend);

/// Returns "" after it printed what a run costs besides its kernels (replay_cost.h), for plans of
/// few and of many launches.
absl::StatusOr<std::string> WrongReplays(const Backend& backend);

/// Returns "" if programs with branches, replayed side by side, yield the same bits as one launch
/// after the other, run after run. Sets MENDEL_CUDA_EXPERIMENTS meanwhile.
absl::StatusOr<std::string> WrongBranches(const Backend& backend, uint64_t seed);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_GPU_STREAMS_H_
