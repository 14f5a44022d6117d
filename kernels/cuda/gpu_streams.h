// What the backend does on a GPU besides Run: times, the streams and memory of a caller, the device's conditions.
#ifndef MENDEL_KERNELS_CUDA_GPU_STREAMS_H_
#define MENDEL_KERNELS_CUDA_GPU_STREAMS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/backend.h"

namespace mendel::cuda {

/// "" when TimeRun's outputs are right, cold and warm, and the times can be; prints them and the device's conditions.
absl::StatusOr<std::string> WrongTimes(const Backend& backend);

/// "" when runs on two streams with device memory give what the graph means, and a run of the host afterwards, too.
absl::StatusOr<std::string> WrongOnStreams(const Backend& backend);

/// "", after a line on what a run costs besides its kernels (replay_cost.h) for plans of few and of many launches.
absl::StatusOr<std::string> WrongReplays(const Backend& backend);

/// "" when programs with branches, replayed side by side, yield the same bits as one launch after the other, run after run. Sets
/// MENDEL_CUDA_BRANCHES meanwhile.
absl::StatusOr<std::string> WrongBranches(const Backend& backend, uint64_t seed);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_GPU_STREAMS_H_
