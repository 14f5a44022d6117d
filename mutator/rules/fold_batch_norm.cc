// Batch normalisation folded into the convolution before it.
//
//   before  BatchNormalization(Conv(x, w, b), scale, shift, mean, var)
//   after   Conv(x, w * s, b * s + t),  s = BatchNorm(1){shift 0, mean 0},  t = BatchNorm(0)
//   exact. s and t are weight expressions, computed once when the plan is loaded. Never loses: applied before the search.

#include "mutator/batch_norm.h"
#include "mutator/rule.h"

namespace mendel::rules::fold_batch_norm {
namespace {

std::vector<Match> FindMatches(const Graph& graph, int32_t node) {
  if (!IsConstantBatchNorm(graph, node) || !IsFoldableConv(graph, graph.node(node).inputs[0].node)) return {};
  return {{{graph.node(node).inputs[0].node, node}, {}}};
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&) {
  Emitter e;
  const ValueId x = e.InputsOf(subprogram)[0];
  const int32_t norm = subprogram.outputs()[0].value.node;
  const ChannelAffine affine = AffineOf(e, subprogram, norm);
  e.Output("out0", FoldedConv(e, subprogram, subprogram.node(norm).inputs[0].node, x, affine.factor, &affine.shift));
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
}  // namespace mendel::rules::fold_batch_norm
