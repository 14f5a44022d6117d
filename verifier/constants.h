// Constants of two programs under one set of names, so that the verifier can take equal ones for
// one random tensor.
#ifndef MENDEL_VERIFIER_CONSTANTS_H_
#define MENDEL_VERIFIER_CONSTANTS_H_

#include <functional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "graph/tensor.h"

namespace mendel {

/// The replacement of a Constant. An empty symbol makes a literal.
struct RecastConstant {
  Tensor value;  ///< of the same type
  std::string symbol;
};

/// `graph` with its constants replaced; nothing else changes.
absl::StatusOr<Graph> RecastConstants(const Graph& graph,
                                      const std::function<RecastConstant(const Node&)>& recast);

/// Both graphs with float constants of more than one element that both hold (equal dtype, shape and
/// bytes) as one symbol, named by content, and all others as literals. What is equal then for all
/// values of the symbols is equal for the stored ones.
absl::StatusOr<std::pair<Graph, Graph>> ShareEqualConstants(const Graph& a, const Graph& b);

/// `b` with the stored values of `a` where a symbol has the same name and type in both.
absl::StatusOr<Graph> WithWeightsOf(const Graph& a, const Graph& b);

/// `b` with the tensors of `a` where a symbol has the same name, type and bytes in both: equal
/// tensors are in memory once.
absl::StatusOr<Graph> HoldEqualWeightsOnce(const Graph& a, const Graph& b);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_CONSTANTS_H_
