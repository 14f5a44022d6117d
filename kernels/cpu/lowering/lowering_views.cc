// Values that lie as views of others.

#include <optional>
#include <utility>

#include "base/status.h"
#include "kernels/cpu/kernels/copy.h"
#include "kernels/cpu/lowering/lowering.h"
#include "kernels/cpu/lowering/node_name.h"

namespace mendel::cpu {
namespace {

/// True when only the images are further apart than they would be without other channels between
/// them.
bool IsWithin(const Layout& layout, const Shape& shape) {
  Layout dense = BlockedLayout(shape, layout.block);
  dense.strides[0] = layout.strides[0];
  return SamePlacement(layout, dense, shape);
}

}  // namespace

bool Lowering::IsStepped(ValueId value) const {
  if (stepped_.count(value) == 0) return false;
  const auto places = places_.find(value);
  return places == places_.end() || places->second.empty();
}

StridedLayout Lowering::View(ValueId value, bool blocks) {
  if (IsStepped(value)) return stepped_.at(value);
  Place place = blocks ? WithinOrAny(value) : Unblocked(value);
  if (IsPadded(place.layout, shape(value))) place = Plain(value);
  DimSteps steps = StepsOf(place.layout, shape(value));
  return {std::move(place), std::move(steps)};
}

void Lowering::AliasView(ValueId value, StridedLayout view) {
  const Shape& extents = shape(value);
  const std::optional<Layout> layout = LayoutOfSteps(view.dims, extents);
  if (layout.has_value()) {
    Place place{view.place.buffer, view.place.offset, *layout};
    if (layout->block_dim < 0 || IsDense(*layout, extents)) return Alias(value, std::move(place));
    if (IsWithin(*layout, extents)) within_.emplace(value, std::move(place));
  }
  stepped_.emplace(value, std::move(view));
}

std::optional<Place> Lowering::FromView(ValueId value, const Layout& layout) {
  const Shape& extents = shape(value);
  if (!IsStepped(value) || IsPadded(layout, extents)) return std::nullopt;
  const StridedLayout& view = stepped_.at(value);
  const StridedLayout target{{}, StepsOf(layout, extents)};
  std::optional<StridedCopy> copy = CopyBetween(view, target);
  if (!copy.has_value()) return std::nullopt;
  copy->to = Allocate(value, layout);
  Emit({}, "copy", MakeCopyKernel({*copy}, DTypeSize(type(value).dtype)), {copy->from, copy->to});
  program_.steps.back().info.name = Cat("reorder of ", NodeName(graph_, value.node));
  return copy->to;
}

}  // namespace mendel::cpu
