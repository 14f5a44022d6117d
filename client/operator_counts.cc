#include "client/operator_counts.h"

#include <vector>

#include "graph/rewrite.h"

namespace mendel {

OperatorCounts CountOperators(const Graph& graph) {
  const std::vector<bool> constant = ConstantExpressions(graph);
  OperatorCounts counts;
  for (size_t id = 0; id < graph.nodes().size(); ++id) {
    if (!constant[id] && !IsInput(graph.nodes()[id]))
      ++counts[std::string(graph.nodes()[id].op->name)];
  }
  return counts;
}

int64_t Total(const OperatorCounts& counts) {
  int64_t total = 0;
  for (const auto& [name, count] : counts) total += count;
  return total;
}

}  // namespace mendel
