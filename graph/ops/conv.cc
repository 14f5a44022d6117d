// Conv(x[N, C, D...], w[O, C / group, K...], bias[O]?): cross-correlation with zero padding, 1-D to
// 3-D and beyond. y[n, o, p...] = bias[o] + sum over c, k of w[o, c, k...] * x[n, g * C / group +
// c, p * stride - pad + k * dilation].

#include <algorithm>
#include <memory>

#include "base/ball_gemm.h"
#include "base/parallel.h"
#include "base/status.h"
#include "graph/contraction.h"
#include "graph/fill.h"
#include "graph/grid.h"
#include "graph/op_helpers.h"
#include "graph/window.h"
#include "graph/window_grid.h"

namespace mendel::ops::conv {
namespace {

Shape Spatial(const Shape& shape) { return Shape(shape.begin() + 2, shape.end()); }

std::vector<Window> Windows(const NodeView& node) {
  return WindowsOf(Spatial(node.inputs[0].shape), Spatial(node.inputs[1].shape), node.attrs);
}

/// Columns of the im2col matrix: for positions [begin, end) of one image and group, rows (c, k...)
/// by positions.
template <class From, class S>
void GatherColumns(const From* image, int64_t channels, const Shape& spatial, const Shape& kernel,
                   const Shape& out_spatial, const std::vector<Window>& windows, int64_t begin,
                   int64_t end, S* columns) {
  const size_t rank = spatial.size();
  const int64_t plane = NumElements(spatial);
  const int64_t count = end - begin;
  std::array<int64_t, kMaxRank> tap_storage{};
  const std::span<int64_t> tap(tap_storage.data(), rank);
  int64_t row = 0;
  do {
    std::vector<int64_t> offsets(static_cast<size_t>(count),
                                 -1);  // of each position under this tap; -1: padding
    std::array<int64_t, kMaxRank> position_storage{};
    const std::span<int64_t> position(position_storage.data(), rank);
    for (int64_t rest = begin, d = static_cast<int64_t>(rank) - 1; d >= 0; --d) {
      position[static_cast<size_t>(d)] = rest % out_spatial[static_cast<size_t>(d)];
      rest /= out_spatial[static_cast<size_t>(d)];
    }
    for (int64_t& offset : offsets) {
      int64_t flat = 0;
      bool inside = true;
      for (size_t d = 0; d < rank; ++d) {
        const int64_t at = windows[d].Position(position[d], tap[d]);
        inside = inside && at >= 0 && at < spatial[d];
        flat = flat * spatial[d] + at;
      }
      if (inside) offset = flat;
      NextIndex(out_spatial, position);
    }
    const int64_t taps = NumElements(kernel);
    for (int64_t c = 0; c < channels; ++c) {
      S* out = columns + (c * taps + row) * count;
      const From* in = image + c * plane;
      for (int64_t j = 0; j < count; ++j) {
        const int64_t offset = offsets[static_cast<size_t>(j)];
        out[j] = offset < 0 ? S{} : S{in[offset]};
      }
    }
    ++row;
  } while (NextIndex(kernel, tap));
}

/// Fewer columns do not repay cutting the operands of balls.
constexpr int64_t kWorthSlicing = 4;

struct ConvMeaning {
  template <class S>
  static void Fill(const Reader<S>& in, const NodeView& node, int, std::span<S> out) {
    const Shape& x = in.shape(0);
    const Shape& w = in.shape(1);
    const Shape& y = node.outputs[0].shape;
    const int64_t groups = node.attrs.Int("group");
    const int64_t out_channels = w[0] / groups;
    const int64_t depth = NumElements(w) / std::max<int64_t>(1, w[0]);
    const int64_t positions = NumElements(Spatial(y));
    const std::vector<Window> windows = Windows(node);
    std::vector<S> loaded_data, loaded_weights;
    const S* const data = AllElements(in, 0, loaded_data);
    const int64_t tile = TileFor<S>(out_channels, depth);
    const int64_t tiles = (positions + tile - 1) / tile;
    // Tiles that are too few for the threads are each gathered for several strips of output
    // channels. That keeps all threads busy.
    const bool by_groups = std::is_same_v<S, Ball> &&
                           groups > 1;  // a block of BallProducts is a group then, else a strip
    const int64_t wanted =
        by_groups ? 1 : Parallelism() / std::max<int64_t>(1, x[0] * groups * tiles);
    const int64_t strips = std::clamp<int64_t>(wanted, 1, std::max<int64_t>(1, out_channels));
    const int64_t strip = (out_channels + strips - 1) / strips;
    std::unique_ptr<const BallProducts> products;
    if constexpr (std::is_same_v<S, Ball>) {
      if (positions >= kWorthSlicing)
        products = Products(in.operand(1), w[0], depth, strip, data, NumElements(x));
    }
    const S* const weights = products == nullptr ? AllElements(in, 1, loaded_weights) : nullptr;
    auto* const context = ScalarScope<S>::Current();
    ParallelFor(x[0] * groups * tiles * strips, [&](int64_t job) {
      const ScalarScope<S> scope(context);
      const int64_t first = job % strips * strip;
      const int64_t channels = std::min(out_channels, first + strip) - first;
      if (channels <= 0) return;
      const int64_t begin = job / strips % tiles * tile;
      const int64_t end = std::min(positions, begin + tile);
      const int64_t group = job / strips / tiles % groups;
      const int64_t n = job / strips / tiles / groups;
      const int64_t image = (n * x[1] + group * w[1]) * NumElements(Spatial(x));
      const auto gather = [&](const auto* from, auto* columns) {
        GatherColumns(from + image, w[1], Spatial(x), Spatial(w), Spatial(y), windows, begin, end,
                      columns);
      };
      S* result = out.data() + (n * y[1] + group * out_channels + first) * positions + begin;
      if (products == nullptr) {
        MultiplyGathered(
            weights + (group * out_channels + first) * depth, channels, depth, end - begin,
            [&](S* columns) { gather(data, columns); }, result, positions);
      } else if constexpr (std::is_same_v<S, Ball>) {
        products->Multiply(by_groups ? group : job % strips, end - begin, gather, result,
                           positions);
      }
      for (int64_t o = 0; in.size() > 2 && o < channels; ++o) {
        const S bias = in.Flat(2, group * out_channels + first + o);
        for (int64_t j = 0; j < end - begin; ++j) result[o * positions + j] += bias;
      }
    });
  }

