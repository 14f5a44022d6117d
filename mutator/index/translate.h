// From a graph to an index expression: which subprograms are linear, and what they compute.
//
// Inlined: products (Conv, ConvTranspose, MatMul, Einsum, Mul), sums (Add, ReduceSum) and affine
// views (Reshape, Transpose, Slice, zero Pad, Concat of pieces that differ by a constant step).
// Everything else, every weight expression and every operand of a product that is no view is a
// leaf: a tensor given from outside.
#ifndef MENDEL_MUTATOR_INDEX_TRANSLATE_H_
#define MENDEL_MUTATOR_INDEX_TRANSLATE_H_

#include <optional>
#include <set>
#include <vector>

#include "graph/graph.h"
#include "mutator/index/leaf.h"
#include "mutator/index/reader.h"

namespace mendel {

/// The nodes that a site may contain although something outside reads their results, too.
enum class Sharing {
  kNone,
  kProducts,  ///< products with their biases; they are computed for the others
};

struct IndexSite {
  std::vector<int32_t> nodes;   ///< inlined, ascending
  std::vector<int32_t> shared;  ///< those of them, but the last, that something outside reads
  std::vector<IndexLeaf> leaves;
  Program program;          ///< one stage, with as many leaves
  bool has_square = false;  ///< the square of a sum is multiplied out: that can cancel
};

/// An operator that multiplies its operands and sums over what they share.
bool IsProduct(const OpDefinition& op);

/// Nodes of a site of one rule.
inline constexpr int kMostSiteNodes = 256;

/// The largest site (at most `max_nodes` nodes) that ends with the one-output node `last` and has
/// none of `closed`; nullopt when `last` is not linear, no product is in it, or its result is no
/// float tensor.
std::optional<IndexSite> TranslateSite(const Graph& graph, int32_t last, int max_nodes,
                                       Expansion expansion = Expansion::kViews,
                                       Sharing sharing = Sharing::kNone,
                                       std::set<int32_t> closed = {});

}  // namespace mendel

#endif  // MENDEL_MUTATOR_INDEX_TRANSLATE_H_
