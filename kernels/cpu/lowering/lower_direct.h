// Contractions by own direct kernels: pointwise products (lower_direct.cc), direct and grouped
// convolutions (lower_window.cc).
#ifndef MENDEL_KERNELS_CPU_LOWERING_LOWER_DIRECT_H_
#define MENDEL_KERNELS_CPU_LOWERING_LOWER_DIRECT_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cpu/lowering/fuse.h"
#include "kernels/cpu/lowering/lowering.h"

namespace mendel::cpu {

/// Names of the algorithms for a Conv, ConvTranspose or MatMul node. They sum in another order,
/// nothing else: any numerics.
std::vector<std::string> DirectAlgorithms(const Graph& graph, int32_t node);
/// True when some input of the graph has an influence on `node`.
bool DependsOnInput(const Graph& graph, int32_t node);
/// True when no input of the graph has an influence on what `node` reads besides its first input.
bool HasConstantWeights(const Graph& graph, const Node& node);
/// Returns the additional algorithms of the default numerics only: products large enough for
/// Strassen's seven multiplications (strassen.h).
std::vector<std::string> StrassenAlgorithms(const Graph& graph, int32_t node);
/// The group's contraction by the algorithm `name`; false when it cannot be (another name, weights
/// that are not constant).
absl::StatusOr<bool> LowerDirect(Lowering& lowering, const Group& group, const std::string& name);

/// The same for a Conv that is no pointwise product, on a machine that has the kernels. Its weights
/// are not looked at.
std::vector<std::string> WindowAlgorithms(const Graph& graph, int32_t node);
/// For an algorithm of WindowAlgorithms, with constant weights; false when its post_op-ops are not
/// known.
absl::StatusOr<bool> LowerWindow(Lowering& lowering, const Group& group, const std::string& name);

/// Lets pointwise products chosen by name compute their source while they read it. The source is a
/// batch normalization and ReLU, or a product with one factor an image and channel, that only they
/// read. Its groups are removed from `groups`. Nodes in `taken` are computed elsewhere.
void PrepareSources(Lowering& lowering, const std::set<int32_t>& taken,
                    std::vector<std::optional<Group>>& groups);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_LOWERING_LOWER_DIRECT_H_
