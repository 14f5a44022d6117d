// A sum of linear operators becomes one operator on a concatenation or, with one weight, on a sum.
//
//   before  Conv(a, v, p) + Conv(b, w, q)        MatMul(a, v) + MatMul(b, w)
//   after   Conv(Concat(a, b), [v | w], p + q)   MatMul(Concat(a, b), [v; w])
//   after   (shared = 1, v = w)  Conv(a + b, w, p + q),  MatMul(a + b, w)
//
// Exact. Examples are the cells of recurrent networks (x*W + h*U), shortcut projections, and
// residual adds of pointwise branches.
//
// Source: TASO.

#include <algorithm>

#include "graph/emitter.h"
#include "mutator/conv_chain.h"
#include "mutator/parallel.h"
#include "mutator/sample.h"

namespace mendel::rules::sum_to_concat {
namespace {

bool IsLinear(const Graph& graph, int32_t id) {
  const Node& node = graph.node(id);
  if (graph.OnlyUser(id) < 0 || node.inputs.size() < 2 || IsWeight(graph, node.inputs[0]))
    return false;
  for (size_t k = 1; k < node.inputs.size(); ++k) {
    if (!IsWeight(graph, node.inputs[k])) return false;
  }
  if (node.op->name == "Conv") return node.attrs.Int("group") == 1;
  return node.op->name == "MatMul" && graph.type(node.inputs[1]).shape.size() == 2;
}

std::vector<Match> FindMatches(const Graph& graph, int32_t node, const Predictor&) {
  const Node& add = graph.node(node);
  if (add.op->name != "Add" || add.inputs[0].node == add.inputs[1].node) return {};
  const int32_t first = add.inputs[0].node, second = add.inputs[1].node;
  if (!IsLinear(graph, first) || !IsLinear(graph, second)) return {};
  const Node &f = graph.node(first), &g = graph.node(second);
  if (f.inputs[0] == g.inputs[0]) return {};  // add_kernels
  if (f.op != g.op || f.attrs != g.attrs || f.outputs[0] != g.outputs[0]) return {};
  const Shape &a = graph.type(f.inputs[0]).shape, &b = graph.type(g.inputs[0]).shape;
  const Shape &v = graph.type(f.inputs[1]).shape, &w = graph.type(g.inputs[1]).shape;
  const size_t axis = f.op->name == "Conv" ? 1 : a.size() - 1;
  if (a.size() != b.size() || v.size() != w.size()) return {};
  for (size_t d = 0; d < a.size(); ++d) {
    if (d != axis && a[d] != b[d]) return {};
  }
  for (size_t d = 2; d < v.size(); ++d) {
    if (v[d] != w[d]) return {};
  }
  std::vector<int32_t> nodes = {std::min(first, second), std::max(first, second), node};
  if (f.inputs[1] == g.inputs[1]) return {{nodes, {{"shared", 1}}}};
  return {{nodes, {{"shared", 0}}}};
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match& match, const Predictor&) {
  Emitter e;
  const std::vector<ValueId> inputs = e.InputsOf(subprogram);
  const Node& add = subprogram.node(subprogram.outputs()[0].value.node);
  std::vector<ValueId> data, weights, biases;
  for (ValueId term : add.inputs) {
    const Node& linear = subprogram.node(term.node);
    data.push_back(OperandOf(e, subprogram, linear.inputs[0], inputs));
    weights.push_back(e.CopyConstantExpression(subprogram, linear.inputs[1]));
    if (linear.inputs.size() > 2)
      biases.push_back(e.CopyConstantExpression(subprogram, linear.inputs[2]));
  }
  const Node& first = subprogram.node(add.inputs[0].node);
  const bool conv = first.op->name == "Conv";
  const int64_t axis = conv ? 1 : static_cast<int64_t>(e.shape(data[0]).size()) - 1;
  std::vector<ValueId> operands;
  if (match.choices.at("shared") == 1) {
    operands = {e.Add(data[0], data[1]), weights[0]};
  } else {
    operands = {e.Concat(data, axis), e.Concat(weights, conv ? 1 : 0)};
  }
  if (!biases.empty())
    operands.push_back(biases.size() == 1 ? biases[0] : e.Add(biases[0], biases[1]));
  e.Output("out0", e.Op(first.op->name, operands, first.attrs, first.name));
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  const bool conv = rng.Flip(), shared = rng.Flip();
  const int64_t kernel = rng.Between(1, 3);
  const int64_t stride = rng.Between(1, 2);
  std::vector<ValueId> terms;
  const int64_t width = rng.Between(1, 3);
  for (int64_t k = 0; k < 2; ++k) {
    const std::string number = std::to_string(k);
    const int64_t depth = shared ? width : width + k;
    const ValueId x =
        e.Input("x" + number, {DType::kF32, conv ? Shape{2, depth, 5, 4} : Shape{2, 3, depth}});
    const std::string name = shared ? "w" : "w" + number;
    const Shape shape = conv ? Shape{3, depth, kernel, kernel} : Shape{depth, 3};
    std::vector<ValueId> inputs = {x, e.Constant(Tensor::Filled({DType::kF32, shape}, 1.5), name)};
    if (conv && rng.Flip()) inputs.push_back(SampleWeight(e, rng, {3}, "b" + number));
    terms.push_back(conv ? e.Op("Conv", inputs, WindowAttributes(2, stride, 1, 1))
                         : e.MatMul(inputs[0], inputs[1]));
  }
  e.Output("y", e.Add(terms[0], terms[1]));
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "sum_to_concat";
  rule.family = "linear order";
  rule.before = "Conv(a, v) + Conv(b, w), MatMul(a, v) + MatMul(b, w)";
  rule.after =
      "Conv(Concat(a, b), [v | w]), MatMul(Concat(a, b), [v; w]); Conv(a + b, w) where v = w";
  rule.precondition = "constant weights, equal windows, group 1, each term read once";
  rule.loses_when = "the concatenation is a copy that costs more than the larger product gains";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::sum_to_concat
