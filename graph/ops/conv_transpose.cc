// ConvTranspose(x[N, C, D...], w[C, O / group, K...], bias[O]?): the transpose of Conv's map.
// y[n, o, q...] = bias[o] + sum over c, p, k with p * stride - pad + k * dilation = q of w[c, o,
// k...] * x[n, c, p...]; extent of y: (D - 1) * stride + (K - 1) * dilation + 1 - pads +
// output_padding.

#include <algorithm>

#include "base/parallel.h"
#include "base/status.h"
#include "graph/contraction.h"
#include "graph/element_structure.h"
#include "graph/elementwise.h"
#include "graph/fill.h"

namespace mendel::ops::conv_transpose {
namespace {

constexpr int64_t kMaxValue = int64_t{1} << 31;  // keeps positions far from overflow

Shape Spatial(const Shape& shape) { return Shape(shape.begin() + 2, shape.end()); }

/// One spatial dimension.
struct Dim {
  int64_t input, output, kernel, stride, dilation, pad;
  int64_t Position(int64_t p, int64_t k) const { return p * stride - pad + k * dilation; }
};

std::vector<Dim> DimsOf(const NodeView& node) {
  std::vector<Dim> dims;
  for (size_t d = 0; d + 2 < node.inputs[0].shape.size(); ++d) {
    dims.push_back({node.inputs[0].shape[d + 2], node.outputs[0].shape[d + 2],
                    node.inputs[1].shape[d + 2], node.attrs.IntList("strides")[d],
                    node.attrs.IntList("dilations")[d], node.attrs.IntList("pads")[d]});
  }
  return dims;
}

/// Adds rows of products (one a tap, `count` input positions from `begin` on) into one output
/// plane.
template <class S>
void ScatterRows(const S* rows, const std::vector<Dim>& dims, const Shape& spatial,
                 const Shape& kernel, int64_t begin, int64_t count, S* plane) {
  const size_t rank = dims.size();
  std::array<int64_t, kMaxRank> tap_storage{};
  const std::span<int64_t> tap(tap_storage.data(), rank);
  do {
    std::array<int64_t, kMaxRank> position{};
    for (int64_t rest = begin, d = static_cast<int64_t>(rank) - 1; d >= 0; --d) {
      position[static_cast<size_t>(d)] = rest % spatial[static_cast<size_t>(d)];
      rest /= spatial[static_cast<size_t>(d)];
    }
    for (int64_t j = 0; j < count;
         ++j, NextIndex(spatial, std::span<int64_t>(position.data(), rank))) {
      int64_t flat = 0;
      bool inside = true;
      for (size_t d = 0; d < rank; ++d) {
        const int64_t at = dims[d].Position(position[d], tap[d]);
        inside = inside && at >= 0 && at < dims[d].output;
        flat = flat * dims[d].output + at;
      }
      if (inside) plane[flat] = Plus(plane[flat], rows[j]);
    }
    rows += count;
  } while (NextIndex(kernel, tap));
}

struct ConvTransposeMeaning {
  template <class S>
  static void Fill(const Reader<S>& in, const NodeView& node, int, std::span<S> out) {
    const Shape& x = in.shape(0);
    const Shape& w = in.shape(1);
    const int64_t groups = node.attrs.Int("group");
    const int64_t depth = x[1] / groups;
    const int64_t taps = NumElements(Spatial(w));
    const int64_t positions = NumElements(Spatial(x));
    const int64_t plane = NumElements(Spatial(node.outputs[0].shape));
    const int64_t block =
        std::clamp<int64_t>((w[1] + 7) / 8, 1, std::max<int64_t>(1, 512 / taps));  // channels a job
    const int64_t blocks = (w[1] + block - 1) / block;
    const std::vector<Dim> dims = DimsOf(node);
    std::vector<S> loaded;
    const S* const data = AllElements(in, 0, loaded);
    const std::vector<S> weights = TransposedWeights(in, groups, depth, w[1] * taps);
    auto* const context = ScalarScope<S>::Current();
    ParallelFor(x[0] * groups * blocks, [&](int64_t job) {
      const ScalarScope<S> scope(context);
      const int64_t first = job % blocks * block;
      const int64_t channels = std::min(block, w[1] - first);
      const int64_t group = job / blocks % groups;
      const int64_t n = job / blocks / groups;
      const S* image = data + (n * x[1] + group * depth) * positions;
      const S* matrix = weights.data() + (group * w[1] + first) * taps * depth;
      S* planes = out.data() + ((n * groups + group) * w[1] + first) * plane;
      for (int64_t c = 0; c < channels; ++c) {
        std::fill_n(planes + c * plane, plane,
                    in.size() > 2 ? in.Flat(2, group * w[1] + first + c) : S{});
      }
      constexpr int64_t kTile = 1024;
      std::vector<S> products(static_cast<size_t>(channels * taps * std::min(kTile, positions)));
      for (int64_t begin = 0; begin < positions; begin += kTile) {
        const int64_t count = std::min(kTile, positions - begin);
        Gemm(channels * taps, count, depth, matrix, depth, image + begin, positions,
             products.data(), count, false);
        for (int64_t c = 0; c < channels; ++c) {
          ScatterRows(products.data() + c * taps * count, dims, Spatial(x), Spatial(w), begin,
                      count, planes + c * plane);
        }
      }
    });
  }

