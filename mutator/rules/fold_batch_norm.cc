// Batch normalisation folded into the convolution before it.
//
//   before  BatchNormalization(Conv(x, w, b), scale, shift, mean, var)
//   after   Conv(x, w * s, b * s + t),  s = BatchNorm(1){shift 0, mean 0},  t = BatchNorm(0)
//   exact. s and t are weight expressions, computed once when the plan is loaded. Never loses: applied before the search.

#include "graph/emitter.h"
#include "mutator/parallel.h"

namespace mendel {
namespace {

std::vector<Match> FindMatches(const Graph& graph, int32_t node) {
  const Node& norm = graph.node(node);
  if (norm.op->name != "BatchNormalization") return {};
  const int32_t conv = norm.inputs[0].node;
  if (graph.node(conv).op->name != "Conv" || graph.users(conv).size() != 1 || graph.IsOutput(conv)) return {};
  for (size_t k = 1; k < norm.inputs.size(); ++k) {
    if (!IsWeight(graph, norm.inputs[k])) return {};
  }
  for (size_t k = 1; k < graph.node(conv).inputs.size(); ++k) {
    if (!IsWeight(graph, graph.node(conv).inputs[k])) return {};
  }
  return {{{conv, node}, {}}};
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&) {
  Emitter e;
  const ValueId x = e.InputsOf(subprogram)[0];
  const Node& norm = subprogram.node(subprogram.outputs()[0].value.node);
  const Node& conv = subprogram.node(norm.inputs[0].node);
  const DType dtype = conv.outputs[0].dtype;
  const int64_t channels = conv.outputs[0].shape[1];
  const auto filled = [&](Shape shape, double value) { return e.Constant(Tensor::Filled({dtype, std::move(shape)}, value)); };
  std::vector<ValueId> parameters;
  for (size_t k = 1; k < norm.inputs.size(); ++k) parameters.push_back(e.CopyConstantExpression(subprogram, norm.inputs[k]));
  const ValueId none = filled({channels}, 0);
  const ValueId s = e.Reshape(
      e.Op("BatchNormalization", {filled({1, channels}, 1), parameters[0], none, none, parameters[3]}, norm.attrs), {channels});
  const ValueId t =
      e.Reshape(e.Op("BatchNormalization", {filled({1, channels}, 0), parameters[0], parameters[1], parameters[2], parameters[3]},
                     norm.attrs),
                {channels});
  const ValueId w = e.CopyConstantExpression(subprogram, conv.inputs[1]);
  Shape per_output(e.shape(w).size(), 1);
  per_output[0] = channels;
  ValueId bias = t;
  if (conv.inputs.size() > 2) bias = e.Add(e.Mul(e.CopyConstantExpression(subprogram, conv.inputs[2]), s), t);
  e.Output("out0", e.Op("Conv", {x, e.Mul(w, e.Reshape(s, per_output)), bias}, conv.attrs, conv.name));
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  const ValueId x = e.Input("x", {DType::kF32, {1, 2, 4, 4}});
  const auto weight = [&](Shape shape, const char* name, double value) {
    return e.Constant(Tensor::Filled({DType::kF32, std::move(shape)}, value), name);
  };
  std::vector<ValueId> inputs = {x, weight({3, 2, 3, 3}, "w", 1.5)};
  if (rng.Flip()) inputs.push_back(weight({3}, "b", 0.5));
  const ValueId y = e.Op("Conv", inputs, {{"strides", Ints{1, 1}}, {"dilations", Ints{1, 1}}, {"pads", Ints{1, 1, 1, 1}}});
  e.Output("y", e.Op("BatchNormalization",
                     {y, weight({3}, "scale", 2), weight({3}, "shift", 1), weight({3}, "mean", 0.25), weight({3}, "var", 4)}));
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "fold_batch_norm";
  rule.family = "constants";
  rule.before = "BatchNormalization(Conv(x, w, b))";
  rule.after = "Conv(x, w * s, b * s + t)";
  rule.precondition = "weights and statistics constant; the convolution is read once";
  rule.loses_when = "never";
  rule.stage = Stage::kNormalise;
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel
