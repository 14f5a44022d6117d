// The engines of libraries in a plan: the engine behind each algorithm's name, so that the same one
// runs again.
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
/// Limits of one engine's text, of its library's and device's names, and of all engines of a plan.
/// A convolution of cuDNN's takes a few thousand bytes.
inline constexpr size_t kMaxEngineText = size_t{1} << 18, kMaxEngineName = 256,
                        kMaxEnginesSection = size_t{64} << 20;

/// By node of the plan's graph.
using StoredEngines = std::map<int32_t, StoredEngine>;

/// InvalidArgument when an engine is for a node without an algorithm, or exceeds the limits above.
absl::Status CheckEngines(const StoredEngines& engines,
                          const google::protobuf::Map<int32_t, std::string>& algorithms);

/// The section's bytes, with a SHA-256 of every text; equal engines give equal bytes.
std::string SerializeEngines(const StoredEngines& engines);

/// InvalidArgument for a text with a wrong hash (the node is named), for two texts of one node, for
/// another version (both are reported), for bytes that cannot be decoded or are too many.
absl::StatusOr<StoredEngines> ParseEngines(const std::string& bytes);

}  // namespace mendel

#endif  // MENDEL_RUNTIME_PLAN_ENGINES_H_
