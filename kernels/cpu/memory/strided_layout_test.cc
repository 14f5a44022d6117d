#include "kernels/cpu/memory/strided_layout.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"

namespace mendel::cpu {
namespace {

/// A view, and the offset of every element in row-major order, moved by the definitions.
struct Followed {
  Shape shape;
  DimSteps dims;
  int64_t offset = 0;
  std::vector<int64_t> offsets;
};

std::vector<int64_t> OffsetsOf(const DimSteps& dims, int64_t offset) {
  std::vector<int64_t> offsets = {offset};
  for (const std::vector<DimStep>& steps : dims) {
    for (const DimStep& step : steps) {
      std::vector<int64_t> next;
      for (int64_t at : offsets) {
        for (int64_t i = 0; i < step.extent; ++i) next.push_back(at + i * step.stride);
      }
      offsets = std::move(next);
    }
  }
  return offsets;
}

Layout RandomLayout(Rng& rng, const Shape& shape) {
  if (shape.size() >= 2 && shape[1] % 8 == 0 && rng.Flip()) return BlockedLayout(shape, 8);
  return shape.size() >= 3 && rng.Flip() ? ChannelsLastLayout(shape) : PlainLayout(shape);
}

Shape RandomShape(Rng& rng) {
  Shape shape(static_cast<size_t>(rng.Between(1, 4)));
  for (int64_t& extent : shape) extent = rng.Between(1, 6);
  if (shape.size() >= 2 && rng.Flip()) shape[1] = 8 * rng.Between(1, 3);
  return shape;
}

Followed Start(Rng& rng) {
  Followed view;
  view.shape = RandomShape(rng);
  const Layout layout = RandomLayout(rng, view.shape);
  view.dims = StepsOf(layout, view.shape);
  Shape index(view.shape.size(), 0);
  for (int64_t k = 0; k < NumElements(view.shape); ++k) {
    int64_t at = 0;
    for (size_t d = 0; d < index.size(); ++d) {
      const bool blocked = static_cast<int>(d) == layout.block_dim;
      at += blocked ? index[d] / layout.block * layout.strides[d] + index[d] % layout.block
                    : index[d] * layout.strides[d];
    }
    view.offsets.push_back(at);
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < view.shape[d]) break;
      index[d] = 0;
    }
  }
  return view;
}

