// A convolution behind a nearest upsampling becomes small convolutions, one a phase.
//
//   before  Conv(Resize(x){nearest, by s_h, s_w, ..}, w){stride 1}
//   after   interleave_r(Conv(x, w_r))
//           w_r[e] = sum of the taps t with floor((r - pad + t*d) / s) = e
//
// Exact, borders included: position u of the large image is padding where floor(u / s) is padding
// of the small one. A 3x3 kernel behind an upsampling by 2 becomes four 2x2 kernels with 4/9 of the
// arithmetic, and the large image is never computed.
//
// Source: sub-pixel convolution (Shi et al. 2016), nearest case.

#include <algorithm>

#include "mutator/conv_at.h"
#include "mutator/conv_chain.h"
#include "mutator/parallel.h"
#include "mutator/sample.h"
#include "mutator/space.h"

namespace mendel::rules::upsample_phases {
namespace {

constexpr int64_t kMaxPhases = 16;

int64_t FloorDiv(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

/// Scales of the spatial dimensions when output o of the node reads floor(o / scale); empty
/// otherwise.
Ints CopyScales(const Graph& graph, const Node& resize) {
  const Shape& from = graph.type(resize.inputs[0]).shape;
  const Shape& to = resize.outputs[0].shape;
  if (resize.attrs.Str("mode") != "nearest" || from.size() < 3 || from[0] != to[0] ||
      from[1] != to[1])
    return {};
  const std::string& where = resize.attrs.Str("coordinate_transformation_mode");
  const std::string& rounding = resize.attrs.Str("nearest_mode");
  const bool floors = where == "asymmetric" && rounding == "floor";
  const bool rounds = where == "half_pixel" &&
                      (rounding == "round_prefer_floor" || rounding == "round_prefer_ceil");
  if (!floors && !rounds) return {};
  Ints scales;
  int64_t phases = 1;
  for (size_t d = 2; d < from.size(); ++d) {
    if (from[d] == 0 || to[d] % from[d] != 0) return {};
    scales.push_back(to[d] / from[d]);
    if (resize.attrs.FloatList("scales").size() == from.size() &&
        resize.attrs.FloatList("scales")[d] != static_cast<double>(scales.back()))
      return {};
    phases *= scales.back();
  }
  return phases > 1 && phases <= kMaxPhases ? scales : Ints();
}

std::vector<Match> FindMatches(const Graph& graph, int32_t node, const Predictor&) {
  const Node& conv = graph.node(node);
  if (conv.op->name != "Conv" || !IsWeight(graph, conv.inputs[1])) return {};
  if (HasRunTimeBias(graph, conv)) return {};
  const int32_t resize = conv.inputs[0].node;
  if (graph.node(resize).op->name != "Resize" || CopyScales(graph, graph.node(resize)).empty())
    return {};
  const ConvShape shape = ShapeOf(graph, node);
  const bool plain = std::all_of(shape.windows.begin(), shape.windows.end(),
                                 [](const Window& w) { return w.stride == 1; });
  if (!plain || IsPointwiseConv(shape) || 2 + 2 * shape.windows.size() > kMaxRank) return {};
  if (graph.OnlyUser(resize) < 0) return {};
  return {{{resize, node}, {}}};
}

/// Taps of dimension `d` that read the same small position, summed; `first` becomes the first small
/// position of output 0.
ValueId SumTaps(Emitter& e, ValueId w, size_t d, const Window& window, int64_t scale, int64_t phase,
                int64_t& first) {
  const auto small = [&](int64_t tap) {
    return FloorDiv(phase - window.pad_begin + tap * window.dilation, scale);
  };
  first = small(0);
  std::vector<ValueId> sums;
  const int64_t dim = static_cast<int64_t>(d + 2);
  int64_t tap = 0;
  for (int64_t position = first; position <= small(window.kernel - 1); ++position) {
    const int64_t begin = tap;
    while (tap < window.kernel && small(tap) == position) ++tap;
    Shape empty = e.shape(w);
    empty[d + 2] = 1;
    if (tap == begin) {  // dilation steps over this position
      sums.push_back(e.Constant(Tensor::Filled({e.type(w).dtype, empty}, 0)));
    } else if (tap == begin + 1) {
      sums.push_back(e.Slice(w, dim, begin, tap));
    } else {
      sums.push_back(e.Op("ReduceSum", {e.Slice(w, dim, begin, tap)},
                          {{"axes", Ints{dim}}, {"keepdims", int64_t{1}}}));
    }
  }
  return e.Concat(sums, dim);
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&, const Predictor&) {
  Emitter e;
  const ValueId x = e.InputsOf(subprogram)[0];
  const int32_t id = subprogram.outputs()[0].value.node;
  const Node& conv = subprogram.node(id);
  const ConvShape shape = ShapeOf(subprogram, id);
  const Ints scales = CopyScales(subprogram, subprogram.node(conv.inputs[0].node));
  const ValueId w = e.CopyConstantExpression(subprogram, conv.inputs[1]);
  std::optional<ValueId> bias;
  if (conv.inputs.size() > 2) bias = e.CopyConstantExpression(subprogram, conv.inputs[2]);
  std::vector<ValueId> phases;
  for (int64_t k = 0; k < NumElements(scales); ++k) {
    ValueId kernel = w;
    std::vector<Reads> reads(scales.size());
    int64_t rest = k;
    for (size_t d = scales.size(); d-- > 0;) {
      kernel = SumTaps(e, kernel, d, shape.windows[d], scales[d], rest % scales[d], reads[d].first);
      reads[d].outputs = (shape.out_spatial[d] + scales[d] - 1) / scales[d];
      rest /= scales[d];
    }
    phases.push_back(ConvAt(e, x, kernel, bias, reads, shape.group, conv.name));
  }
  e.Output("out0", e.Cut(Interleave(e, phases, scales), Box::Whole(conv.outputs[0].shape)));
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  const size_t rank = static_cast<size_t>(rng.Between(1, 3));
  const int64_t group = rng.Between(1, 2);
  Shape from = {rng.Between(1, 2), 2}, weight = {2, 2 / group};
  Ints pads(2 * rank), dilations;
  std::vector<double> scales = {1, 1};
  for (size_t d = 0; d < rank; ++d) {
    from.push_back(rng.Between(rank == 3 ? 3 : 7, rank == 3 ? 4 : 8));
    weight.push_back(rng.Between(2, rank == 3 ? 3 : 4));
    dilations.push_back(rng.Between(1, rank == 3 ? 1 : 2));
    pads[d] = rng.Between(0, 2);
    pads[rank + d] = rng.Between(0, 2);
    scales.push_back(static_cast<double>(rng.Between(rank == 1 ? 2 : 1, rank == 3 ? 2 : 4)));
  }
  if (rank > 1) scales[3] = 2;
  Shape to = from;
  for (size_t d = 0; d < to.size(); ++d) to[d] *= static_cast<int64_t>(scales[d]);
  const bool floors = rng.Flip();
  const ValueId up =
      e.Op("Resize", {e.Input("x", {DType::kF32, from})},
           {{"output_sizes", to},
            {"scales", scales},
            {"mode", std::string("nearest")},
            {"coordinate_transformation_mode", std::string(floors ? "asymmetric" : "half_pixel")},
            {"nearest_mode", std::string(floors ? "floor" : "round_prefer_floor")}});
  std::vector<ValueId> inputs = {up, SampleWeight(e, rng, weight, "w")};
  if (rng.Flip()) inputs.push_back(SampleWeight(e, rng, {2}, "b"));
  e.Output("y", e.Op("Conv", inputs,
                     {{"strides", Ints(rank, 1)},
                      {"dilations", dilations},
                      {"pads", pads},
                      {"group", group}}));
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "upsample_phases";
  rule.family = "phases";
  rule.before = "Conv(Resize(x){nearest, by s}, w){stride 1}";
  rule.after =
      "interleaved Conv(x, w_r), a phase r each, with the taps that read one position summed";
  rule.precondition =
      "whole scales, at most 16 phases, copying coordinates (asymmetric floor, half pixel "
      "rounded); read once";
  rule.loses_when = "interleaving costs more than the smaller kernels save";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::upsample_phases
