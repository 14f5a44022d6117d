// Values as library calls want them in memory: where they are converted, and where they stay as one
// call left them for the next.
#ifndef MENDEL_KERNELS_CUDA_BACKEND_MEMORY_FORMATS_H_
#define MENDEL_KERNELS_CUDA_BACKEND_MEMORY_FORMATS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "kernels/cuda/backend/library_groups.h"

namespace mendel::cuda {

struct NodeOrigin {
  int32_t node = -1;        ///< of the graph that was given
  bool conversion = false;  ///< of that node's value, and no copy of the node
  /// Of a conversion: the nodes whose calls yield or read the value, or one that is computed as it
  /// lies, in another form than its own.
  std::vector<int32_t> requested_by = {};
};

struct FormedGraph {
  Graph graph;
  std::vector<LibraryGroup> calls;
  std::vector<NodeOrigin> origins;  ///< by node of `graph`
};

/// True where some call has a value in another form than its own.
bool HaveForms(const std::vector<LibraryGroup>& calls);

/// `graph` with Transpose and Cast nodes wherever a call of `calls` has a value in another form,
/// and the calls reading and yielding the converted values, each of which has its own form then:
/// kernels and folding do the rest, so that a conversion is fused with the elementwise operators
/// beside it, and that of a stored weight is made once. A value is converted once for all of its
/// readers.
///
/// What one call yields with the channels last and another one reads so is not converted. Nor are
/// elementwise operators between them: one that reads such a value, and whose value some call wants
/// so, directly or through others, is computed with the channels last. So are pools, Resize and
/// BatchNormalization, between two Transposes that the fusion engine makes part of their kernel,
/// and Concat, Pad, Slice and Split, along the dimensions where these lie (format_choice.h). Nodes
/// in `elsewhere` are others' (constants, corrections, calls) and stay as they are. Sums are the
/// same, but for the rounding that the forms say.
///
/// What one call yields rounded and another one reads so is not converted either. Elementwise
/// operators, pools, rows and views convert such a value where they read it, and what they compute
/// for such a call is stored rounded alone: between two calls that round, memory has the smaller
/// format only. What moves or chooses rounded numbers is computed of these, and yields such.
absl::StatusOr<FormedGraph> WithMemoryFormats(const Graph& graph, std::vector<LibraryGroup> calls,
                                              const std::vector<bool>& elsewhere);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_BACKEND_MEMORY_FORMATS_H_
