// Bytes of the weights of a program: those that are stored, and those made when a plan is loaded.
#ifndef MENDEL_GRAPH_WEIGHT_BYTES_H_
#define MENDEL_GRAPH_WEIGHT_BYTES_H_

#include <cstdint>

#include "graph/graph.h"

namespace mendel {

/// Bytes of all stored tensors.
int64_t StoredBytes(const Graph& graph);

/// Bytes of the tensors that are computed from weights when a plan is loaded, and read at run time.
/// Views of stored tensors are none.
int64_t MadeWeightBytes(const Graph& graph);

}  // namespace mendel

#endif  // MENDEL_GRAPH_WEIGHT_BYTES_H_
