#include "kernels/cpu/memory/strided_layout.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"

namespace mendel::cpu {
namespace {

/// Appends a loop inside the loops so far. A loop that follows the last one evenly is merged into
/// it.
void Append(std::vector<DimStep>& steps, DimStep inner) {
  if (inner.extent == 1) return;
  if (!steps.empty() && steps.back().stride == inner.stride * inner.extent) {
    steps.back() = {steps.back().extent * inner.extent, inner.stride};
  } else {
    steps.push_back(inner);
  }
}

/// Cuts the loops where those of `like`, which has as many elements, begin and end; nullopt where
/// one would be cut unevenly.
std::optional<std::vector<DimStep>> CutLike(const std::vector<DimStep>& steps,
                                            const std::vector<int64_t>& like) {
  std::vector<DimStep> result;  // innermost first
  size_t k = steps.size();
  DimStep left{1, 0};
  for (size_t d = like.size(); d-- > 0;) {
    for (int64_t wanted = like[d]; wanted > 1;) {
      if (left.extent == 1) {
        MENDEL_CHECK(k > 0);
        left = steps[--k];
      }
      const int64_t taken = std::min(wanted, left.extent);
      if (wanted % taken != 0 || left.extent % taken != 0) return std::nullopt;
      result.push_back({taken, left.stride});
      left = {left.extent / taken, left.stride * taken};
      wanted /= taken;
    }
  }
  std::reverse(result.begin(), result.end());
  return result;
}

bool IsBlock(int64_t extent) { return extent == 4 || extent == 8 || extent == 16; }

std::vector<int64_t> ExtentsOf(const std::vector<DimStep>& steps) {
  std::vector<int64_t> extents;
  for (const DimStep& step : steps) extents.push_back(step.extent);
  return extents;
}

}  // namespace

DimSteps StepsOf(const Layout& layout, const Shape& shape) {
  MENDEL_CHECK(!IsPadded(layout, shape));
  DimSteps dims(shape.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    const bool blocked = static_cast<int>(d) == layout.block_dim;
    Append(dims[d], {blocked ? shape[d] / layout.block : shape[d], layout.strides[d]});
    if (blocked) Append(dims[d], {layout.block, 1});
  }
  return dims;
}

std::optional<Layout> LayoutOfSteps(const DimSteps& dims, const Shape& shape) {
  Layout layout{Shape(shape.size()), -1, 1};
  // A stride for extents of one: any is right, and libraries want a positive one.
  int64_t beyond = 1;
  for (size_t d = dims.size(); d-- > 0;) {
    const std::vector<DimStep>& steps = dims[d];
    if (steps.size() == 2 && d == 1 && steps[1].stride == 1 && IsBlock(steps[1].extent)) {
      layout.block_dim = 1;
      layout.block = steps[1].extent;
    } else if (steps.size() > 1) {
      return std::nullopt;
    }
    layout.strides[d] = steps.empty() ? beyond : steps[0].stride;
    beyond = std::max(beyond, layout.strides[d] * (steps.empty() ? 1 : steps[0].extent));
  }
  return layout.block_dim < 0 ? Canonical(layout, shape) : layout;
}

std::optional<DimSteps> Reshaped(const DimSteps& dims, const Shape& to) {
  std::vector<DimStep> all;
  for (const std::vector<DimStep>& steps : dims) {
    for (const DimStep& step : steps) Append(all, step);
  }
  const std::optional<std::vector<DimStep>> cut = CutLike(all, to);
  if (!cut.has_value()) return std::nullopt;
  DimSteps result(to.size());
  size_t k = 0;
  for (size_t d = 0; d < to.size(); ++d) {
    for (int64_t left = to[d]; left > 1; left /= (*cut)[k++].extent) Append(result[d], (*cut)[k]);
  }
  return result;
}

std::optional<int64_t> CutDimension(DimSteps& dims, size_t axis, int64_t start, int64_t count,
                                    int64_t step) {
  std::vector<DimStep>& steps = dims[axis];
  if (steps.empty()) return 0;
  int64_t inner = 1;
  for (size_t k = 1; k < steps.size(); ++k) inner *= steps[k].extent;
  if (inner > 1 && step != 1 && count > 1) return std::nullopt;
  if (start % inner != 0 || count % inner != 0) return std::nullopt;
  const int64_t offset = start / inner * steps[0].stride;
  std::vector<DimStep> cut;
  Append(cut, {count / inner, steps[0].stride * step});
  for (size_t k = 1; k < steps.size(); ++k) Append(cut, steps[k]);
  steps = std::move(cut);
  return offset;
}

bool ChannelsAreNearest(const DimSteps& dims) {
  const auto nearest = [](const std::vector<DimStep>& steps) {
    int64_t least = std::numeric_limits<int64_t>::max();
    for (const DimStep& step : steps) least = std::min(least, step.stride);
    return least;
  };
  if (dims.size() < 2) return false;
  for (size_t d = 2; d < dims.size(); ++d) {
    if (nearest(dims[d]) <= nearest(dims[1])) return false;
  }
  return true;
}

std::optional<StridedCopy> CopyBetween(const StridedLayout& from, const StridedLayout& to) {
  StridedCopy copy{from.place, to.place, {}, {}, {}};
  for (size_t d = 0; d < from.dims.size(); ++d) {
    const auto cut_from = CutLike(from.dims[d], ExtentsOf(to.dims[d]));
    if (!cut_from.has_value()) return std::nullopt;
    const auto cut_to = CutLike(to.dims[d], ExtentsOf(*cut_from));
    if (!cut_to.has_value()) return std::nullopt;
    for (size_t k = 0; k < cut_from->size(); ++k) {
      copy.extents.push_back((*cut_from)[k].extent);
      copy.from_strides.push_back((*cut_from)[k].stride);
      copy.to_strides.push_back((*cut_to)[k].stride);
    }
  }
  if (copy.extents.empty()) return StridedCopy{from.place, to.place, {1}, {1}, {1}};  // one element
  return copy;
}

}  // namespace mendel::cpu
