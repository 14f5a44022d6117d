// A leaf of an index expression: a value of the site's graph, or a small tensor made from one.
#ifndef MENDEL_MUTATOR_INDEX_LEAF_H_
#define MENDEL_MUTATOR_INDEX_LEAF_H_

#include <compare>
#include <cstdint>

#include "graph/emitter.h"
#include "graph/graph.h"

namespace mendel {

enum class LeafKind {
  kValue,       ///< the value itself
  kReciprocal,  ///< 1 / value, a weight
  kNormFactor,  ///< the factor a channel of a BatchNormalization, `value` is its result
  kNormShift,   ///< the shift a channel
  kOnes,        ///< `extent` ones
  kIdentity,    ///< the identity matrix of `extent` rows
};

struct IndexLeaf {
  ValueId value;
  LeafKind kind = LeafKind::kValue;
  int64_t extent = 0;
  auto operator<=>(const IndexLeaf&) const = default;
};

Shape LeafShape(const Graph& graph, const IndexLeaf& leaf);
/// True for leaves that depend on no input.
bool IsWeightLeaf(const std::vector<bool>& weights, const IndexLeaf& leaf);
/// The leaf in `e`; `value` stands for the leaf's value where the kind is kValue, `dtype` is that
/// of ones and identities.
ValueId EmitLeaf(Emitter& e, const Graph& graph, const IndexLeaf& leaf, DType dtype);

}  // namespace mendel

#endif  // MENDEL_MUTATOR_INDEX_LEAF_H_
