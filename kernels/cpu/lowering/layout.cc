#include "kernels/cpu/lowering/layout.h"

#include <algorithm>
#include <utility>

namespace mendel::cpu {
namespace {

int64_t Blocks(const Layout& layout, const Shape& shape, size_t d) {
  return static_cast<int>(d) == layout.block_dim ? (shape[d] + layout.block - 1) / layout.block
                                                 : shape[d];
}

/// Converts a blocked layout to strides. Returns false unless all blocks are full and contiguous,
/// so that the blocked dimension has stride one.
bool BlockedAsStrides(const Layout& layout, const Shape& shape, Shape& strides) {
  strides = layout.strides;
  if (layout.block_dim < 0) return true;
  const size_t d = static_cast<size_t>(layout.block_dim);
  if (shape[d] % layout.block != 0) return false;
  if (shape[d] != layout.block && layout.strides[d] != layout.block) return false;
  strides[d] = 1;
  return true;
}

}  // namespace

Layout PlainLayout(const Shape& shape) { return {RowMajorStrides(shape), -1, 1}; }

Layout BlockedLayout(const Shape& shape, int64_t block) {
  Shape blocked = shape;
  blocked[1] = (shape[1] + block - 1) / block;
  Layout layout{RowMajorStrides(blocked), 1, block};
  for (int64_t& stride : layout.strides) stride *= block;
  return layout;
}

Layout ChannelsLastLayout(const Shape& shape) {
  Layout layout{Shape(shape.size()), -1, 1};
  int64_t stride = 1;
  layout.strides[1] = stride;
  stride *= shape[1];
  for (size_t d = shape.size() - 1; d > 1; --d) {
    layout.strides[d] = stride;
    stride *= shape[d];
  }
  layout.strides[0] = stride;
  return layout;
}

bool SamePlacement(const Layout& a, const Layout& b, const Shape& shape) {
  if (a.block_dim == b.block_dim && a.block == b.block) {
    for (size_t d = 0; d < shape.size(); ++d) {
      if (Blocks(a, shape, d) > 1 && a.strides[d] != b.strides[d]) return false;
    }
    return true;
  }
  Shape x, y;
  if (!BlockedAsStrides(a, shape, x) || !BlockedAsStrides(b, shape, y)) return false;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] > 1 && x[d] != y[d]) return false;
  }
  return true;
}

Layout Canonical(const Layout& layout, const Shape& shape) {
  if (const Layout plain = PlainLayout(shape); SamePlacement(layout, plain, shape)) return plain;
  if (shape.size() >= 3) {
    if (const Layout last = ChannelsLastLayout(shape); SamePlacement(layout, last, shape))
      return last;
  }
  return layout;
}

bool IsPadded(const Layout& layout, const Shape& shape) {
  return layout.block_dim >= 0 && shape[static_cast<size_t>(layout.block_dim)] % layout.block != 0;
}

int64_t Span(const Layout& layout, const Shape& shape) {
  int64_t last = layout.block_dim >= 0 ? layout.block - 1 : 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0) return 0;
    last += (Blocks(layout, shape, d) - 1) * layout.strides[d];
  }
  return last + 1;
}

bool IsDense(const Layout& layout, const Shape& shape) {
  int64_t count = layout.block_dim >= 0 ? layout.block : 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] > 1 && layout.strides[d] == 0) return false;
    count *= Blocks(layout, shape, d);
  }
  return Span(layout, shape) == count;
}

bool IsNested(const Layout& layout, const Shape& shape) {
  if (layout.block_dim >= 0) return IsDense(layout, shape);
  std::vector<std::pair<int64_t, int64_t>> steps;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (layout.strides[d] <= 0) return false;
    if (shape[d] > 1) steps.emplace_back(layout.strides[d], shape[d]);
  }
  std::sort(steps.begin(), steps.end());
  for (size_t k = 0; k + 1 < steps.size(); ++k) {
    if (steps[k + 1].first < steps[k].first * steps[k].second) return false;
  }
  return true;
}

std::optional<std::vector<PhysicalDim>> PhysicalOrder(const Layout& layout, const Shape& shape) {
  if (IsPadded(layout, shape) || !IsDense(layout, shape)) return std::nullopt;
  std::vector<size_t> dims;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (Blocks(layout, shape, d) != 1) dims.push_back(d);
  }
  std::stable_sort(dims.begin(), dims.end(),
                   [&](size_t a, size_t b) { return layout.strides[a] > layout.strides[b]; });
  std::vector<PhysicalDim> order;
  for (size_t d : dims) {
    const bool blocked = static_cast<int>(d) == layout.block_dim;
    order.push_back(
        {static_cast<int>(d), false, Blocks(layout, shape, d), blocked ? layout.block : 1});
  }
  if (layout.block_dim >= 0) order.push_back({layout.block_dim, true, layout.block, 1});
  // Dense means that each stride is the product of the extents inside it.
  int64_t expected = 1;
  for (size_t k = order.size(); k-- > 0; expected *= order[k].extent) {
    if (!order[k].in_block && layout.strides[static_cast<size_t>(order[k].dim)] != expected)
      return std::nullopt;
  }
  return order;
}

std::optional<Shape> StridesAlong(const std::vector<PhysicalDim>& order, const Layout& layout,
                                  const Shape& shape, size_t rank) {
  const size_t skip = rank - shape.size();
  Shape strides;
  for (const PhysicalDim& step : order) {
    const size_t d = static_cast<size_t>(step.dim);
    if (d < skip || shape[d - skip] == 1) {
      strides.push_back(0);
      continue;
    }
    const size_t own = d - skip;
    if (static_cast<int>(own) != layout.block_dim) {
      strides.push_back(layout.strides[own] * step.block);
      continue;
    }
    const bool cut = step.in_block || step.block > 1;
    if (cut && (step.in_block ? step.extent : step.block) == layout.block) {
      strides.push_back(step.in_block ? 1 : layout.strides[own]);
    } else if (layout.strides[own] == layout.block) {
      strides.push_back(step.block);  // blocks that follow each other: a plain dimension
    } else {
      return std::nullopt;
    }
  }
  return strides;
}

}  // namespace mendel::cpu
