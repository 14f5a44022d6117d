// Parts of a graph that one call can run.
#ifndef MENDEL_CLIENT_ONNXRUNTIME_PARTITION_H_
#define MENDEL_CLIENT_ONNXRUNTIME_PARTITION_H_

#include <vector>

#include "client/onnxruntime/graph_view.h"

namespace mendel::ort {

/// Numbers of nodes, ascending.
using Part = std::vector<int>;

/// The connected parts of the nodes with `taken[n]`. No path between two nodes of a part leaves it,
/// so that each can become one node.
std::vector<Part> Partition(const GraphView& view, const std::vector<bool>& taken);

/// Values that `part` reads from outside, constants not included, and those that it gives to other
/// nodes or to the graph's outputs.
struct Boundary {
  std::vector<int> inputs, outputs;
};
Boundary BoundaryOf(const GraphView& view, const Part& part);

/// True if a call of Mendel costs little beside the work of `part`: a matrix product or a
/// convolution, or several nodes over large tensors.
bool WorthACall(const GraphView& view, const Part& part);

}  // namespace mendel::ort

#endif  // MENDEL_CLIENT_ONNXRUNTIME_PARTITION_H_
