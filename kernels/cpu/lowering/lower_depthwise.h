// Depthwise convolutions by the native kernel, perhaps with the pointwise convolution before them
// or the means after them (depthwise.h).
#ifndef MENDEL_KERNELS_CPU_LOWERING_LOWER_DEPTHWISE_H_
#define MENDEL_KERNELS_CPU_LOWERING_LOWER_DEPTHWISE_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cpu/lowering/fuse.h"
#include "kernels/cpu/lowering/lowering.h"

namespace mendel::cpu {

/// Names of the algorithms for a Conv node. They sum in another order, nothing else: any numerics.
std::vector<std::string> DepthwiseAlgorithms(const Graph& graph, int32_t node);

/// Moves the group before convolutions chosen by name into the convolutions' groups, takes it out
/// of `groups`, and returns its nodes. Nodes in `taken` are computed elsewhere.
std::set<int32_t> ClaimExpansions(Lowering& lowering, const std::set<int32_t>& taken,
                                  std::vector<std::optional<Group>>& groups);

/// Moves the ReduceMean over all positions of convolutions chosen by name into their groups, and
/// returns those nodes.
std::set<int32_t> ClaimMeans(Lowering& lowering, const std::set<int32_t>& taken,
                             std::vector<std::optional<Group>>& groups);

/// The group's convolution by the algorithm `name`; false when it cannot be.
absl::StatusOr<bool> LowerDepthwise(Lowering& lowering, const Group& group,
                                    const std::string& name);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_LOWERING_LOWER_DEPTHWISE_H_
