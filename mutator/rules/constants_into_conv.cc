// Per-channel constants around a convolution are folded into its weights and bias.
//
//   before  Conv(x, w, b) * s           after  Conv(x, w*s, b*s)
//   before  Conv(x, w, b) + t           after  Conv(x, w, b + t)
//   before  (Conv(x, w, b) + y) + t     after  Conv(x, w, b + t) + y
//   before  Conv(x * s, w, b)           after  Conv(x, w*s along input channels, b)
//
// Exact, for ConvTranspose too: zero padding stays zero under a factor. A pass over the data is
// saved. shift_through_conv moves shifts through a padded convolution.

#include <algorithm>

#include "mutator/batch_norm.h"
#include "mutator/conv_at.h"
#include "mutator/parallel.h"
#include "mutator/rule.h"
#include "mutator/sample.h"

namespace mendel::rules::constants_into_conv {
namespace {

/// The operand of `node` that is a constant per channel (or one element) of rank at most the
/// result's, or -1.
int ChannelConstant(const Graph& graph, const Node& node) {
  const Shape& shape = node.outputs[0].shape;
  if (node.inputs.size() != 2 || shape.size() < 3) return -1;
  for (int k : {0, 1}) {
    const Shape& constant = graph.type(node.inputs[static_cast<size_t>(k)]).shape;
    if (!IsWeight(graph, node.inputs[static_cast<size_t>(k)])) continue;
    bool uniform = constant.size() <= shape.size();
    for (size_t d = 0; uniform && d < constant.size(); ++d) {
      uniform =
          constant[d] == 1 || (shape.size() - constant.size() + d == 1 && constant[d] == shape[1]);
    }
    if (uniform && graph.type(node.inputs[static_cast<size_t>(1 - k)]) == node.outputs[0]) return k;
  }
  return -1;
}

/// The operand of a residual add that is a convolution to fold into, or -1.
int ConvTerm(const Graph& graph, const Node& add) {
  if (add.op->name != "Add" || graph.type(add.inputs[0]) != graph.type(add.inputs[1]) ||
      add.inputs[0] == add.inputs[1])
    return -1;
  return IsFoldableConv(graph, add.inputs[0].node)
             ? 0
             : (IsFoldableConv(graph, add.inputs[1].node) ? 1 : -1);
}

std::vector<Match> FindMatches(const Graph& graph, int32_t node, const Predictor&) {
  const Node& last = graph.node(node);
  if (last.op->name == "Mul" || last.op->name == "Add") {
    const int k = ChannelConstant(graph, last);
    if (k < 0) return {};
    const int32_t data = last.inputs[static_cast<size_t>(1 - k)].node;
    if (IsFoldableConv(graph, data)) return {{{data, node}, {}}};
    const bool across = last.op->name == "Add" && graph.OnlyUser(data) >= 0;
    const int term = across ? ConvTerm(graph, graph.node(data)) : -1;
    if (term < 0) return {};
    return {{{graph.node(data).inputs[static_cast<size_t>(term)].node, data, node}, {}}};
  }
  const bool plain = last.op->name == "Conv" && last.attrs.Int("group") == 1;
  if ((!plain && last.op->name != "ConvTranspose") || !IsWeight(graph, last.inputs[1])) return {};
  if (HasRunTimeBias(graph, last)) return {};
  const int32_t first = last.inputs[0].node;
  const Node& scale = graph.node(first);
  if (scale.op->name != "Mul" || graph.OnlyUser(first) < 0) return {};
  if (IsWeight(graph, {first, 0}) || ChannelConstant(graph, scale) < 0) return {};
  return {{{first, node}, {}}};
}

/// The constant as [channels].
ValueId PerChannel(Emitter& e, const Graph& graph, ValueId value, int64_t channels) {
  const ValueId constant = e.CopyConstantExpression(graph, value);
  const int64_t count = NumElements(e.shape(constant));
  const ValueId flat = e.Reshape(constant, {count});
  return count == channels ? flat : e.Op("Expand", {flat}, {{"shape", Ints{channels}}});
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&, const Predictor&) {
  Emitter e;
  const std::vector<ValueId> outside = e.InputsOf(subprogram);
  const ValueId x = outside[0];
  const int32_t id = subprogram.outputs()[0].value.node;
  const Node& last = subprogram.node(id);
  if (last.op->name == "Conv" || last.op->name == "ConvTranspose") {
    const Node& scale = subprogram.node(last.inputs[0].node);
    const size_t k = static_cast<size_t>(ChannelConstant(subprogram, scale));
    const ValueId factor = PerChannel(e, subprogram, scale.inputs[k], scale.outputs[0].shape[1]);
    const ValueId w = e.CopyConstantExpression(subprogram, last.inputs[1]);
    std::vector<ValueId> inputs = {
        x, last.op->name == "Conv" ? ScaleColumns(e, w, factor) : ScaleRows(e, w, factor)};
    if (last.inputs.size() > 2)
      inputs.push_back(e.CopyConstantExpression(subprogram, last.inputs[2]));
    e.Output("out0", e.Op(last.op->name, inputs, last.attrs, last.name));
    return e.Finish();
  }
  const size_t k = static_cast<size_t>(ChannelConstant(subprogram, last));
  const Node& data = subprogram.node(last.inputs[1 - k].node);
  const bool across = data.op->name == "Add";
  const size_t term = across ? static_cast<size_t>(ConvTerm(subprogram, data)) : 0;
  const int32_t conv = across ? data.inputs[term].node : last.inputs[1 - k].node;
  const ValueId constant = PerChannel(e, subprogram, last.inputs[k], last.outputs[0].shape[1]);
  if (last.op->name == "Mul") {
    e.Output("out0", FoldedConv(e, subprogram, conv, x, constant, nullptr));
    return e.Finish();
  }
  const Node& node = subprogram.node(conv);
  std::vector<ValueId> inputs = {OperandOf(e, subprogram, node.inputs[0], outside),
                                 e.CopyConstantExpression(subprogram, node.inputs[1]), constant};
  if (node.inputs.size() > 2)
    inputs[2] = e.Add(e.CopyConstantExpression(subprogram, node.inputs[2]), constant);
  const ValueId y = e.Op(node.op->name, inputs, node.attrs, node.name);
  e.Output("out0", across ? e.Add(y, OperandOf(e, subprogram, data.inputs[1 - term], outside)) : y);
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  const int64_t kind = rng.Between(0, 3);
  const bool transposed = rng.Flip();
  const int64_t group = kind == 2 && !transposed ? 1 : rng.Between(1, 2);
  ValueId x = e.Input("x", {DType::kF32, {2, 4, 5, 4}});
  const Shape constant = rng.Flip() ? Shape{1, 4, 1, 1} : (rng.Flip() ? Shape{4, 1, 1} : Shape{});
  const ValueId c =
      e.Constant(Tensor::Filled({DType::kF32, constant}, 0.75), constant.empty() ? "" : "c");
  if (kind == 2) x = rng.Flip() ? e.Mul(x, c) : e.Mul(c, x);
  std::vector<ValueId> inputs = {x, SampleWeight(e, rng, {4, 4 / group, 3, 3}, "w")};
  if (rng.Flip()) inputs.push_back(SampleWeight(e, rng, {4}, "b"));
  Attributes attrs = WindowAttributes(2, rng.Between(1, 2), 1, 1);
  attrs.Set("group", group);
  if (transposed) attrs.Set("output_padding", Ints{0, 0});
  ValueId y = e.Op(transposed ? "ConvTranspose" : "Conv", inputs, attrs);
  if (kind == 0) y = rng.Flip() ? e.Mul(y, c) : e.Mul(c, y);
  if (kind == 3)
    y = rng.Flip() ? e.Add(e.Input("r", e.type(y)), y)
                   : e.Add(y, e.Op("Relu", {e.Input("r", e.type(y))}));
  if (kind == 1 || kind == 3) y = rng.Flip() ? e.Add(y, c) : e.Add(c, y);
  e.Output("y", y);
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "constants_into_conv";
  rule.family = "constants";
  rule.before = "Conv(x, w, b) * s, Conv(x, w, b) + t, (Conv(x, w, b) + y) + t, Conv(x * s, w, b)";
  rule.after = "Conv(x, w*s, b*s), Conv(x, w, b + t), Conv(x, w, b + t) + y, Conv(x, w*s, b)";
  rule.precondition =
      "s, t constant, one element or one a channel; read once; factors before: group 1, or "
      "ConvTranspose";
  rule.loses_when = "never";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::constants_into_conv
