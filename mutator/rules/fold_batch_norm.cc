// Batch normalization is folded into the convolution, or transposed convolution, before it.
//
//   before  BatchNormalization(Conv(x, w, b), scale, shift, mean, var)
//   after   Conv(x, w * s, b * s + t),  s = BatchNorm(1){shift 0, mean 0},  t = BatchNorm(0)
//
// Exact: s and t are weight expressions, computed when the plan is loaded. The rule is applied
// before the search.

#include "mutator/batch_norm.h"
#include "mutator/rule.h"
#include "mutator/sample.h"

namespace mendel::rules::fold_batch_norm {
namespace {

std::vector<Match> FindMatches(const Graph& graph, int32_t node, const Predictor&) {
  if (!IsConstantBatchNorm(graph, node) || !IsFoldableConv(graph, graph.node(node).inputs[0].node))
    return {};
  return {{{graph.node(node).inputs[0].node, node}, {}}};
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&, const Predictor&) {
  Emitter e;
  const ValueId x = e.InputsOf(subprogram)[0];
  const int32_t norm = subprogram.outputs()[0].value.node;
  const ChannelAffine affine = AffineOf(e, subprogram, norm);
  e.Output("out0", FoldedConv(e, subprogram, subprogram.node(norm).inputs[0].node, x, affine.factor,
                              &affine.shift));
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  const ValueId x = e.Input("x", {DType::kF32, {1, 2, 4, 4}});
  const auto weight = [&](Shape shape, const char* name, double value) {
    return e.Constant(Tensor::Filled({DType::kF32, std::move(shape)}, value), name);
  };
  const bool transposed = rng.Flip();
  const int64_t group = rng.Between(1, 2);
  const Shape kernel = transposed ? Shape{2, 4 / group, 3, 3} : Shape{4, 2 / group, 3, 3};
  std::vector<ValueId> inputs = {x, SampleWeight(e, rng, kernel, "w")};
  if (rng.Flip()) inputs.push_back(weight({4}, "b", 0.5));
  Attributes attrs = WindowAttributes(2, rng.Between(1, 2), 1, 1);
  attrs.Set("group", group);
  if (transposed) attrs.Set("output_padding", Ints{0, 0});
  const ValueId y = e.Op(transposed ? "ConvTranspose" : "Conv", inputs, attrs);
  e.Output("y", e.Op("BatchNormalization",
                     {y, SampleWeight(e, rng, {4}, "scale"), weight({4}, "shift", 1),
                      weight({4}, "mean", 0.25), weight({4}, "var", 4)}));
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "fold_batch_norm";
  rule.family = "constants";
  rule.before = "BatchNormalization(Conv(x, w, b)), BatchNormalization(ConvTranspose(x, w, b))";
  rule.after = "Conv(x, w * s, b * s + t), ConvTranspose(x, w * s, b * s + t)";
  rule.precondition = "weights and statistics constant; the convolution is read once";
  rule.loses_when = "never";
  rule.stage = Stage::kNormalize;
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::fold_batch_norm
