// A product with a weight becomes a pointwise convolution.
//
//   before  MatMul(x[.., M, K], w[K, N])
//   after   unview(Conv(x^T[1, K, M', 1], w^T[N, K, 1, 1]))
//
// Exact.

#include <algorithm>

#include "graph/emitter.h"
#include "mutator/parallel.h"

namespace mendel::rules::matmul_to_conv1x1 {
namespace {

std::vector<Match> FindMatches(const Graph& graph, int32_t node, const Predictor&) {
  const Node& matmul = graph.node(node);
  if (matmul.op->name != "MatMul" || !IsWeight(graph, matmul.inputs[1]) ||
      IsWeight(graph, matmul.inputs[0]))
    return {};
  if (graph.type(matmul.inputs[1]).shape.size() != 2 || !IsFloat(matmul.outputs[0].dtype))
    return {};
  if (NumElements(matmul.outputs[0]) / std::max<int64_t>(1, matmul.outputs[0].shape.back()) < 16)
    return {};
  return {{{node}, {}}};
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&, const Predictor&) {
  Emitter e;
  const ValueId x = e.InputsOf(subprogram)[0];
  const GraphOutput& output = subprogram.outputs()[0];
  const ValueId w =
      e.CopyConstantExpression(subprogram, subprogram.node(output.value.node).inputs[1]);
  const int64_t depth = e.shape(w)[0];
  const int64_t width = e.shape(w)[1];
  const int64_t rows = NumElements(e.shape(x)) / depth;
  const ValueId image =
      e.Reshape(e.Transpose(e.Reshape(x, {rows, depth}), {1, 0}), {1, depth, rows, 1});
  const ValueId kernel = e.Reshape(e.Transpose(w, {1, 0}), {width, depth, 1, 1});
  const ValueId y =
      e.Op("Conv", {image, kernel},
           {{"strides", Ints{1, 1}}, {"dilations", Ints{1, 1}}, {"pads", Ints{0, 0, 0, 0}}});
  e.Output("out0", e.Reshape(e.Transpose(e.Reshape(y, {width, rows}), {1, 0}),
                             subprogram.type(output.value).shape));
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  const int64_t depth = rng.Between(1, 5);
  const ValueId x = e.Input("x", {DType::kF32, {rng.Between(1, 2), rng.Between(16, 20), depth}});
  e.Output("y", e.MatMul(x, e.Constant(Tensor::Filled({DType::kF32, {depth, rng.Between(1, 5)}}, 2),
                                       "w")));
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "matmul_to_conv1x1";
  rule.family = "linear order";
  rule.before = "MatMul(x, w)";
  rule.after = "unview(Conv(view(x), w[N, K, 1, 1]))";
  rule.precondition = "constant right operand of rank 2, at least 16 rows";
  rule.loses_when = "the library's matrix product is as good as its convolution";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::matmul_to_conv1x1
