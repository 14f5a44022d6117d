// Views: a tensor read at affine positions, as Slice, Pad, Reshape, Concat and Transpose nodes.
#ifndef MENDEL_MUTATOR_INDEX_VIEW_H_
#define MENDEL_MUTATOR_INDEX_VIEW_H_

#include <vector>

#include "graph/emitter.h"
#include "mutator/index/expression.h"

namespace mendel {

/// A value whose dimensions are iterators.
struct IndexedValue {
  ValueId value;
  std::vector<Iterator> dims;
};

/// T[index...] for all values of the iterators that occur in `index`, one dimension each, in the
/// order in which they lie in the tensor. Zero where the index is outside. Overlapping windows (p +
/// k, 8*a + j) become a Concat of shifted pieces, shared iterators (T[b, b + w]) a skewed Reshape,
/// divisors interleaved zeros.
IndexedValue EmitIndexed(Emitter& e, ValueId tensor, std::vector<IndexForm> index,
                         const Extents& extents);

/// The same with dimensions in `order`; iterators of `order` that do not occur have extent 1. All
/// that occur must be in `order`.
ValueId EmitView(Emitter& e, ValueId tensor, const std::vector<IndexForm>& index,
                 const std::vector<Iterator>& order, const Extents& extents);

/// The dimensions of `x` in another order, and 1 for those that it does not have.
ValueId Arranged(Emitter& e, const IndexedValue& x, const std::vector<Iterator>& order);

/// Reshape and Transpose, where they change anything.
ValueId ReshapeTo(Emitter& e, ValueId x, const Shape& shape);
ValueId TransposeTo(Emitter& e, ValueId x, const Ints& perm);
/// Positions `box` of `x`, zero where it has none.
ValueId CutOrPad(Emitter& e, ValueId x, const Box& box);

}  // namespace mendel

#endif  // MENDEL_MUTATOR_INDEX_VIEW_H_
