// Batch normalization is folded into convolutions across a residual add or a concatenation.
//
//   before  BatchNorm(Conv(a, v, p) + Conv(b, w, q))
//   after   Conv(a, v*s, p*s + t) + Conv(b, w*s, q*s)
//   before  BatchNorm(Concat(Conv(a, v, p), Conv(b, w, q), ..))
//   after   Concat(Conv(a, v*s_1, p*s_1 + t_1), ..)
//
// Exact: s and t are weight expressions, computed when the plan is loaded. A pass over the data is
// saved.

#include <algorithm>

#include "mutator/batch_norm.h"
#include "mutator/parallel.h"
#include "mutator/rule.h"
#include "mutator/sample.h"

namespace mendel::rules::batch_norm_across {
namespace {

std::vector<Match> FindMatches(const Graph& graph, int32_t node) {
  if (!IsConstantBatchNorm(graph, node)) return {};
  const int32_t joint = graph.node(node).inputs[0].node;
  const Node& join = graph.node(joint);
  if (graph.OnlyUser(joint) < 0) return {};
  if (join.op->name != "Add" && (join.op->name != "Concat" || join.attrs.Int("axis") != 1))
    return {};
  Match match;
  for (ValueId value : join.inputs) {
    if (!IsFoldableConv(graph, value.node)) return {};
    if (join.op->name == "Add" && graph.type(value) != join.outputs[0]) return {};
    match.nodes.push_back(value.node);
  }
  match.nodes.insert(match.nodes.end(), {joint, node});
  return {match};
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&) {
  Emitter e;
  const std::vector<ValueId> inputs = e.InputsOf(subprogram);
  const int32_t norm = subprogram.outputs()[0].value.node;
  const Node& join = subprogram.node(subprogram.node(norm).inputs[0].node);
  const ChannelAffine affine = AffineOf(e, subprogram, norm);
  const bool concat = join.op->name == "Concat";
  std::vector<ValueId> parts;
  int64_t begin = 0;
  for (ValueId term : join.inputs) {
    const Node& conv = subprogram.node(term.node);
    const int64_t end = concat ? begin + conv.outputs[0].shape[1] : e.shape(affine.factor)[0];
    const ValueId factor = e.Slice(affine.factor, 0, begin, end);
    const ValueId shift = e.Slice(affine.shift, 0, begin, end);
    const bool shifted = concat || parts.empty();
    parts.push_back(FoldedConv(e, subprogram, term.node,
                               OperandOf(e, subprogram, conv.inputs[0], inputs), factor,
                               shifted ? &shift : nullptr));
    if (concat) begin = end;
  }
  e.Output("out0", concat ? e.Concat(parts, 1) : e.Add(parts[0], parts[1]));
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  const bool concat = rng.Flip();
  const ValueId x = e.Input("x", {DType::kF32, {2, 2, 5, 4}});
  std::vector<ValueId> parts;
  int64_t channels = 0;
  for (int64_t k = 0; k < (concat ? rng.Between(2, 3) : 2); ++k) {
    const std::string number = std::to_string(k);
    const int64_t width = concat ? rng.Between(1, 3) : 3;
    channels = concat ? channels + width : width;
    std::vector<ValueId> inputs = {x, SampleWeight(e, rng, {width, 2, 3, 3}, "w" + number)};
    if (rng.Flip()) inputs.push_back(SampleWeight(e, rng, {width}, "b" + number));
    parts.push_back(e.Op("Conv", inputs, WindowAttributes(2, 1, 1, 1)));
  }
  const auto filled = [&](const char* name, double value) {
    return e.Constant(Tensor::Filled({DType::kF32, {channels}}, value), name);
  };
  const ValueId y = concat ? e.Concat(parts, 1) : e.Add(parts[0], parts[1]);
  e.Output("y", e.Op("BatchNormalization", {y, filled("scale", 2), filled("shift", 0.5),
                                            filled("mean", 0.25), filled("variance", 3)}));
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "batch_norm_across";
  rule.family = "constants";
  rule.before = "BatchNorm(Conv(a) + Conv(b)), BatchNorm(Concat(Conv(a), Conv(b), ..))";
  rule.after =
      "Conv'(a) + Conv'(b), Concat(Conv'(a), Conv'(b), ..) with scaled weights and shifted biases";
  rule.precondition = "constant weights and statistics; everything in between is read once";
  rule.loses_when = "never";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::batch_norm_across
