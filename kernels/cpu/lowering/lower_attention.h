// softmax(scale * Q K + mask) V as one step (attention.h).
#ifndef MENDEL_KERNELS_CPU_LOWERING_LOWER_ATTENTION_H_
#define MENDEL_KERNELS_CPU_LOWERING_LOWER_ATTENTION_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kernels/cpu/lowering/fuse.h"
#include "kernels/cpu/lowering/lowering.h"

namespace mendel::cpu {

/// Names of the algorithms for a MatMul node that ends such a chain. Other sums than the library's,
/// nothing else: any numerics.
std::vector<std::string> AttentionAlgorithms(const Graph& graph, int32_t node);

/// Moves the nodes before products chosen by name into the products' groups, takes them out of
/// `groups`, and returns them. Nodes in `taken` are computed elsewhere.
std::set<int32_t> ClaimAttention(const Lowering& lowering, const std::set<int32_t>& taken,
                                 std::vector<std::optional<Group>>& groups);

/// A group with `attention`.
absl::Status LowerAttention(Lowering& lowering, const Group& group);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_LOWERING_LOWER_ATTENTION_H_
