// A pointwise convolution moved before a nearest upsampling that it follows.
//
//   before  Conv(Resize(x){nearest}, w[O, C, 1..], b)      after  Resize(Conv(x, w, b)){nearest}
//   exact: nearest upsampling copies elements and acts on each channel alike. Wins whenever the image grows.

#include "graph/emitter.h"
#include "mutator/conv_chain.h"

namespace mendel {
namespace {

std::vector<Match> FindMatches(const Graph& graph, int32_t node) {
  const Node& conv = graph.node(node);
  if (conv.op->name != "Conv") return {};
  const int32_t resize = conv.inputs[0].node;
  const Node& producer = graph.node(resize);
  if (!IsPointwiseConv(ShapeOf(graph, node)) || producer.op->name != "Resize" || graph.users(resize).size() != 1 ||
      graph.IsOutput(resize))
    return {};
  if (producer.attrs.Str("mode") != "nearest" || producer.attrs.Str("coordinate_transformation_mode") == "tf_crop_and_resize")
    return {};
  const Shape& from = graph.type(producer.inputs[0]).shape;
  const Shape& to = producer.outputs[0].shape;
  if (from[0] != to[0] || from[1] != to[1]) return {};
  return {{{resize, node}, {}}};
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&) {
  Emitter e;
  const ValueId x = e.InputsOf(subprogram)[0];
  const Node& conv = subprogram.node(subprogram.outputs()[0].value.node);
  const Node& resize = subprogram.node(conv.inputs[0].node);
  std::vector<ValueId> inputs = {x};
  for (size_t k = 1; k < conv.inputs.size(); ++k) inputs.push_back(e.CopyConstantExpression(subprogram, conv.inputs[k]));
  Attributes attrs = resize.attrs;
  attrs.Set("output_sizes", conv.outputs[0].shape);
  e.Output("out0", e.Op("Resize", {e.Op("Conv", inputs, conv.attrs, conv.name)}, attrs, resize.name));
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  const int64_t factor = rng.Between(2, 3);
  const ValueId x = e.Input("x", {DType::kF32, {1, 3, 4, 5}});
  const double scale = static_cast<double>(factor);
  const ValueId up = e.Op("Resize", {x},
                          {{"output_sizes", Ints{1, 3, 4 * factor, 5 * factor}},
                           {"scales", std::vector<double>{1, 1, scale, scale}},
                           {"mode", std::string("nearest")},
                           {"coordinate_transformation_mode", std::string("asymmetric")},
                           {"nearest_mode", std::string("floor")}});
  std::vector<ValueId> inputs = {up, e.Constant(Tensor::Filled({DType::kF32, {2, 3, 1, 1}}, 1.5), "w")};
  if (rng.Flip()) inputs.push_back(e.Constant(Tensor::Filled({DType::kF32, {2}}, 0.5), "b"));
  e.Output("y", e.Op("Conv", inputs, {{"strides", Ints{1, 1}}, {"dilations", Ints{1, 1}}, {"pads", Ints{0, 0, 0, 0}}}));
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "upsample_after_conv1x1";
  rule.family = "linear order";
  rule.before = "Conv(Resize(x){nearest}, w[O, C, 1, 1], b)";
  rule.after = "Resize(Conv(x, w, b)){nearest}";
  rule.precondition = "nearest upsampling of space only, read once";
  rule.loses_when = "the image shrinks or the convolution widens the channels";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel
