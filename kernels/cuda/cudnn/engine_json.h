// The part of an execution plan's JSON that says which engine it is, apart from the graph and the
// device that it was made for.
#ifndef MENDEL_KERNELS_CUDA_CUDNN_ENGINE_JSON_H_
#define MENDEL_KERNELS_CUDA_CUDNN_ENGINE_JSON_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace mendel::cuda {

/// `{"engineId":1,"knobChoices":{...}}` of a plan's JSON, whose last member it is. Nullopt where
/// this cuDNN writes it otherwise.
std::optional<std::string> EngineJsonOf(const std::string& plan_json);
/// The number of the engine. InvalidArgument where `engine_json`, which may come from anywhere, is
/// anything but one object of names, numbers and further objects: nothing else can reach the plan's
/// JSON by it.
absl::StatusOr<int64_t> EngineIndexOf(const std::string& engine_json);
/// `plan_json` with that engine in place of its own.
absl::StatusOr<std::string> WithEngine(const std::string& plan_json,
                                       const std::string& engine_json);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_CUDNN_ENGINE_JSON_H_