  /// Weights stay numbers where the elements are balls.
  static std::unique_ptr<const BallProducts> Products(const Operand<Ball>& weights, int64_t rows,
                                                      int64_t depth, int64_t block,
                                                      const Ball* image, int64_t size) {
    return weights.exact != nullptr
               ? BallProducts::Make(weights.exact, rows, depth, block, image, size)
               : BallProducts::Make(weights.scalars, rows, depth, block, image, size);
  }

  /// result[channels x count] = weights[channels x depth] * the columns that `gather` writes.
  template <class S, class Gather>
  static void MultiplyGathered(const S* weights, int64_t channels, int64_t depth, int64_t count,
                               const Gather& gather, S* result, int64_t ldc) {
    const size_t size = static_cast<size_t>(depth * count);
    // The buffer is kept between jobs: the system takes back and clears the pages of large blocks.
    // Balls would keep digits elsewhere.
    thread_local std::vector<S> kept;
    std::vector<S> own(std::is_same_v<S, Ball> ? size : 0);
    std::vector<S>& columns = std::is_same_v<S, Ball> ? own : kept;
    if (columns.size() < size) columns.resize(size);
    gather(columns.data());
    Gemm(channels, count, depth, weights, depth, columns.data(), count, result, ldc, false);
  }

  /// Columns per job. Products of balls consist of a dozen parts; with few columns, packing the
  /// weights takes longer than they do.
  template <class S>
  static int64_t TileFor(int64_t out_channels, int64_t depth) {
    constexpr bool kBalls = std::is_same_v<S, Ball>;
    constexpr int64_t kTileElements = int64_t{1} << (kBalls ? 19 : 20);
    constexpr int64_t kLeastTile = kBalls ? 192 : 16;
    const int64_t extent = std::max({int64_t{1}, depth, kBalls ? 8 * out_channels : 0});
    return std::clamp<int64_t>(kTileElements / extent, kLeastTile, 4096);
  }
};

TypesOr Infer(std::span<const TensorType> inputs, const Attributes& attrs) {
  const Shape& x = inputs[0].shape;
  const Shape& w = inputs[1].shape;
  const int64_t group = attrs.Int("group");
  if (x.size() < 3 || w.size() != x.size()) {
    return InvalidInput("input ", ShapeString(x), " and weight ", ShapeString(w),
                        " must have one rank of at least 3");
  }
  for (const TensorType& input : inputs) {
    if (input.dtype != inputs[0].dtype || !IsFloat(input.dtype))
      return InvalidInput("operands must have one float dtype");
  }
  if (group < 1 || w[0] % group != 0 || x[1] != w[1] * group) {
    return InvalidInput("weight ", ShapeString(w), " with group ", group, " does not fit input ",
                        ShapeString(x));
  }
  if (inputs.size() > 2 && inputs[2].shape != Shape{w[0]})
    return InvalidInput("bias must be ", w[0], ", not ", ShapeString(inputs[2].shape));
  MENDEL_ASSIGN_OR_RETURN(const std::vector<Window> windows,
                          MakeWindows(Spatial(x), Spatial(w), attrs));
  TensorType type{inputs[0].dtype, {x[0], w[0]}};
  for (const Window& window : windows) type.shape.push_back(window.OutputExtent());
  return std::vector<TensorType>{type};
}

Bound BoundOf(const NodeView& node, std::span<const Bound> inputs, int, const Arithmetic<Bound>&) {
  const Shape& w = node.inputs[1].shape;
  const Bound sum =
      SumOf(static_cast<double>(NumElements(w)) / static_cast<double>(std::max<int64_t>(1, w[0])),
            inputs[0] * inputs[1]);
  return inputs.size() > 2 ? sum + inputs[2] : sum;
}

Cost CostOfConv(const NodeView& node) {
  Cost cost;
  const Shape& w = node.inputs[1].shape;
  cost.flops = 2.0 * static_cast<double>(NumElements(node.outputs[0])) *
               static_cast<double>(NumElements(w)) /
               static_cast<double>(std::max<int64_t>(1, w[0]));
  for (const TensorType& type : node.inputs) cost.bytes += static_cast<double>(ByteSize(type));
  cost.bytes += static_cast<double>(ByteSize(node.outputs[0]));
  return cost;
}

/// Any box of images, rows and columns; a channel box must lie within one group or consist of whole
/// groups.
std::optional<Restriction> Restrict(const NodeView& node, const Box& out) {
  const Shape& w = node.inputs[1].shape;
  const size_t rank = w.size();
  const int64_t per_group = w[0] / node.attrs.Int("group");
  const int64_t first_group = out.begin[1] / per_group;
  const int64_t last_group = (out.end[1] - 1) / per_group;
  const bool whole_groups = out.begin[1] % per_group == 0 && out.end[1] % per_group == 0;
  if (first_group != last_group && !whole_groups) return std::nullopt;
  Restriction result{{Box::Whole(node.inputs[0].shape), Box::Whole(w)}, node.attrs};
  Box& x_box = result.inputs[0];
  x_box.begin[0] = out.begin[0];
  x_box.end[0] = out.end[0];
  x_box.begin[1] = first_group * w[1];
  x_box.end[1] = (last_group + 1) * w[1];
  result.inputs[1].begin[0] = out.begin[1];
  result.inputs[1].end[0] = out.end[1];
  result.attrs.Set("group", last_group - first_group + 1);
  const std::vector<Window> windows = Windows(node);
  Ints pads(2 * (rank - 2));
  for (size_t d = 0; d + 2 < rank; ++d) {
    const std::optional<WindowCut> cut = CutWindow(windows[d], out.begin[d + 2], out.end[d + 2]);
    if (!cut.has_value()) return std::nullopt;
    x_box.begin[d + 2] = cut->begin;
    x_box.end[d + 2] = cut->end;
    pads[d] = cut->window.pad_begin;
    pads[rank - 2 + d] = cut->window.pad_end;
  }
  result.attrs.Set("pads", pads);
  if (node.inputs.size() > 2) result.inputs.push_back({{out.begin[1]}, {out.end[1]}});
  return result;
}

/// Output channels of several groups: all of the groups that are met.
void RestrictGroups(const NodeView& node, const Positions& wanted, GridRestriction& result) {
  const Shape& w = node.inputs[1].shape;
  const int64_t group = node.attrs.Int("group");
  const int64_t per_group = w[0] / group;
  if (group == 1) {
    result.computed[1] = wanted;
    return;
  }
  std::vector<int64_t> inputs, outputs;
  int64_t met = 0, last = -1;
  for (int64_t i = 0; i < wanted.size(); ++i) {
    const int64_t g = wanted[i] / per_group;
    if (g == last) continue;
    last = g;
    ++met;
    for (int64_t k = 0; k < per_group; ++k) outputs.push_back(g * per_group + k);
    for (int64_t k = 0; k < w[1]; ++k) inputs.push_back(g * w[1] + k);
  }
  result.computed[1] = Positions::List(std::move(outputs));
  result.inputs[0][1] = Positions::List(std::move(inputs));
  result.attrs.Set("group", met);
}

/// Any images, channels and positions; taps that read only padding are left out.
std::optional<GridRestriction> RestrictGrid(const GridRequest& request) {
  const NodeView& node = request.node;
  GridRestriction result = WholeRestriction(node, 0);
  RestrictGroups(node, request.wanted[1], result);
  result.computed[0] = result.inputs[0][0] = request.wanted[0];
  result.inputs[1][0] = result.computed[1];
  if (node.inputs.size() > 2) result.inputs[2][0] = result.computed[1];
  const std::vector<Window> windows = Windows(node);
  const size_t rank = windows.size();
  Ints strides(rank), dilations(rank), pads(2 * rank);
  for (size_t d = 0; d < rank; ++d) {
    const auto cut = RestrictWindow(windows[d], request.wanted[d + 2], true, true);
    if (!cut.has_value()) return std::nullopt;
    result.computed[d + 2] = cut->computed;
    result.inputs[0][d + 2] = cut->input;
    result.inputs[1][d + 2] = Positions::Range(cut->first_tap, cut->window.kernel);
    strides[d] = cut->window.stride;
    dilations[d] = cut->window.dilation;
    pads[d] = cut->window.pad_begin;
    pads[rank + d] = cut->window.pad_end;
  }
  result.attrs.Set("strides", strides);
  result.attrs.Set("dilations", dilations);
  result.attrs.Set("pads", pads);
  return result;
}

/// The channel is a reduction over a whole group; group seams are breaks.
std::optional<AccessPattern> Access(const NodeView& node) {
  const size_t rank = node.outputs[0].shape.size();
  AccessPattern pattern;
  pattern.combine = AccessPattern::Combine::kProduct;
  pattern.breaks.resize(rank);
  const int64_t group = node.attrs.Int("group");
  const int64_t per_group = node.inputs[1].shape[0] / group;
  for (int64_t g = 1; g < group; ++g) pattern.breaks[1].push_back(g * per_group);
  DimAccess all;
  all.coefficients.assign(rank, 0);
  all.whole = true;
  DimAccess image = all;
  image.whole = false;
  image.coefficients[0] = 1;
  DimAccess out_channel = all;
  out_channel.whole = false;
  out_channel.coefficients[1] = 1;
  InputAccess x{{image, all}};
  InputAccess w{std::vector<DimAccess>(rank, all)};
  w.dims[0] = out_channel;
  const std::vector<Window> windows = Windows(node);
  for (size_t d = 0; d < windows.size(); ++d)
    x.dims.push_back(WindowAccess(windows[d], d + 2, rank));
  pattern.inputs = {x, w};
  if (node.inputs.size() > 2) {
    pattern.inputs.push_back({{out_channel}});
    pattern.terms = {{0, 1}, {2}};
  }
  return pattern;
}

OpSample Sample(Rng& rng) {
  const size_t spatial = static_cast<size_t>(rng.Between(1, 3));
  const int64_t group = rng.Flip(0.3) ? rng.Between(2, 3) : 1;
  Shape x = {rng.Between(1, 3), group * rng.Between(1, 3)};
  Shape w = {group * rng.Between(1, 4), x[1] / group};
  Ints strides, dilations, pads(2 * spatial);
  for (size_t d = 0; d < spatial; ++d) {
    const int64_t kernel = rng.Between(1, spatial == 3 ? 3 : 5);
    dilations.push_back(rng.Between(1, 2));
    strides.push_back(rng.Between(1, 3));
    pads[d] = rng.Between(0, kernel);
    pads[spatial + d] = rng.Between(0, kernel);
    const int64_t least =
        std::max<int64_t>(1, dilations[d] * (kernel - 1) + 1 - pads[d] - pads[spatial + d]);
    x.push_back(rng.Between(least, least + 7));
    w.push_back(kernel);
  }
  OpSample sample{
      {{DType::kF32, x}, {DType::kF32, w}},
      {{"strides", strides}, {"dilations", dilations}, {"pads", pads}, {"group", group}},
      {}};
  if (rng.Flip()) sample.inputs.push_back({DType::kF32, {w[0]}});
  return sample;
}

OpDefinition Make() {
  OpDefinition op;
  op.name = "Conv";
  op.min_inputs = 2;
  op.max_inputs = 3;
  op.attributes = {{"strides", Ints(), true},
                   {"dilations", Ints(), true},
                   {"pads", Ints(), true},
                   {"group", int64_t{1}}};
  op.infer = &Infer;
  op.meaning = MeaningOf<ConvMeaning>();
  op.linear_inputs = [](const NodeView& node) { return node.inputs.size() > 2 ? 0u : 3u; };
  op.bound = &BoundOf;
  op.cost = &CostOfConv;
  op.restrict = &Restrict;
  op.access = &Access;
  op.sample = &Sample;
  return op;
}

MENDEL_REGISTER_OP(&Make);
MENDEL_REGISTER_GRID_STRUCTURE({.op = "Conv", .restrict = &RestrictGrid});

}  // namespace
}  // namespace mendel::ops::conv
