// Transposed convolutions become one dense convolution a phase, and the phases are interleaved.
//
//   before  ConvTranspose(x, w[C, O/g, K..], b){stride s, any dilation, padding, groups}
//   after   interleave_r(Conv(x, w_r, b))
//           w_r: the taps t with (r + pad - t*d) mod s = 0, reversed
//
// Exact: output s*m + r reads x[m + (r + pad - t*d) / s] by exactly these taps. A phase without
// taps is the bias (holes between the windows, dilations that share a factor with s).

#include <algorithm>
#include <numeric>

#include "mutator/conv_at.h"
#include "mutator/parallel.h"
#include "mutator/sample.h"
#include "mutator/space.h"

namespace mendel::rules::transposed_conv_phases {
namespace {

constexpr int64_t kMaxPhases = 16;

struct Dim {
  int64_t kernel, stride, dilation, pad;
};

std::vector<Dim> DimsOf(const Graph& graph, const Node& conv) {
  const Shape& w = graph.type(conv.inputs[1]).shape;
  std::vector<Dim> dims;
  for (size_t d = 0; d + 2 < w.size(); ++d) {
    dims.push_back({w[d + 2], conv.attrs.IntList("strides")[d], conv.attrs.IntList("dilations")[d],
                    conv.attrs.IntList("pads")[d]});
  }
  return dims;
}

/// Taps of one phase, ascending; they step by stride / gcd(stride, dilation).
Ints TapsOfPhase(const Dim& dim, int64_t phase) {
  Ints taps;
  for (int64_t t = 0; t < dim.kernel; ++t) {
    if ((phase + dim.pad - t * dim.dilation) % dim.stride == 0) taps.push_back(t);
  }
  return taps;
}

std::vector<Match> FindMatches(const Graph& graph, int32_t node) {
  const Node& conv = graph.node(node);
  if (conv.op->name != "ConvTranspose" || !IsWeight(graph, conv.inputs[1])) return {};
  if (HasRunTimeBias(graph, conv) || IsWeight(graph, conv.inputs[0])) return {};
  int64_t phases = 1;
  const std::vector<Dim> dims = DimsOf(graph, conv);
  for (const Dim& dim : dims) {
    phases *= dim.stride;
    if (phases > kMaxPhases) return {};
  }
  return 2 + 2 * dims.size() <= kMaxRank ? std::vector<Match>{{{node}, {}}} : std::vector<Match>();
}

/// [C, O/g, K..] -> [O, C/g, K..].
ValueId OutputMajor(Emitter& e, ValueId w, int64_t group) {
  const Shape shape = e.shape(w);
  Shape split = {group, shape[0] / group, shape[1]};
  split.insert(split.end(), shape.begin() + 2, shape.end());
  Ints perm(split.size());
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[1], perm[2]);
  Shape merged = {group * shape[1], shape[0] / group};
  merged.insert(merged.end(), shape.begin() + 2, shape.end());
  return e.Reshape(e.Transpose(e.Reshape(w, split), perm), merged);
}

/// The phase that no tap reaches.
ValueId Hole(Emitter& e, DType dtype, std::optional<ValueId> bias, const Shape& shape) {
  Shape ones(shape.size(), 1);
  if (!bias.has_value())
    return e.Op("Expand", {e.Constant(Tensor::Filled({dtype, ones}, 0))}, {{"shape", shape}});
  ones[1] = shape[1];
  return e.Op("Expand", {e.Reshape(*bias, ones)}, {{"shape", shape}});
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&) {
  Emitter e;
  const ValueId x = e.InputsOf(subprogram)[0];
  const Node& conv = subprogram.node(subprogram.outputs()[0].value.node);
  const std::vector<Dim> dims = DimsOf(subprogram, conv);
  const int64_t group = conv.attrs.Int("group");
  const ValueId w = OutputMajor(e, e.CopyConstantExpression(subprogram, conv.inputs[1]), group);
  std::optional<ValueId> bias;
  if (conv.inputs.size() > 2) bias = e.CopyConstantExpression(subprogram, conv.inputs[2]);
  const Shape& out = conv.outputs[0].shape;
  const Ints& strides = conv.attrs.IntList("strides");
  std::vector<ValueId> phases;
  for (int64_t k = 0; k < NumElements(strides); ++k) {
    ValueId kernel = w;
    std::vector<Reads> reads(dims.size());
    Shape extents = {out[0], out[1]};
    bool hole = false;
    int64_t rest = k;
    for (size_t d = dims.size(); d-- > 0;) {
      const Dim& dim = dims[d];
      const int64_t phase = rest % dim.stride;
      rest /= dim.stride;
      const Ints taps = TapsOfPhase(dim, phase);
      hole = hole || taps.empty();
      if (hole) continue;
      const int64_t common = std::gcd(dim.stride, dim.dilation);
      kernel = ReversedTaps(e, kernel, d, taps.back(), taps.front(), dim.stride / common);
      reads[d] = {(phase + dim.pad - taps.back() * dim.dilation) / dim.stride,
                  (out[d + 2] + dim.stride - 1) / dim.stride, 1, dim.dilation / common};
    }
    for (size_t d = 0; d < dims.size(); ++d)
      extents.push_back((out[d + 2] + dims[d].stride - 1) / dims[d].stride);
    phases.push_back(hole ? Hole(e, conv.outputs[0].dtype, bias, extents)
                          : ConvAt(e, x, kernel, bias, reads, group, conv.name));
  }
  e.Output("out0", e.Cut(Interleave(e, phases, strides), Box::Whole(out)));
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  const size_t rank = static_cast<size_t>(rng.Between(1, 3));
  const int64_t group = rng.Between(1, 2);
  Shape input = {rng.Between(1, 2), 2 * group}, weight = {2 * group, rng.Between(1, 2)};
  Ints strides, dilations, pads(2 * rank), output_padding;
  for (size_t d = 0; d < rank; ++d) {
    input.push_back(rng.Between(4, 5));
    strides.push_back(rng.Between(1, rank == 1 ? 4 : 2));
    dilations.push_back(rng.Between(1, 3));
    weight.push_back(rng.Between(std::max<int64_t>(1, strides.back() - 1), strides.back() + 3));
    pads[d] = rng.Between(0, 1);
    pads[rank + d] = rng.Between(0, 1);
    output_padding.push_back(rng.Between(0, std::max(strides.back(), dilations.back()) - 1));
  }
  std::vector<ValueId> inputs = {e.Input("x", {DType::kF32, input}),
                                 SampleWeight(e, rng, weight, "w")};
  if (rng.Flip()) inputs.push_back(SampleWeight(e, rng, {group * weight[1]}, "b"));
  e.Output("y", e.Op("ConvTranspose", inputs,
                     {{"strides", strides},
                      {"dilations", dilations},
                      {"pads", pads},
                      {"output_padding", output_padding},
                      {"group", group}}));
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "transposed_conv_phases";
  rule.family = "phases";
  rule.before = "ConvTranspose(x, w, b){stride s}";
  rule.after = "interleaved Conv(x, w_r, b), a phase r each, taps r + pad mod s reversed";
  rule.precondition = "at most 16 phases; constant weights";
  rule.loses_when = "interleaving costs more than the dense kernels gain";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::transposed_conv_phases
