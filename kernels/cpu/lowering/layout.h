// A layout says how a tensor's elements lie in a buffer: strides, and at most one dimension cut
// into blocks.
#ifndef MENDEL_KERNELS_CPU_LOWERING_LAYOUT_H_
#define MENDEL_KERNELS_CPU_LOWERING_LAYOUT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "graph/types.h"

namespace mendel::cpu {

/// Element `i` lies at sum over d of strides[d] * i_d, where for the blocked dimension i_d is the
/// block's number and the position in the block is added (nChw16c: block_dim 1, block 16).
/// Unblocked: block_dim -1. Strides are in elements.
struct Layout {
  Shape strides;
  int block_dim = -1;
  int64_t block = 1;
};

Layout PlainLayout(const Shape& shape);
/// N C/block ... block; rank at least 2.
Layout BlockedLayout(const Shape& shape, int64_t block);
/// N ... C; rank at least 2.
Layout ChannelsLastLayout(const Shape& shape);

/// True when every element of a tensor of this shape has the same position in both layouts, and
/// both have the same padding or none.
bool SamePlacement(const Layout& a, const Layout& b, const Shape& shape);
inline bool IsPlain(const Layout& layout, const Shape& shape) {
  return SamePlacement(layout, PlainLayout(shape), shape);
}
/// Returns `layout`, or the plain or channels-last layout when it is the same placement. Dimensions
/// of extent one then have the usual strides, which oneDNN's primitive cache does not compare.
Layout Canonical(const Layout& layout, const Shape& shape);
/// True when the last block is only partly used.
bool IsPadded(const Layout& layout, const Shape& shape);
/// Elements from the first position to the last, padding included.
int64_t Span(const Layout& layout, const Shape& shape);
/// True when the layout has no holes (padding aside) and no overlap.
bool IsDense(const Layout& layout, const Shape& shape);

/// True when oneDNN can describe the layout. It is unblocked or dense, its strides are positive,
/// and every dimension's elements lie between two steps of the next slower one. A slice of a
/// transposed tensor may interleave.
bool IsNested(const Layout& layout, const Shape& shape);

/// The loops that visit a layout's elements in the order in which they lie: extents outermost
/// first.
struct PhysicalDim {
  int dim = 0;            ///< logical dimension
  bool in_block = false;  ///< the position inside the block of `dim`
  int64_t extent = 1;
  int64_t block = 1;  ///< how many logical positions one step advances
};
/// nullopt when the layout is padded or not dense.
std::optional<std::vector<PhysicalDim>> PhysicalOrder(const Layout& layout, const Shape& shape);
/// Strides of an operand with `layout` and `shape` (broadcast into a tensor of rank `rank`,
/// NumPy-style) along `order`; nullopt when it is blocked otherwise.
std::optional<Shape> StridesAlong(const std::vector<PhysicalDim>& order, const Layout& layout,
                                  const Shape& shape, size_t rank);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_LOWERING_LAYOUT_H_
