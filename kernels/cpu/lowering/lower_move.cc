// Operators that only move elements: views where possible, strided copies elsewhere. Any dtype.

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "graph/element_structure.h"
#include "kernels/cpu/kernels/copy.h"
#include "kernels/cpu/kernels/pad.h"
#include "kernels/cpu/lowering/lower.h"
#include "kernels/cpu/memory/strided_layout.h"

namespace mendel::cpu {
namespace {

int64_t ElementBytes(Lowering& lowering, ValueId value) {
  return DTypeSize(lowering.type(value).dtype);
}

/// Modes in which every element is one of the input's: the operator's element structure says which.
bool LowerMirroredPad(Lowering& lowering, int32_t id) {
  const ValueId result{id, 0};
  const ElementStructure* structure = FindElementStructure("Pad");
  MENDEL_CHECK(structure != nullptr && structure->taps != nullptr);
  const std::optional<SeparableTaps> taps = WithView(
      lowering.graph(), id, [&](const NodeView& view) { return structure->taps(view, {}, 0); });
  if (!taps.has_value()) return false;
  const Place from = lowering.Unblocked(lowering.graph().node(id).inputs[0]);
  std::vector<std::vector<int64_t>> sources;
  for (const SeparableTaps::Dim& dim : taps->dims) {
    std::vector<int64_t>& offsets = sources.emplace_back();
    for (const std::vector<Tap>& position : dim.taps) {
      MENDEL_CHECK(position.size() == 1);
      offsets.push_back(position[0].position *
                        from.layout.strides[static_cast<size_t>(dim.input_dim)]);
    }
  }
  const Place to = lowering.Allocate(result, PlainLayout(lowering.shape(result)));
  lowering.Emit({id}, "pad",
                MakeSelectKernel(from, to, std::move(sources), ElementBytes(lowering, result)),
                {from, to});
  return true;
}

/// Returns `part` as a view of `from`: every steps[d]-th index from starts[d] on. It views a copy
/// where that cannot be.
void AliasPart(Lowering& lowering, ValueId from, const Shape& starts, const Shape& steps,
               ValueId part) {
  const Shape& extents = lowering.shape(part);
  const auto cut = [&](StridedLayout view) -> std::optional<StridedLayout> {
    for (size_t d = 0; d < extents.size(); ++d) {
      const std::optional<int64_t> skipped =
          CutDimension(view.dims, d, starts[d], extents[d], steps[d]);
      if (!skipped.has_value()) return std::nullopt;
      view.place.offset += *skipped * ElementBytes(lowering, from);
    }
    return view;
  };
  std::optional<StridedLayout> view = cut(lowering.View(from, true));
  if (!view.has_value()) {
    lowering.Unblocked(from);  // one stride a dimension can always be cut
    view = cut(lowering.View(from));
  }
  MENDEL_CHECK(view.has_value());
  lowering.AliasView(part, *std::move(view));
}

/// Chooses blocks when some part lies in blocks (it is then in place) and the others can follow,
/// else channels-last when the first part does.
Layout ConcatLayout(Lowering& lowering, int32_t id) {
  const Node& node = lowering.graph().node(id);
  const Shape& whole = node.outputs[0].shape;
  Layout layout = PlainLayout(whole);
  if (node.attrs.Int("axis") != 1) return layout;
  bool first = true;
  for (ValueId input : node.inputs) {
    if (lowering.folded().IsConstant(input)) continue;
    const Shape& shape = lowering.shape(input);
    if (lowering.IsStepped(input) && !lowering.Within(input).has_value()) {
      if (first && shape.size() >= 4 && ChannelsAreNearest(lowering.View(input).dims))
        layout = ChannelsLastLayout(whole);
      first = false;
      continue;
    }
    const Layout part = lowering.WithinOrAny(input).layout;
    if (shape.size() < 3 || IsPlain(part, shape)) continue;
    const auto whole_blocks = [&](ValueId v) { return lowering.shape(v)[1] % part.block == 0; };
    const bool within = lowering.Within(input).has_value();
    if (part.block_dim == 1 &&
        (within || SamePlacement(part, BlockedLayout(shape, part.block), shape)) &&
        std::all_of(node.inputs.begin(), node.inputs.end(), whole_blocks)) {
      return lowering.LayoutWithin({id, 0}, part.block).value_or(BlockedLayout(whole, part.block));
    }
    if (first && part.block_dim < 0 && ChannelsAreNearest(StepsOf(part, shape)))
      layout = ChannelsLastLayout(whole);
    first = false;
  }
  return layout;
}

}  // namespace

absl::StatusOr<bool> LowerReshape(Lowering& lowering, int32_t id) {
  const ValueId result{id, 0};
  const ValueId input = lowering.graph().node(id).inputs[0];
  StridedLayout view = lowering.View(input);
  if (std::optional<DimSteps> dims = Reshaped(view.dims, lowering.shape(result));
      dims.has_value()) {
    lowering.AliasView(result, {view.place, *std::move(dims)});
    return true;
  }
  Place place = lowering.Plain(input);
  place.layout = PlainLayout(lowering.shape(result));
  lowering.Alias(result, place);
  return true;
}

absl::StatusOr<bool> LowerTranspose(Lowering& lowering, int32_t id) {
  const Node& node = lowering.graph().node(id);
  const StridedLayout view = lowering.View(node.inputs[0]);
  StridedLayout result{view.place, {}};
  for (const int64_t d : node.attrs.IntList("perm"))
    result.dims.push_back(view.dims[static_cast<size_t>(d)]);
  lowering.AliasView({id, 0}, std::move(result));
  return true;
}

absl::StatusOr<bool> LowerSlice(Lowering& lowering, int32_t id) {
  const Node& node = lowering.graph().node(id);
  const Ints& starts = node.attrs.IntList("starts");
  if (starts.size() != node.outputs[0].shape.size()) return false;
  AliasPart(lowering, node.inputs[0], starts, node.attrs.IntList("steps"), {id, 0});
  return true;
}

absl::StatusOr<bool> LowerSplit(Lowering& lowering, int32_t id) {
  const Node& node = lowering.graph().node(id);
  const size_t axis = static_cast<size_t>(node.attrs.Int("axis"));
  const Shape steps(node.outputs[0].shape.size(), 1);
  Shape starts(steps.size(), 0);
  for (size_t k = 0; k < node.outputs.size(); ++k) {
    AliasPart(lowering, node.inputs[0], starts, steps, {id, static_cast<int32_t>(k)});
    starts[axis] += node.outputs[k].shape[axis];
  }
  return true;
}

absl::StatusOr<bool> LowerExpand(Lowering& lowering, int32_t id) {
  const Node& node = lowering.graph().node(id);
  const ValueId result{id, 0};
  const Place from = lowering.Unblocked(node.inputs[0]);
  const Shape& shape = lowering.shape(node.inputs[0]);
  const Shape& target = node.outputs[0].shape;
  Shape strides(target.size(), 0);
  const size_t skip = target.size() - shape.size();
  for (size_t d = 0; d < shape.size(); ++d)
    strides[skip + d] = shape[d] == 1 ? 0 : from.layout.strides[d];
  const Place to = lowering.Allocate(result, PlainLayout(target));
  lowering.Emit({id}, "copy",
                MakeCopyKernel({{from, to, target, strides, to.layout.strides}},
                               ElementBytes(lowering, result)),
                {from, to});
  return true;
}

absl::StatusOr<bool> LowerConcat(Lowering& lowering, int32_t id) {
  const Node& node = lowering.graph().node(id);
  const ValueId result{id, 0};
  const size_t axis = static_cast<size_t>(node.attrs.Int("axis"));
  const int64_t bytes = ElementBytes(lowering, result);
  const Place to = lowering.Allocate(result, ConcatLayout(lowering, id));
  const bool continued = lowering.Within(result).has_value();
  std::vector<StridedCopy> copies;
  std::vector<Place> touched = {to};
  int64_t at = 0;
  for (ValueId input : node.inputs) {
    const Shape& shape = lowering.shape(input);
    Place target = to;
    target.offset +=
        at / (to.layout.block_dim < 0 ? 1 : to.layout.block) * to.layout.strides[axis] * bytes;
    at += shape[axis];
    if (to.layout.block_dim < 0) {
      const StridedLayout from = lowering.View(input, true);
      touched.push_back(from.place);
      if (from.place.buffer == to.buffer && from.place.offset == target.offset) continue;
      const std::optional<StridedCopy> copy =
          CopyBetween(from, {target, StepsOf(to.layout, shape)});
      MENDEL_CHECK(copy.has_value());  // one stride a dimension can be cut like any other
      copies.push_back(*copy);
      continue;
    }
    const bool within = lowering.Within(input).has_value() &&
                        lowering.Within(input)->layout.block == to.layout.block;
    const Place from = within ? *lowering.Within(input)
                              : lowering.In(input, BlockedLayout(shape, to.layout.block));
    touched.push_back(from);
    if (from.buffer == to.buffer && from.offset == target.offset) continue;
    copies.push_back(BlockedCopy(from, target, shape));
    if (continued) lowering.CopiedWithin(input, target);
  }
  const std::string name =
      copies.empty() ? "in place" : Cat("copy ", copies.size(), " of ", node.inputs.size());
  lowering.Emit({id}, name, MakeCopyKernel(std::move(copies), bytes), touched);
  return true;
}

absl::StatusOr<bool> LowerPad(Lowering& lowering, int32_t id) {
  const Node& node = lowering.graph().node(id);
  const ValueId result{id, 0};
  if (node.attrs.Str("mode") != "constant" && !node.outputs[0].shape.empty())
    return LowerMirroredPad(lowering, id);
  const Shape& shape = lowering.shape(node.inputs[0]);
  const Ints& pads = node.attrs.IntList("pads");
  if (pads.size() != 2 * shape.size()) return false;
  Place from = lowering.Unblocked(node.inputs[0]);
  const int64_t bytes = ElementBytes(lowering, result);
  Shape extents = shape;
  const Place to = lowering.Allocate(result, PlainLayout(node.outputs[0].shape));
  Place target = to;
  for (size_t d = 0; d < shape.size(); ++d) {
    // Negative pads cut.
    const int64_t cut = std::max<int64_t>(0, -pads[d]);
    extents[d] -= cut + std::max<int64_t>(0, -pads[shape.size() + d]);
    from.offset += cut * from.layout.strides[d] * bytes;
    target.offset += std::max<int64_t>(0, pads[d]) * to.layout.strides[d] * bytes;
  }
  // There is nothing to copy when all of the input is cut off.
  std::vector<StridedCopy> copies;
  if (NumElements(extents) > 0)
    copies.push_back({from, target, extents, from.layout.strides, to.layout.strides});
  Fill fill{to, NumElements(node.outputs[0]), 0};
  const Tensor value = Tensor::Scalar(lowering.type(result).dtype, node.attrs.Float("value"));
  std::memcpy(&fill.bits, value.bytes().data(), value.bytes().size());
  lowering.Emit({id}, "pad", MakeFillAndCopyKernel(fill, std::move(copies), bytes), {from, to});
  return true;
}

absl::StatusOr<bool> LowerTrilu(Lowering& lowering, int32_t id) {
  const Node& node = lowering.graph().node(id);
  const Shape& shape = node.outputs[0].shape;
  const int64_t rows = shape[shape.size() - 2];
  const int64_t columns = shape.back();
  const int64_t k = std::clamp(node.attrs.Int("k"), -rows, columns);
  const Place from = lowering.Plain(node.inputs[0]);
  const Place to = lowering.Allocate({id, 0}, PlainLayout(shape));
  lowering.Emit({id}, "triangle",
                MakeTriluKernel(from, to, NumElements(shape) / (rows * columns), rows, columns,
                                node.attrs.Int("upper") != 0, k, ElementBytes(lowering, {id, 0})),
                {from, to}, 0, std::pair{to, from});
  return true;
}

}  // namespace mendel::cpu
