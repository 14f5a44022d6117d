// The engines of libraries in a plan: what the names of its algorithms stood for, so that the same ones run again.
#ifndef MENDEL_RUNTIME_PLAN_ENGINES_H_
#define MENDEL_RUNTIME_PLAN_ENGINES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "mendel/plan.pb.h"
#include "runtime/backend.h"

namespace mendel {

/// Version of the section's meaning that this program writes and reads.
inline constexpr int kPlanEnginesVersion = 1;
/// Of one engine's text, and of its library's and device's names; of all engines of a plan. A convolution of cuDNN's takes a few
/// thousand bytes.
inline constexpr size_t kMaxEngineText = size_t{1} << 18, kMaxEngineName = 256, kMaxEnginesSection = size_t{64} << 20;

/// By node of the plan's graph.
using StoredEngines = std::map<int32_t, StoredEngine>;

/// InvalidArgument when one is for a node without an algorithm, or beyond the limits above.
absl::Status CheckEngines(const StoredEngines& engines, const google::protobuf::Map<int32_t, std::string>& algorithms);

/// The section's bytes, with a SHA-256 of every text; equal engines give equal bytes.
std::string SerialiseEngines(const StoredEngines& engines);

/// InvalidArgument for a text that does not have its hash (the node is named), for two of one node, for another version (both are
/// told), for bytes that cannot be decoded or are too many.
absl::StatusOr<StoredEngines> ParseEngines(const std::string& bytes);

}  // namespace mendel

#endif  // MENDEL_RUNTIME_PLAN_ENGINES_H_
