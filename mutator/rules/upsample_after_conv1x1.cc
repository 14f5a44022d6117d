// A pointwise convolution and a resizing of the image are computed in the cheaper order.
//
//   before  Conv(Resize(x), w[O, C, 1..], b)
//   after   Resize(Conv(x, w, b)), and the converse
//
// Exact: interpolation is linear and acts on each channel alike. A bias needs shares that sum to
// one at every position without rounding (nearest, linear by powers of two). The rule wins where
// the image grows, its converse where the image shrinks.

#include <algorithm>

#include "graph/emitter.h"
#include "graph/resampling.h"
#include "mutator/conv_chain.h"
#include "mutator/parallel.h"

namespace mendel::rules::upsample_after_conv1x1 {
namespace {

bool IsConv1x1(const Graph& graph, int32_t id) {
  const Node& conv = graph.node(id);
  return conv.op->name == "Conv" && IsPointwiseConv(ShapeOf(graph, id)) &&
         std::all_of(conv.inputs.begin() + 1, conv.inputs.end(),
                     [&](ValueId v) { return IsWeight(graph, v); });
}

/// True where the shares of every position along dimension `d` sum to one, without rounding.
bool SharesSumToOne(const NodeView& resize, size_t d) {
  for (const ResampleTaps& taps : ResampleDimension(resize, d)) {
    double sum = 0;
    for (const ResampleTap& tap : taps) {
      const double next = sum + tap.coefficient, taken = next - sum;
      if ((sum - (next - taken)) + (tap.coefficient - taken) != 0)
        return false;  // what the sum lost
      sum = next;
    }
    if (sum != 1) return false;
  }
  return true;
}

/// Resizing of space alone that a constant a channel passes unchanged, if there is one.
bool Passes(const Graph& graph, int32_t id, bool constant) {
  const Node& resize = graph.node(id);
  if (resize.op->name != "Resize") return false;
  const Shape& from = graph.type(resize.inputs[0]).shape;
  const Shape& to = resize.outputs[0].shape;
  if (from.size() < 3 || from[0] != to[0] || from[1] != to[1]) return false;
  return WithView(graph, id, [&](const NodeView& view) {
    bool passes = resize.op->linear_inputs(view) == 1;
    for (size_t d = 0; d < from.size() && passes; ++d) {
      const bool space = d >= 2;
      passes = (space && !constant) || SharesSumToOne(view, d);
    }
    return passes;
  });
}

std::vector<Match> FindMatches(const Graph& graph, int32_t node, const Predictor&) {
  if (graph.node(node).inputs.empty()) return {};
  const int32_t first = graph.node(node).inputs[0].node;
  if (graph.OnlyUser(first) < 0 || IsWeight(graph, {first, 0})) return {};
  // The convolution goes where the image is smaller.
  const bool conv_last = graph.node(node).op->name == "Conv";
  const int32_t conv = conv_last ? node : first;
  if (!IsConv1x1(graph, conv) ||
      !Passes(graph, conv_last ? first : node, graph.node(conv).inputs.size() > 2))
    return {};
  const Node& resize = graph.node(conv_last ? first : node);
  const int64_t before = NumElements(graph.type(resize.inputs[0])),
                after = NumElements(resize.outputs[0]);
  return (conv_last ? before < after : after < before) ? std::vector<Match>{{{first, node}, {}}}
                                                       : std::vector<Match>();
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&, const Predictor&) {
  Emitter e;
  const ValueId x = e.InputsOf(subprogram)[0];
  const Node& last = subprogram.node(subprogram.outputs()[0].value.node);
  const Node& first = subprogram.node(last.inputs[0].node);
  const auto emit = [&](const Node& node, ValueId input) {
    std::vector<ValueId> inputs = {input};
    for (size_t k = 1; k < node.inputs.size(); ++k)
      inputs.push_back(e.CopyConstantExpression(subprogram, node.inputs[k]));
    Attributes attrs = node.attrs;
    if (node.op->name == "Resize") {
      Shape sizes = node.outputs[0].shape;
      sizes[1] = e.shape(input)[1];
      attrs.Set("output_sizes", sizes);
    }
    return e.Op(node.op->name, inputs, attrs, node.name);
  };
  e.Output("out0", emit(first, emit(last, x)));
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  const int64_t factor = rng.Between(2, 3);
  const bool grows = rng.Flip();
  constexpr std::string_view kModes[] = {"nearest", "linear", "cubic"};
  const std::string_view mode = kModes[rng.Below(3)];
  const ValueId x = e.Input("x", {DType::kF32, {1, 3, 4 * factor, 5}});
  const double scale = grows ? static_cast<double>(factor) : 1.0 / static_cast<double>(factor);
  const auto resize = [&](ValueId v) {
    return e.Op("Resize", {v},
                {{"output_sizes", Ints{1, e.shape(v)[1], grows ? 4 * factor * factor : 4, 5}},
                 {"scales", std::vector<double>{1, 1, scale, 1}},
                 {"mode", std::string(mode)},
                 {"coordinate_transformation_mode",
                  std::string(mode == "nearest" ? "asymmetric" : "half_pixel")},
                 {"nearest_mode", std::string("floor")}});
  };
  const auto convolve = [&](ValueId v) {
    std::vector<ValueId> inputs = {
        v, e.Constant(Tensor::Filled({DType::kF32, {2, 3, 1, 1}}, 1.5), "w")};
    if (rng.Flip()) inputs.push_back(e.Constant(Tensor::Filled({DType::kF32, {2}}, 0.5), "b"));
    return e.Op("Conv", inputs,
                {{"strides", Ints{1, 1}}, {"dilations", Ints{1, 1}}, {"pads", Ints{0, 0, 0, 0}}});
  };
  e.Output("y", grows ? convolve(resize(x)) : resize(convolve(x)));
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "upsample_after_conv1x1";
  rule.family = "linear order";
  rule.before = "Conv(Resize(x), w[O, C, 1, 1], b)";
  rule.after = "Resize(Conv(x, w, b)), and the converse";
  rule.precondition =
      "resizing of space only, read once; no bias, or shares that sum to one; the convolution "
      "moves to the smaller image";
  rule.loses_when = "the convolution changes the channels so much that the copy grows by more";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::upsample_after_conv1x1
