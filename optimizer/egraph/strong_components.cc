#include "optimizer/egraph/strong_components.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace mendel {
namespace {

/// Vertices reached from `starts`, in the order in which they are finished.
std::vector<int> Finished(const std::vector<int>& starts, const Edges& edges,
                          std::vector<bool>& seen) {
  std::vector<int> finished;
  std::vector<std::pair<int, size_t>> stack;
  for (int start : starts) {
    if (seen[static_cast<size_t>(start)]) continue;
    seen[static_cast<size_t>(start)] = true;
    stack.emplace_back(start, 0);
    while (!stack.empty()) {
      auto& [vertex, next] = stack.back();
      const std::vector<int>& to = edges[static_cast<size_t>(vertex)];
      if (next == to.size()) {
        finished.push_back(vertex);
        stack.pop_back();
        continue;
      }
      const int target = to[next++];
      if (seen[static_cast<size_t>(target)]) continue;
      seen[static_cast<size_t>(target)] = true;
      stack.emplace_back(target, 0);
    }
  }
  return finished;
}

}  // namespace

std::vector<std::vector<int>> StrongComponents(const Edges& edges, const std::vector<int>& starts) {
  std::vector<bool> reached(edges.size(), false);
  std::vector<int> order = Finished(starts, edges, reached);
  std::reverse(order.begin(), order.end());
  Edges backward(edges.size());
  for (int from : order) {
    for (int to : edges[static_cast<size_t>(from)])
      backward[static_cast<size_t>(to)].push_back(from);
  }
  std::vector<bool> assigned(edges.size(), false);
  std::vector<std::vector<int>> components;
  for (int start : order) {
    std::vector<int> component = Finished({start}, backward, assigned);
    if (!component.empty()) components.push_back(std::move(component));
  }
  return components;
}

}  // namespace mendel
