// Transposed convolutions of a single position, as at the start of most generators, become a matrix
// product.
//
//   before  ConvTranspose(x[N, C, 1..], w[C, O/G, K..], b){any strides, dilation 1}
//   after   Reshape(MatMul(x[N, C], w[C, O/G*K..]) + b), the padding cut off w, one product a group
//
// Exact: each tap meets the position once. The rule wins where the weights are then read once, at
// the speed of memory.

#include <algorithm>

#include "graph/emitter.h"
#include "mutator/parallel.h"

namespace mendel::rules::pixel_transposed_conv_to_matmul {
namespace {

bool AllAre(const Ints& list, int64_t wanted) {
  return std::all_of(list.begin(), list.end(), [wanted](int64_t v) { return v == wanted; });
}

std::vector<Match> FindMatches(const Graph& graph, int32_t node) {
  const Node& conv = graph.node(node);
  if (conv.op->name != "ConvTranspose") return {};
  if (!IsWeight(graph, conv.inputs[1]) || HasRunTimeBias(graph, conv)) return {};
  const Shape& x = graph.type(conv.inputs[0]).shape;
  const bool pixel = AllAre(Ints(x.begin() + 2, x.end()), 1);
  if (!pixel || !AllAre(conv.attrs.IntList("dilations"), 1) ||
      !AllAre(conv.attrs.IntList("output_padding"), 0))
    return {};
  return {{{node}, {}}};
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&) {
  Emitter e;
  const ValueId x = e.InputsOf(subprogram)[0];
  const Node& conv = subprogram.node(subprogram.outputs()[0].value.node);
  ValueId w = e.CopyConstantExpression(subprogram, conv.inputs[1]);
  const Ints& pads = conv.attrs.IntList("pads");
  const int64_t rank = static_cast<int64_t>(e.shape(w).size()) - 2;
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t begin = pads[static_cast<size_t>(d)];
    const int64_t end =
        e.shape(w)[static_cast<size_t>(d + 2)] - pads[static_cast<size_t>(rank + d)];
    w = e.Slice(w, d + 2, begin, end);
  }
  const int64_t groups = conv.attrs.Int("group");
  const Shape out = conv.outputs[0].shape;
  const int64_t batch = out[0], channels = e.shape(x)[1] / groups,
                width = NumElements(out) / batch / groups;
  ValueId y;
  if (groups == 1) {
    y = e.MatMul(e.Reshape(x, {batch, channels}), e.Reshape(w, {channels, width}));
  } else {
    y = e.MatMul(e.Reshape(x, {batch, groups, 1, channels}),
                 e.Reshape(w, {groups, channels, width}));
  }
  if (conv.inputs.size() > 2) {  // a bias an element, so that the product adds it
    const int64_t taps = width * groups / out[1];
    const ValueId column =
        e.Reshape(e.CopyConstantExpression(subprogram, conv.inputs[2]), {out[1], 1});
    const ValueId wide = e.Op("Expand", {column}, {{"shape", Ints{out[1], taps}}});
    y = e.Add(y, e.Reshape(wide, groups == 1 ? Shape{width} : Shape{groups, 1, width}));
  }
  e.Output("out0", e.Reshape(y, out));
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  const int64_t groups = rng.Between(1, 2);
  const int64_t kernel = rng.Between(2, 4);
  const int64_t pad = rng.Between(0, 1);
  const ValueId x = e.Input("x", {DType::kF32, {rng.Between(1, 3), 2 * groups, 1, 1}});
  std::vector<ValueId> inputs = {
      x, e.Constant(Tensor::Filled({DType::kF32, {2 * groups, 3, kernel, 2}}, 1.5), "w")};
  if (rng.Flip())
    inputs.push_back(e.Constant(Tensor::Filled({DType::kF32, {3 * groups}}, 0.5), "b"));
  e.Output("y", e.Op("ConvTranspose", inputs,
                     {{"strides", Ints{rng.Between(1, 2), 2}},
                      {"dilations", Ints{1, 1}},
                      {"pads", Ints{pad, 0, 0, pad}},
                      {"output_padding", Ints{0, 0}},
                      {"group", groups}}));
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "pixel_transposed_conv_to_matmul";
  rule.family = "linear order";
  rule.before = "ConvTranspose(x[N, C, 1..], w[C, O/G, K..], b)";
  rule.after = "Reshape(MatMul(x[N, C], w[C, O/G*K..]) + b)";
  rule.precondition = "one position, dilation 1, no output padding; constant weights";
  rule.loses_when = "neighbors keep a blocked layout that the product leaves";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::pixel_transposed_conv_to_matmul
