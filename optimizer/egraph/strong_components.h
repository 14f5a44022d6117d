// Strongly connected components of a directed graph.
#ifndef MENDEL_OPTIMIZER_EGRAPH_STRONG_COMPONENTS_H_
#define MENDEL_OPTIMIZER_EGRAPH_STRONG_COMPONENTS_H_

#include <vector>

namespace mendel {

/// Successors by vertex.
using Edges = std::vector<std::vector<int>>;

/// The components of what `starts` reach, those that lead to others first (Kosaraju and Sharir, "A
/// strong-connectivity algorithm", 1981).
std::vector<std::vector<int>> StrongComponents(const Edges& edges, const std::vector<int>& starts);

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_EGRAPH_STRONG_COMPONENTS_H_
