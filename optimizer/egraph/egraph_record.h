// The outcome of an e-graph search as it is stored: the program that was found, without its
// weights.
#ifndef MENDEL_OPTIMIZER_EGRAPH_EGRAPH_RECORD_H_
#define MENDEL_OPTIMIZER_EGRAPH_EGRAPH_RECORD_H_

#include <optional>
#include <string>

#include "graph/graph.h"
#include "optimizer/search/search.h"

namespace mendel {

/// Nullopt when the program contains literals of more than 4,096 elements (it is then searched
/// again).
std::optional<std::string> PrintEGraphRecord(const SearchResult& result);

/// The result with the weights of `baseline`, by their symbols. Nullopt when the text is no record
/// of this version or a weight is missing.
std::optional<SearchResult> ParseEGraphRecord(const std::string& text, const Graph& baseline);

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_EGRAPH_EGRAPH_RECORD_H_
