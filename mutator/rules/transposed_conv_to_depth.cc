// Transposed convolutions whose windows do not overlap become a pointwise convolution and an
// interleaving view.
//
//   before  ConvTranspose(x, w[C, O, K..], b){strides = K, no padding, dilation 1, group 1}
//   after   interleave(Conv(x, regroup(w)[O*K.., C, 1..], repeat(b)))
//
// Exact: every output element has exactly one tap. The rule wins where the library's transposed
// convolution is slow.

#include <algorithm>

#include "graph/emitter.h"
#include "mutator/parallel.h"

namespace mendel::rules::transposed_conv_to_depth {
namespace {

std::vector<Match> FindMatches(const Graph& graph, int32_t node) {
  const Node& conv = graph.node(node);
  if (conv.op->name != "ConvTranspose" || conv.attrs.Int("group") != 1) return {};
  const Shape& w = graph.type(conv.inputs[1]).shape;
  if (w.size() > 4 || !IsWeight(graph, conv.inputs[1]) || HasRunTimeBias(graph, conv)) return {};
  const auto zero = [&](std::string_view name) {
    const Ints& list = conv.attrs.IntList(name);
    return std::all_of(list.begin(), list.end(), [](int64_t v) { return v == 0; });
  };
  const Ints& dilations = conv.attrs.IntList("dilations");
  const bool dense =
      std::all_of(dilations.begin(), dilations.end(), [](int64_t d) { return d == 1; });
  const bool apart = conv.attrs.IntList("strides") == Ints(w.begin() + 2, w.end());
  if (!dense || !apart || !zero("pads") || !zero("output_padding")) return {};
  return {{{node}, {}}};
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&) {
  Emitter e;
  const ValueId x = e.InputsOf(subprogram)[0];
  const Node& conv = subprogram.node(subprogram.outputs()[0].value.node);
  const ValueId w = e.CopyConstantExpression(subprogram, conv.inputs[1]);
  const Shape kernel(e.shape(w).begin() + 2, e.shape(w).end());
  const int64_t in_channels = e.shape(w)[0];
  const int64_t out_channels = e.shape(w)[1];
  const int64_t taps = NumElements(kernel);
  const size_t rank = kernel.size();
  Ints to_rows;  // [C, O, K..] -> [O, K.., C]
  for (size_t d = 1; d < rank + 2; ++d) to_rows.push_back(static_cast<int64_t>(d));
  to_rows.push_back(0);
  Shape weight_shape = {out_channels * taps, in_channels};
  weight_shape.insert(weight_shape.end(), rank, 1);
  std::vector<ValueId> inputs = {x, e.Reshape(e.Transpose(w, to_rows), weight_shape)};
  if (conv.inputs.size() > 2) {
    const ValueId column =
        e.Reshape(e.CopyConstantExpression(subprogram, conv.inputs[2]), {out_channels, 1});
    inputs.push_back(e.Reshape(e.Op("Expand", {column}, {{"shape", Ints{out_channels, taps}}}),
                               {out_channels * taps}));
  }
  const ValueId y =
      e.Op("Conv", inputs,
           {{"strides", Ints(rank, 1)}, {"dilations", Ints(rank, 1)}, {"pads", Ints(2 * rank, 0)}},
           conv.name);
  Shape split = {e.shape(x)[0], out_channels};  // [N, O, K.., S..] -> [N, O, S0, K0, S1, K1, ..]
  split.insert(split.end(), kernel.begin(), kernel.end());
  split.insert(split.end(), e.shape(x).begin() + 2, e.shape(x).end());
  Ints interleave = {0, 1};
  for (size_t d = 0; d < rank; ++d)
    interleave.insert(interleave.end(),
                      {static_cast<int64_t>(2 + rank + d), static_cast<int64_t>(2 + d)});
  e.Output("out0", e.Reshape(e.Transpose(e.Reshape(y, split), interleave), conv.outputs[0].shape));
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  const int64_t kernel = rng.Between(1, 3);
  const ValueId x =
      e.Input("x", {DType::kF32, {rng.Between(1, 2), 3, rng.Between(1, 4), rng.Between(1, 4)}});
  std::vector<ValueId> inputs = {
      x, e.Constant(Tensor::Filled({DType::kF32, {3, 2, kernel, 2}}, 1.5), "w")};
  if (rng.Flip()) inputs.push_back(e.Constant(Tensor::Filled({DType::kF32, {2}}, 0.5), "b"));
  e.Output("y", e.Op("ConvTranspose", inputs,
                     {{"strides", Ints{kernel, 2}},
                      {"dilations", Ints{1, 1}},
                      {"pads", Ints{0, 0, 0, 0}},
                      {"output_padding", Ints{0, 0}}}));
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "transposed_conv_to_depth";
  rule.family = "phases";
  rule.before = "ConvTranspose(x, w[C, O, K..], b){strides K}";
  rule.after = "interleave(Conv(x, w[O*K.., C, 1..], b))";
  rule.precondition = "strides equal the kernel, no padding, dilation 1, group 1, 1-D or 2-D";
  rule.loses_when = "the interleaving copy costs more than the better kernel gains";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::transposed_conv_to_depth
