// Resize in the layout in which its input lies, unless the blocked dimension is one that changes.

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "graph/resampling.h"
#include "kernels/cpu/lower.h"
#include "kernels/cpu/resample.h"

namespace mendel::cpu {
namespace {

/// The layout of the same kind for another shape.
std::optional<Layout> LayoutAlike(const Layout& layout, const Shape& shape, const Shape& other) {
  if (IsPlain(layout, shape)) return PlainLayout(other);
  if (layout.block_dim == 1 && SamePlacement(layout, BlockedLayout(shape, layout.block), shape)) {
    return BlockedLayout(other, layout.block);
  }
  if (shape.size() > 2 && SamePlacement(layout, ChannelsLastLayout(shape), shape)) return ChannelsLastLayout(other);
  return std::nullopt;
}

/// Passes over a dense tensor whose loops are `order`, those that shrink it first and those that let it grow most last; of equals
/// the innermost first, whose loops are the slowest.
std::vector<ResamplePass> MakePasses(const std::vector<PhysicalDim>& order, std::map<int, std::vector<ResampleTaps>> taps) {
  std::vector<size_t> sequence;
  std::vector<int64_t> extents;
  for (size_t k = 0; k < order.size(); ++k) {
    extents.push_back(order[k].extent);
    if (taps.count(order[k].dim) > 0) sequence.push_back(k);
  }
  const auto growth = [&](size_t k) {
    return static_cast<double>(taps.at(order[k].dim).size()) / static_cast<double>(order[k].extent);
  };
  std::sort(sequence.begin(), sequence.end(),
            [&](size_t a, size_t b) { return growth(a) != growth(b) ? growth(a) < growth(b) : a > b; });
  std::vector<ResamplePass> passes;
  for (const size_t k : sequence) {
    ResamplePass pass;
    for (size_t d = 0; d < extents.size(); ++d) (d < k ? pass.outer : d == k ? pass.in : pass.inner) *= extents[d];
    pass.taps = std::move(taps.at(order[k].dim));
    extents[k] = pass.out();
    passes.push_back(std::move(pass));
  }
  return passes;
}

}  // namespace

absl::StatusOr<bool> LowerResize(Lowering& lowering, int32_t id) {
  const Node& node = lowering.graph().node(id);
  const ValueId input = node.inputs[0];
  const Shape& shape = lowering.shape(input);
  const Shape& resized = node.outputs[0].shape;
  if (lowering.type(input).dtype != DType::kF32 || NumElements(resized) == 0 || NumElements(shape) == 0) return false;
  std::map<int, std::vector<ResampleTaps>> taps;
  for (size_t d = 0; d < shape.size(); ++d) {
    std::vector<ResampleTaps> along =
        WithView(lowering.graph(), id, [&](const NodeView& view) { return ResampleDimension(view, d); });
    if (!IsIdentity(along, shape[d])) taps.emplace(static_cast<int>(d), std::move(along));
  }
  // What goes to the caller is row-major in the end: better the input than the (often larger) output is reordered.
  Place from = lowering.GoesToOutput({id, 0}) ? lowering.Plain(input) : lowering.Any(input);
  std::optional<Layout> layout = LayoutAlike(from.layout, shape, resized);
  std::optional<std::vector<PhysicalDim>> order = PhysicalOrder(from.layout, shape);
  if (!layout.has_value() || !order.has_value() || taps.count(from.layout.block_dim) > 0) {
    from = lowering.Plain(input);
    layout = PlainLayout(resized);
    order = PhysicalOrder(from.layout, shape);
  }
  if (taps.empty()) {
    lowering.Alias({id, 0}, from);
    return true;
  }
  const std::vector<ResamplePass> passes = MakePasses(*order, std::move(taps));
  const Place to = lowering.Allocate({id, 0}, *layout);
  const int64_t scratch = ResampleScratchFloats(passes) * static_cast<int64_t>(sizeof(float));
  lowering.Emit({id}, "resample", MakeResampleKernel(passes, node.attrs.Float("extrapolation_value"), from, to), {from, to},
                scratch);
  return true;
}

}  // namespace mendel::cpu