  /// w[group][depth][rows] as [group][rows][depth].
  template <class S>
  static std::vector<S> TransposedWeights(const Reader<S>& in, int64_t groups, int64_t depth,
                                          int64_t rows) {
    std::vector<S> values(static_cast<size_t>(groups * depth * rows));
    for (int64_t g = 0; g < groups; ++g) {
      for (int64_t c = 0; c < depth; ++c) {
        for (int64_t r = 0; r < rows; ++r) {
          values[static_cast<size_t>((g * rows + r) * depth + c)] =
              in.Flat(1, (g * depth + c) * rows + r);
        }
      }
    }
    return values;
  }
};

absl::Status CheckOperands(std::span<const TensorType> inputs, int64_t group) {
  const Shape& x = inputs[0].shape;
  const Shape& w = inputs[1].shape;
  if (x.size() < 3 || w.size() != x.size()) {
    return InvalidInput("input ", ShapeString(x), " and weight ", ShapeString(w),
                        " must have one rank of at least 3");
  }
  for (const TensorType& input : inputs) {
    if (input.dtype != inputs[0].dtype || !IsFloat(input.dtype))
      return InvalidInput("operands must have one float dtype");
  }
  if (group < 1 || x[1] % group != 0 || w[0] != x[1]) {
    return InvalidInput("weight ", ShapeString(w), " with group ", group, " does not fit input ",
                        ShapeString(x));
  }
  if (inputs.size() > 2 && inputs[2].shape != Shape{w[1] * group}) {
    return InvalidInput("bias must be ", w[1] * group, ", not ", ShapeString(inputs[2].shape));
  }
  return absl::OkStatus();
}

TypesOr Infer(std::span<const TensorType> inputs, const Attributes& attrs) {
  MENDEL_RETURN_IF_ERROR(CheckOperands(inputs, attrs.Int("group")));
  const Shape& x = inputs[0].shape;
  const Shape& w = inputs[1].shape;
  const size_t rank = x.size() - 2;
  const Ints& strides = attrs.IntList("strides");
  const Ints& dilations = attrs.IntList("dilations");
  const Ints& pads = attrs.IntList("pads");
  const Ints& extra = attrs.IntList("output_padding");
  if (strides.size() != rank || dilations.size() != rank || pads.size() != 2 * rank ||
      extra.size() != rank) {
    return InvalidInput("strides, dilations, pads and output_padding must have lengths ", rank,
                        ", ", rank, ", ", 2 * rank, " and ", rank);
  }
  const auto bad = [](int64_t value, int64_t least) { return value < least || value >= kMaxValue; };
  TensorType type{inputs[0].dtype, {x[0], w[1] * attrs.Int("group")}};
  for (size_t d = 0; d < rank; ++d) {
    if (bad(strides[d], 1) || bad(dilations[d], 1) || bad(pads[d], 0) || bad(pads[rank + d], 0) ||
        bad(extra[d], 0) || bad(w[d + 2], 1) || bad(x[d + 2], 1)) {
      return InvalidInput("bad extent, kernel, stride, dilation or padding in dimension ", d);
    }
    const int64_t extent = (x[d + 2] - 1) * strides[d] + (w[d + 2] - 1) * dilations[d] + 1 -
                           pads[d] - pads[rank + d] + extra[d];
    if (extent < 1) return InvalidInput("pads leave nothing of dimension ", d);
    type.shape.push_back(extent);
  }
  return std::vector<TensorType>{type};
}

/// At most every ceil(K / stride)-th tap of a dimension meets a given output; all of them is
/// simpler and still a bound.
Bound BoundOf(const NodeView& node, std::span<const Bound> inputs, int, const Arithmetic<Bound>&) {
  const Shape& w = node.inputs[1].shape;
  const int64_t depth = w[0] / node.attrs.Int("group");
  const Bound sum =
      SumOf(static_cast<double>(depth * NumElements(Spatial(w))), inputs[0] * inputs[1]);
  return inputs.size() > 2 ? sum + inputs[2] : sum;
}

Cost CostOfConvTranspose(const NodeView& node) {
  const Shape& w = node.inputs[1].shape;
  Cost cost{2.0 * static_cast<double>(NumElements(node.inputs[0])) *
                static_cast<double>(NumElements(w)) /
                static_cast<double>(std::max<int64_t>(1, w[0])),
            static_cast<double>(ByteSize(node.outputs[0]))};
  for (const TensorType& type : node.inputs) cost.bytes += static_cast<double>(ByteSize(type));
  return cost;
}

/// Input positions [first, last] that touch outputs [begin, end) and the attributes that cut the
/// rest away.
struct DimCut {
  int64_t first, last, pad_begin, pad_end, output_padding;
};
std::optional<DimCut> CutDim(const Dim& dim, int64_t begin, int64_t end) {
  const int64_t low =
      begin + dim.pad;  // p touches begin.. when p * stride + k * dilation >= low for some k
  const int64_t reach = dim.dilation * (dim.kernel - 1);
  const int64_t first =
      low <= reach ? 0 : std::min((low - reach + dim.stride - 1) / dim.stride, low / dim.stride);
  const int64_t last = std::min(dim.input - 1, (end - 1 + dim.pad) / dim.stride);
  if (first > last) return std::nullopt;
  const int64_t pad_begin = low - first * dim.stride;
  const int64_t rest = (last - first) * dim.stride + reach + 1 - pad_begin - (end - begin);
  return DimCut{first, last, pad_begin, std::max<int64_t>(0, rest), std::max<int64_t>(0, -rest)};
}

/// Any box of images and positions; a channel box must lie within one group or consist of whole
/// groups.
std::optional<Restriction> Restrict(const NodeView& node, const Box& out) {
  const Shape& x = node.inputs[0].shape;
  const Shape& w = node.inputs[1].shape;
  const size_t rank = x.size() - 2;
  const int64_t depth = x[1] / node.attrs.Int("group");
  const int64_t first_group = out.begin[1] / w[1];
  const int64_t last_group = (out.end[1] - 1) / w[1];
  const bool whole_groups = out.begin[1] % w[1] == 0 && out.end[1] % w[1] == 0;
  if (first_group != last_group && !whole_groups) return std::nullopt;
  Restriction result{{Box::Whole(x), Box::Whole(w)}, node.attrs};
  Box& x_box = result.inputs[0];
  Box& w_box = result.inputs[1];
  x_box.begin[0] = out.begin[0];
  x_box.end[0] = out.end[0];
  x_box.begin[1] = w_box.begin[0] = first_group * depth;
  x_box.end[1] = w_box.end[0] = (last_group + 1) * depth;
  if (!whole_groups) {
    w_box.begin[1] = out.begin[1] - first_group * w[1];
    w_box.end[1] = out.end[1] - first_group * w[1];
  }
  const std::vector<Dim> dims = DimsOf(node);
  Ints pads(2 * rank), extra(rank);
  for (size_t d = 0; d < rank; ++d) {
    const std::optional<DimCut> cut = CutDim(dims[d], out.begin[d + 2], out.end[d + 2]);
    if (!cut.has_value()) return std::nullopt;
    x_box.begin[d + 2] = cut->first;
    x_box.end[d + 2] = cut->last + 1;
    pads[d] = cut->pad_begin;
    pads[rank + d] = cut->pad_end;
    extra[d] = cut->output_padding;
  }
  result.attrs.Set("pads", pads);
  result.attrs.Set("output_padding", extra);
  result.attrs.Set("group", last_group - first_group + 1);
  if (node.inputs.size() > 2) result.inputs.push_back({{out.begin[1]}, {out.end[1]}});
  return result;
}

OpSample Sample(Rng& rng) {
  const size_t spatial = static_cast<size_t>(rng.Between(1, 3));
  const int64_t group = rng.Flip(0.3) ? rng.Between(2, 3) : 1;
  Shape x = {rng.Between(1, 2), group * rng.Between(1, 3)};
  Shape w = {x[1], rng.Between(1, 3)};
  Ints strides, dilations, pads(2 * spatial), extra;
  for (size_t d = 0; d < spatial; ++d) {
    x.push_back(rng.Between(1, spatial == 3 ? 3 : 6));
    w.push_back(rng.Between(1, spatial == 3 ? 2 : 4));
    strides.push_back(rng.Between(1, 3));
    dilations.push_back(rng.Between(1, 2));
    extra.push_back(rng.Between(0, std::max(strides[d], dilations[d]) - 1));
    int64_t spare = (x[d + 2] - 1) * strides[d] + (w[d + 2] - 1) * dilations[d] +
                    extra[d];  // extent without pads, less one
    pads[d] = rng.Between(0, std::min<int64_t>(spare, 3));
    pads[spatial + d] = rng.Between(0, std::min<int64_t>(spare - pads[d], 3));
  }
  OpSample sample{{{DType::kF32, x}, {DType::kF32, w}},
                  {{"strides", strides},
                   {"dilations", dilations},
                   {"pads", pads},
                   {"output_padding", extra},
                   {"group", group}},
                  {}};
  if (rng.Flip()) sample.inputs.push_back({DType::kF32, {w[1] * group}});
  return sample;
}

OpDefinition Make() {
  OpDefinition op;
  op.name = "ConvTranspose";
  op.min_inputs = 2;
  op.max_inputs = 3;
  op.attributes = {{"strides", Ints(), true},
                   {"dilations", Ints(), true},
                   {"pads", Ints(), true},
                   {"output_padding", Ints(), true},
                   {"group", int64_t{1}}};
  op.infer = &Infer;
  op.meaning = MeaningOf<ConvTransposeMeaning>();
  op.linear_inputs = [](const NodeView& node) { return node.inputs.size() > 2 ? 0u : 3u; };
  op.bound = &BoundOf;
  op.cost = &CostOfConvTranspose;
  op.restrict = &Restrict;
  op.sample = &Sample;
  return op;
}

/// x with stride - 1 zeros behind every position of its spatial dimensions, padded and cropped for
/// a convolution.
absl::StatusOr<ValueId> Spread(GraphBuilder& builder, ValueId x, const std::vector<Dim>& dims) {
  Shape shape = builder.type(x).shape;
  Shape apart(shape.begin(), shape.begin() + 2);
  Ints zeros(2, 0), ends(2, 0), starts(2, 0), before(2, 0), after(2, 0);
  for (size_t d = 0; d < dims.size(); ++d) {
    const Dim& dim = dims[d];
    apart.insert(apart.end(), {dim.input, 1});
    zeros.insert(zeros.end(), {0, dim.stride - 1});
    shape[d + 2] = dim.input * dim.stride;
    const int64_t reach = (dim.kernel - 1) * dim.dilation;
    const int64_t first = dim.pad - reach;  // the first position that output 0 reads
    const int64_t last = dim.output - 1 + dim.pad;
    starts.push_back(std::clamp<int64_t>(first, 0, shape[d + 2]));
    ends.push_back(std::clamp<int64_t>(last + 1, starts.back(), shape[d + 2]));
    before.push_back(std::min(last + 1, starts.back()) - first);
    after.push_back(last + 1 - first - before.back() - (ends.back() - starts.back()));
  }
  ends[0] = shape[0];
  ends[1] = shape[1];
  Ints pads(apart.size(), 0);
  pads.insert(pads.end(), zeros.begin(), zeros.end());
  before.insert(before.end(), after.begin(), after.end());
  MENDEL_ASSIGN_OR_RETURN(x, builder.Add("Reshape", {x}, {{"shape", apart}}));
  MENDEL_ASSIGN_OR_RETURN(x, builder.Add("Pad", {x}, {{"pads", pads}}));
  MENDEL_ASSIGN_OR_RETURN(x, builder.Add("Reshape", {x}, {{"shape", shape}}));
  MENDEL_ASSIGN_OR_RETURN(
      x, builder.Add("Slice", {x},
                     {{"starts", starts}, {"ends", ends}, {"steps", Ints(shape.size(), 1)}}));
  return builder.Add("Pad", {x}, {{"pads", before}});
}

/// The convolution's weights: flipped, [C, O / group, K...] as [O, C / group, K...].
absl::StatusOr<ValueId> FlippedWeights(GraphBuilder& builder, ValueId w, int64_t group) {
  const Shape shape = builder.type(w).shape;
  Ints starts(2, 0), ends = {shape[0], shape[1]}, steps(2, 1);
  Shape grouped = {group, shape[0] / group, shape[1]};
  Ints perm = {0, 2, 1};
  Shape result = {group * shape[1], shape[0] / group};
  for (size_t d = 2; d < shape.size(); ++d) {
    starts.push_back(shape[d] - 1);
    ends.push_back(-1);
    steps.push_back(-1);
    grouped.push_back(shape[d]);
    perm.push_back(static_cast<int64_t>(d) + 1);
    result.push_back(shape[d]);
  }
  MENDEL_ASSIGN_OR_RETURN(
      w, builder.Add("Slice", {w}, {{"starts", starts}, {"ends", ends}, {"steps", steps}}));
  MENDEL_ASSIGN_OR_RETURN(w, builder.Add("Reshape", {w}, {{"shape", grouped}}));
  MENDEL_ASSIGN_OR_RETURN(w, builder.Add("Transpose", {w}, {{"perm", perm}}));
  return builder.Add("Reshape", {w}, {{"shape", result}});
}

absl::StatusOr<Graph> Lower(const NodeView& node) {
  GraphBuilder builder;
  std::vector<ValueId> inputs;
  for (const TensorType& type : node.inputs)
    inputs.push_back(builder.Input(std::string(1, static_cast<char>('a' + inputs.size())), type));
  MENDEL_ASSIGN_OR_RETURN(inputs[0], Spread(builder, inputs[0], DimsOf(node)));
  MENDEL_ASSIGN_OR_RETURN(inputs[1], FlippedWeights(builder, inputs[1], node.attrs.Int("group")));
  const size_t rank = node.inputs[0].shape.size() - 2;
  MENDEL_ASSIGN_OR_RETURN(const ValueId value,
                          builder.Add("Conv", inputs,
                                      {{"strides", Ints(rank, 1)},
                                       {"dilations", node.attrs.IntList("dilations")},
                                       {"pads", Ints(2 * rank, 0)},
                                       {"group", node.attrs.Int("group")}}));
  builder.Output("y", value);
  return builder.Build();
}

MENDEL_REGISTER_OP(&Make);
MENDEL_REGISTER_ELEMENT_STRUCTURE({.op = "ConvTranspose", .lower = &Lower});

}  // namespace
}  // namespace mendel::ops::conv_transpose
