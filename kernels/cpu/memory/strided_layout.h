// A strided layout describes values of which a dimension may need more than one stride: a reshaped
// strided view, or a part of blocks of channels. Nothing is moved until a kernel needs a layout.
#ifndef MENDEL_KERNELS_CPU_MEMORY_STRIDED_LAYOUT_H_
#define MENDEL_KERNELS_CPU_MEMORY_STRIDED_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/cpu/kernels/copy.h"
#include "kernels/cpu/kernels/kernel.h"
#include "kernels/cpu/lowering/layout.h"

namespace mendel::cpu {

/// One loop; the stride is in elements.
struct DimStep {
  int64_t extent = 1;
  int64_t stride = 0;
};

/// The loops of every dimension, outermost first; none for an extent of one, and none that would
/// merge with the next.
using DimSteps = std::vector<std::vector<DimStep>>;

/// The value's first element lies at the place's offset; the place's layout is not used.
struct StridedLayout {
  Place place;
  DimSteps dims;
};

/// Returns the steps of a tensor without an extent of zero. A blocked tensor has whole blocks.
DimSteps StepsOf(const Layout& layout, const Shape& shape);
/// One stride a dimension, or blocks of channels; nullopt when neither will do.
std::optional<Layout> LayoutOfSteps(const DimSteps& dims, const Shape& shape);
/// The same elements in row-major order under another shape; nullopt where the loops would have to
/// be cut unevenly.
std::optional<DimSteps> Reshaped(const DimSteps& dims, const Shape& to);
/// Cuts dimension `axis` down to every `step`-th index from `start` on, `count` in all. Returns how
/// many elements further the view then begins. Returns nullopt, and changes nothing, where that is
/// no view.
std::optional<int64_t> CutDimension(DimSteps& dims, size_t axis, int64_t start, int64_t count,
                                    int64_t step);
/// True when channels, the second dimension, have the shortest stride.
bool ChannelsAreNearest(const DimSteps& dims);
/// Moves all elements of one to the other; nullopt where the loops cannot be cut alike.
std::optional<StridedCopy> CopyBetween(const StridedLayout& from, const StridedLayout& to);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_MEMORY_STRIDED_LAYOUT_H_
