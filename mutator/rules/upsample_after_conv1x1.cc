// The cheaper order of a pointwise convolution and a nearest upsampling.
//
//   before  Conv(Resize(x){nearest}, w[O, C, 1..], b)      after  Resize(Conv(x, w, b)){nearest}      and the converse
//   exact: nearest resizing copies elements and acts on each channel alike. Wins whenever the image grows (the converse where
//   it shrinks).

#include <algorithm>

#include "graph/emitter.h"
#include "mutator/conv_chain.h"
#include "mutator/parallel.h"

namespace mendel::rules::upsample_after_conv1x1 {
namespace {

bool IsConv1x1(const Graph& graph, int32_t id) {
  const Node& conv = graph.node(id);
  return conv.op->name == "Conv" && IsPointwiseConv(ShapeOf(graph, id)) &&
         std::all_of(conv.inputs.begin() + 1, conv.inputs.end(), [&](ValueId v) { return IsWeight(graph, v); });
}

/// Nearest resizing of space alone.
bool IsCopy(const Graph& graph, int32_t id) {
  const Node& resize = graph.node(id);
  if (resize.op->name != "Resize" || resize.attrs.Str("mode") != "nearest" ||
      resize.attrs.Str("coordinate_transformation_mode") == "tf_crop_and_resize")
    return false;
  const Shape& from = graph.type(resize.inputs[0]).shape;
  const Shape& to = resize.outputs[0].shape;
  return from[0] == to[0] && from[1] == to[1];
}

std::vector<Match> FindMatches(const Graph& graph, int32_t node) {
  if (graph.node(node).inputs.empty()) return {};
  const int32_t first = graph.node(node).inputs[0].node;
  if (graph.users(first).size() != 1 || graph.IsOutput(first) || IsWeight(graph, {first, 0})) return {};
  const bool pair = (IsConv1x1(graph, node) && IsCopy(graph, first)) || (IsCopy(graph, node) && IsConv1x1(graph, first));
  if (!pair) return {};
  // The convolution goes where the image is smaller.
  const bool conv_last = graph.node(node).op->name == "Conv";
  const Node& resize = graph.node(conv_last ? first : node);
  const int64_t before = NumElements(graph.type(resize.inputs[0])), after = NumElements(resize.outputs[0]);
  return (conv_last ? before < after : after < before) ? std::vector<Match>{{{first, node}, {}}} : std::vector<Match>();
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&) {
  Emitter e;
  const ValueId x = e.InputsOf(subprogram)[0];
  const Node& last = subprogram.node(subprogram.outputs()[0].value.node);
  const Node& first = subprogram.node(last.inputs[0].node);
  const auto emit = [&](const Node& node, ValueId input) {
    std::vector<ValueId> inputs = {input};
    for (size_t k = 1; k < node.inputs.size(); ++k) inputs.push_back(e.CopyConstantExpression(subprogram, node.inputs[k]));
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
  const ValueId x = e.Input("x", {DType::kF32, {1, 3, 4 * factor, 5}});
  const double scale = grows ? static_cast<double>(factor) : 1.0 / static_cast<double>(factor);
  const auto resize = [&](ValueId v) {
    return e.Op("Resize", {v},
                {{"output_sizes", Ints{1, e.shape(v)[1], grows ? 4 * factor * factor : 4, 5}},
                 {"scales", std::vector<double>{1, 1, scale, 1}},
                 {"mode", std::string("nearest")},
                 {"coordinate_transformation_mode", std::string("asymmetric")},
                 {"nearest_mode", std::string("floor")}});
  };
  const auto convolve = [&](ValueId v) {
    std::vector<ValueId> inputs = {v, e.Constant(Tensor::Filled({DType::kF32, {2, 3, 1, 1}}, 1.5), "w")};
    if (rng.Flip()) inputs.push_back(e.Constant(Tensor::Filled({DType::kF32, {2}}, 0.5), "b"));
    return e.Op("Conv", inputs, {{"strides", Ints{1, 1}}, {"dilations", Ints{1, 1}}, {"pads", Ints{0, 0, 0, 0}}});
  };
  e.Output("y", grows ? convolve(resize(x)) : resize(convolve(x)));
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "upsample_after_conv1x1";
  rule.family = "linear order";
  rule.before = "Conv(Resize(x){nearest}, w[O, C, 1, 1], b)";
  rule.after = "Resize(Conv(x, w, b)){nearest}, and the converse";
  rule.precondition = "nearest resizing of space only, read once; the convolution moves to the smaller image";
  rule.loses_when = "the convolution changes the channels so much that the copy grows by more";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::upsample_after_conv1x1
