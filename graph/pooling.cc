#include "graph/pooling.h"

#include <algorithm>

#include "base/status.h"

namespace mendel {
namespace {

Shape Spatial(const Shape& shape) { return Shape(shape.begin() + 2, shape.end()); }

Cost CostOfPool(const NodeView& node) {
  return {static_cast<double>(NumElements(node.outputs[0])) * PoolTaps(node),
          static_cast<double>(ByteSize(node.inputs[0])) +
              static_cast<double>(ByteSize(node.outputs[0]))};
}

/// Taps of `window` at `output` that lie in [-before, input + after).
int64_t TapsWithin(const Window& window, int64_t output, int64_t before, int64_t after) {
  int64_t taps = 0;
  for (int64_t k = 0; k < window.kernel; ++k) {
    const int64_t at = window.Position(output, k);
    if (at >= -before && at < window.input + after) ++taps;
  }
  return taps;
}

}  // namespace

std::vector<Window> PoolWindows(const NodeView& node) {
  return WindowsOf(Spatial(node.inputs[0].shape), node.attrs.IntList("kernel_shape"), node.attrs);
}

double PoolTaps(const NodeView& node) {
  return static_cast<double>(NumElements(node.attrs.IntList("kernel_shape")));
}

PoolGeometry::PoolGeometry(const NodeView& node) {
  const std::vector<Window> windows = PoolWindows(node);
  const Shape spatial = Spatial(node.inputs[0].shape);
  const Shape out_spatial = Spatial(node.outputs[0].shape);
  const Shape& kernel = node.attrs.IntList("kernel_shape");
  const size_t rank = spatial.size();
  plane = NumElements(spatial);
  Shape position(rank, 0), tap(rank, 0);
  start.push_back(0);
  for (int64_t o = NumElements(out_spatial); o > 0; --o) {
    int64_t padded = 1;
    for (size_t d = 0; d < rank; ++d)
      padded *= TapsWithin(windows[d], position[d], windows[d].pad_begin, windows[d].pad_end);
    padded_size.push_back(padded);
    do {
      int64_t flat = 0;
      bool inside = true;
      for (size_t d = 0; d < rank && inside; ++d) {
        const int64_t at = windows[d].Position(position[d], tap[d]);
        inside = at >= 0 && at < spatial[d];
        flat = flat * spatial[d] + at;
      }
      if (inside) offsets.push_back(flat);
    } while (NextIndex(kernel, tap));
    start.push_back(static_cast<int64_t>(offsets.size()));
    NextIndex(out_spatial, position);
  }
}

TypesOr InferPool(std::span<const TensorType> inputs, const Attributes& attrs) {
  const Shape& x = inputs[0].shape;
  if (x.size() < 3)
    return InvalidInput("input ", ShapeString(x), " must have a rank of at least 3");
  if (inputs[0].dtype == DType::kBool)
    return InvalidInput("expected numbers, not ", TypeString(inputs[0]));
  const int64_t ceil_mode = attrs.Int("ceil_mode");
  if (ceil_mode != 0 && ceil_mode != 1)
    return InvalidInput("ceil_mode must be 0 or 1, not ", ceil_mode);
  MENDEL_ASSIGN_OR_RETURN(const std::vector<Window> windows,
                          MakeWindows(Spatial(x), attrs.IntList("kernel_shape"), attrs));
  TensorType type{inputs[0].dtype, {x[0], x[1]}};
  for (const Window& window : windows)
    type.shape.push_back(ceil_mode != 0 ? window.CeilOutputExtent() : window.OutputExtent());
  return std::vector<TensorType>{type};
}

TypesOr InferPoolFloat(std::span<const TensorType> inputs, const Attributes& attrs) {
  if (!IsFloat(inputs[0].dtype))
    return InvalidInput("expected a float tensor, not ", TypeString(inputs[0]));
  return InferPool(inputs, attrs);
}

std::optional<Restriction> RestrictPool(const NodeView& node, const Box& out, bool count_padding) {
  Restriction result{{out}, node.attrs};
  const std::vector<Window> windows = PoolWindows(node);
  Ints pads(2 * windows.size());
  for (size_t d = 0; d < windows.size(); ++d) {
    const std::optional<WindowCut> cut = CutWindow(windows[d], out.begin[d + 2], out.end[d + 2]);
    if (!cut.has_value() || (count_padding && cut->window.pad_end > windows[d].pad_end))
      return std::nullopt;
    result.inputs[0].begin[d + 2] = cut->begin;
    result.inputs[0].end[d + 2] = cut->end;
    pads[d] = cut->window.pad_begin;
    pads[windows.size() + d] = cut->window.pad_end;
  }
  result.attrs.Set("pads", pads);
  result.attrs.Set("ceil_mode", int64_t{0});
  return result;
}

AccessPattern PoolAccess(const NodeView& node, AccessPattern::Combine combine) {
  const size_t rank = node.outputs[0].shape.size();
  AccessPattern pattern;
  pattern.combine = combine;
  pattern.breaks.resize(rank);
  InputAccess access = BroadcastAccess(node.outputs[0].shape, rank);
  access.dims.resize(2);
  for (size_t d = 0; d < 2; ++d) access.dims[d].coefficients[d] = 1;
  const std::vector<Window> windows = PoolWindows(node);
  for (size_t d = 0; d < windows.size(); ++d)
    access.dims.push_back(WindowAccess(windows[d], d + 2, rank));
  pattern.inputs = {access};
  return pattern;
}

OpSample SamplePool(Rng& rng) {
  const size_t spatial = static_cast<size_t>(rng.Between(1, 3));
  Shape x = {rng.Between(1, 2), rng.Between(1, 3)};
  Ints kernel, strides, dilations, pads(2 * spatial);
  for (size_t d = 0; d < spatial; ++d) {
    kernel.push_back(rng.Between(1, spatial == 3 ? 2 : 4));
    strides.push_back(rng.Between(1, 3));
    dilations.push_back(rng.Between(1, 2));
    pads[d] = rng.Between(0, kernel[d] - 1);
    pads[spatial + d] = rng.Between(0, kernel[d] - 1);
    const int64_t least =
        std::max<int64_t>(1, dilations[d] * (kernel[d] - 1) + 1 - pads[d] - pads[spatial + d]);
    x.push_back(rng.Between(least, least + (spatial == 3 ? 3 : 7)));
  }
  return {{{DType::kF32, x}},
          {{"kernel_shape", kernel},
           {"strides", strides},
           {"dilations", dilations},
           {"pads", pads},
           {"ceil_mode", rng.Between(0, 1)}},
          {}};
}

OpDefinition PoolOp(std::string_view name) {
  OpDefinition op;
  op.name = name;
  op.min_inputs = op.max_inputs = 1;
  op.attributes = {{"kernel_shape", Ints(), true},
                   {"strides", Ints(), true},
                   {"dilations", Ints(), true},
                   {"pads", Ints(), true},
                   {"ceil_mode", int64_t{0}}};
  op.infer = &InferPoolFloat;
  op.cost = &CostOfPool;
  op.restrict = [](const NodeView& node, const Box& out) { return RestrictPool(node, out, false); };
  op.access = [](const NodeView& node) {
    return std::optional(PoolAccess(node, AccessPattern::Combine::kOracle));
  };
  op.sample = &SamplePool;
  return op;
}

}  // namespace mendel