void Transpose(Rng& rng, Followed& view) {
  std::vector<size_t> order(view.shape.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::swap(order[0], order[rng.Below(order.size())]);
  Followed result;
  const Shape strides = RowMajorStrides(view.shape);
  std::vector<int64_t> positions = {0};
  for (size_t d : order) {
    result.shape.push_back(view.shape[d]);
    result.dims.push_back(view.dims[d]);
    std::vector<int64_t> next;
    for (int64_t at : positions) {
      for (int64_t i = 0; i < view.shape[d]; ++i) next.push_back(at + i * strides[d]);
    }
    positions = std::move(next);
  }
  for (int64_t at : positions) result.offsets.push_back(view.offsets[static_cast<size_t>(at)]);
  result.offset = view.offset;
  view = std::move(result);
}

/// Returns whether it was a view.
bool Reshape(Rng& rng, Followed& view) {
  Shape to;
  int64_t left = NumElements(view.shape);
  for (int64_t factor = 2; left > 1; ++factor) {
    for (; left % factor == 0; left /= factor)
      to.insert(to.begin() + static_cast<int64_t>(rng.Below(to.size() + 1)), factor);
  }
  while (to.size() > 4 || (to.size() > 1 && rng.Flip())) {
    const size_t at = rng.Below(to.size() - 1);
    to[at] *= to[at + 1];
    to.erase(to.begin() + static_cast<int64_t>(at) + 1);
  }
  if (to.empty() || rng.Flip(0.3)) to.insert(to.begin(), 1);
  const std::optional<DimSteps> dims = Reshaped(view.dims, to);
  if (!dims.has_value()) return false;
  view.shape = std::move(to);
  view.dims = *dims;
  return true;
}

/// Returns whether it was a view.
bool Cut(Rng& rng, Followed& view) {
  const size_t axis = rng.Below(view.shape.size());
  const int64_t extent = view.shape[axis];
  const int64_t count = rng.Between(1, extent);
  int64_t start = rng.Between(0, extent - count);
  int64_t step = 1;
  if (rng.Flip(0.2)) {
    start = extent - 1;
    step = -1;
  }
  const DimSteps before = view.dims;
  const std::optional<int64_t> skipped = CutDimension(view.dims, axis, start, count, step);
  if (!skipped.has_value()) {
    EXPECT_GT(view.dims[axis].size(), 1u);
    EXPECT_EQ(OffsetsOf(view.dims, view.offset), OffsetsOf(before, view.offset));
    return false;
  }
  view.offset += *skipped;
  const int64_t inner = RowMajorStrides(view.shape)[axis];
  std::vector<int64_t> offsets;
  for (int64_t outer = 0; outer < static_cast<int64_t>(view.offsets.size()) / (extent * inner);
       ++outer) {
    for (int64_t k = 0; k < count; ++k) {
      const auto from = view.offsets.begin() + (outer * extent + start + k * step) * inner;
      offsets.insert(offsets.end(), from, from + inner);
    }
  }
  view.offsets = std::move(offsets);
  view.shape[axis] = count;
  return true;
}

TEST(StridedLayout, FollowsTheDefinitions) {
  int views = 0, refused = 0, layouts = 0;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed);
    Followed view = Start(rng);
    ASSERT_EQ(OffsetsOf(view.dims, view.offset), view.offsets);
    for (int64_t k = rng.Between(1, 6); k > 0; --k) {
      const uint64_t kind = rng.Below(3);
      if (kind == 0) Transpose(rng, view);
      const bool is_view = kind == 0 || (kind == 1 ? Reshape(rng, view) : Cut(rng, view));
      (is_view ? views : refused) += 1;
      ASSERT_EQ(OffsetsOf(view.dims, view.offset), view.offsets);
      const std::optional<Layout> layout = LayoutOfSteps(view.dims, view.shape);
      if (!layout.has_value()) continue;
      ++layouts;
      ASSERT_EQ(OffsetsOf(StepsOf(*layout, view.shape), view.offset), view.offsets);
    }
  }
  EXPECT_GT(views, 500);
  EXPECT_GT(refused, 50);
  EXPECT_GT(layouts, 500);
}

TEST(StridedLayout, CopiesBetweenViewsMoveEveryElement) {
  int copied = 0, refused = 0;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed);
    Followed from = Start(rng);
    for (int64_t k = rng.Between(0, 4); k > 0; --k) {
      Transpose(rng, from);
      Reshape(rng, from);
    }
    const Layout layout = RandomLayout(rng, from.shape);
    const std::optional<StridedCopy> copy =
        CopyBetween({{}, from.dims}, {{}, StepsOf(layout, from.shape)});
    if (!copy.has_value()) {
      EXPECT_EQ(layout.block_dim, 1);
      ++refused;
      continue;
    }
    ++copied;
    std::vector<int64_t> moved(from.offsets.size(), -1);
    DimSteps source, target;
    for (size_t d = 0; d < copy->extents.size(); ++d) {
      source.push_back({{copy->extents[d], copy->from_strides[d]}});
      target.push_back({{copy->extents[d], copy->to_strides[d]}});
    }
    const std::vector<int64_t> reads = OffsetsOf(source, 0), writes = OffsetsOf(target, 0);
    ASSERT_EQ(reads.size(), from.offsets.size());
    for (size_t i = 0; i < writes.size(); ++i) moved[static_cast<size_t>(writes[i])] = reads[i];
    const std::vector<int64_t> lies = OffsetsOf(StepsOf(layout, from.shape), 0);
    for (size_t i = 0; i < lies.size(); ++i)
      ASSERT_EQ(moved[static_cast<size_t>(lies[i])], from.offsets[i] - from.offset);
  }
  EXPECT_GT(copied, 300);
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace mendel::cpu
