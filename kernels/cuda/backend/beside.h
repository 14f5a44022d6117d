// The algorithm "beside" of small elementwise nodes: their kernel and others that need not wait for each other are one launch.
#ifndef MENDEL_KERNELS_CUDA_BACKEND_BESIDE_H_
#define MENDEL_KERNELS_CUDA_BACKEND_BESIDE_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"

namespace mendel::cuda {

inline constexpr std::string_view kBeside = "beside";

/// Takes the nodes with this algorithm out of `algorithms`. What other nodes' algorithms make of a node decides whether it is the
/// result of a kernel that may stand beside others; where it is not, or has no company, it is computed as without the algorithm.
/// InvalidArgument names a node that never can be: it is not there, or its operator is not elementwise.
absl::StatusOr<std::set<int32_t>> TakeBeside(const Graph& graph, std::map<int32_t, std::string>& algorithms);

/// "beside" where `node` is the result of such a kernel and another one neither depends on it nor it on that, by the grouping that
/// the backend makes where no other algorithm is chosen; else nothing.
std::vector<std::string> BesideAlgorithms(const Graph& graph, int32_t node);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_BACKEND_BESIDE_H_
