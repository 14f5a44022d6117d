// Names of nodes in steps and messages.
#ifndef MENDEL_KERNELS_CPU_LOWERING_NODE_NAME_H_
#define MENDEL_KERNELS_CPU_LOWERING_NODE_NAME_H_

#include <cstdint>
#include <string>

#include "base/status.h"
#include "graph/graph.h"

namespace mendel::cpu {

/// The node's own name, or its operator and number.
inline std::string NodeName(const Graph& graph, int32_t id) {
  const Node& node = graph.node(id);
  return node.name.empty() ? Cat(node.op->name, " ", id) : node.name;
}

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_LOWERING_NODE_NAME_H_
