// Contractions by own direct kernels: pointwise products (lower_direct.cc), direct and grouped convolutions (lower_window.cc).
#ifndef MENDEL_KERNELS_CPU_LOWER_DIRECT_H_
#define MENDEL_KERNELS_CPU_LOWER_DIRECT_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cpu/fuse.h"
#include "kernels/cpu/lowering.h"

namespace mendel::cpu {

/// Names of the algorithms for a Conv, ConvTranspose or MatMul node. They sum in another order, nothing else: any numerics.
std::vector<std::string> DirectAlgorithms(const Graph& graph, int32_t node);
/// True when no input of the graph has an influence on what `node` reads besides its first input.
bool HasConstantWeights(const Graph& graph, const Node& node);
/// Of those for the default numerics only: products large enough for Strassen's seven multiplications (strassen.h).
std::vector<std::string> StrassenAlgorithms(const Graph& graph, int32_t node);
/// The group's contraction by the algorithm `name`; false when it cannot be (another name, weights that are not constant).
absl::StatusOr<bool> LowerDirect(Lowering& lowering, const Group& group, const std::string& name);

/// The same for a Conv that is no pointwise product, on a machine that has the kernels. Its weights are not looked at.
std::vector<std::string> WindowAlgorithms(const Graph& graph, int32_t node);
/// For an algorithm of WindowAlgorithms, with constant weights; false when its posts are not known.
absl::StatusOr<bool> LowerWindow(Lowering& lowering, const Group& group, const std::string& name);

/// Gives the groups of pointwise products chosen by name the batch normalisation and ReLU, or the product with one factor an image
/// and channel, that only they read, and removes those from `groups`: they are computed while the product reads its source.
/// `taken`: nodes that others compute.
void PrepareSources(Lowering& lowering, const std::set<int32_t>& taken, std::vector<std::optional<Group>>& groups);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_LOWER_DIRECT_H_
