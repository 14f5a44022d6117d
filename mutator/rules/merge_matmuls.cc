// Parallel matrix products with one left operand become one product.
//
//   before  MatMul(x, w1) [+ b1], MatMul(x, w2) [+ b2], ..   (w of rank 2, b of rank 1 or [1, n])
//   after   Split(MatMul(x, [w1 | w2 | ..]) [+ [b1 | b2 | ..]])
//
// Exact. Examples are the projections of attention to Q, K and V, and the gates of recurrent cells.
//
// Source: TASO section 2, TENSAT.

#include <algorithm>

#include "graph/emitter.h"
#include "mutator/matches_by_last_node.h"
#include "mutator/parallel.h"

namespace mendel::rules::merge_matmuls {
namespace {

/// The Add of a constant row to `matmul`, when nothing else reads the product; else -1.
int32_t BiasOf(const Graph& graph, int32_t matmul) {
  if (graph.OnlyUser(matmul) < 0) return -1;
  const int32_t user = graph.users(matmul)[0];
  const Node& node = graph.node(user);
  if (node.op->name != "Add" || node.outputs[0] != graph.node(matmul).outputs[0]) return -1;
  const ValueId other = node.inputs[0].node == matmul ? node.inputs[1] : node.inputs[0];
  const Shape& shape = graph.type(other).shape;
  const bool row = IsWeight(graph, other) && !shape.empty() && NumElements(shape) == shape.back() &&
                   shape.back() == node.outputs[0].shape.back();
  return row ? user : -1;
}

bool TakesPart(const Graph& graph, int32_t id) {
  const Node& node = graph.node(id);
  return node.op->name == "MatMul" && !IsWeight(graph, node.inputs[0]) &&
         IsWeight(graph, node.inputs[1]) && graph.type(node.inputs[1]).shape.size() == 2;
}

MatchesByLastNode AllMatches(const Graph& graph) {
  MatchesByLastNode matches;
  for (const auto& group : SiblingGroups(graph, {.operand = 0, .takes_part = &TakesPart})) {
    Match match{group, {}};
    std::vector<int32_t> biases;
    for (int32_t matmul : group) biases.push_back(BiasOf(graph, matmul));
    if (std::none_of(biases.begin(), biases.end(), [](int32_t bias) { return bias < 0; })) {
      match.nodes.insert(match.nodes.end(), biases.begin(), biases.end());
    }
    matches[group.back()].push_back(std::move(match));
  }
  return matches;
}

std::vector<Match> FindMatches(const Graph& graph, int32_t node, const Predictor&) {
  return MatchesEndingAt(graph, node, &AllMatches);
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&, const Predictor&) {
  Emitter e;
  const std::vector<ValueId> inputs = e.InputsOf(subprogram);
  if (inputs.size() != 1)
    return absl::FailedPreconditionError("the products do not share their left operand");
  std::vector<ValueId> weights, rows;
  Ints sizes;
  bool biased = false;
  for (const GraphOutput& output : subprogram.outputs()) {
    int32_t matmul = output.value.node;
    if (subprogram.node(matmul).op->name == "Add") {
      const Node& add = subprogram.node(matmul);
      const size_t product = subprogram.node(add.inputs[0].node).op->name == "MatMul" ? 0 : 1;
      matmul = add.inputs[product].node;
      biased = true;
      const ValueId row = e.CopyConstantExpression(subprogram, add.inputs[1 - product]);
      rows.push_back(e.Reshape(row, {e.shape(row).back()}));
    }
    weights.push_back(e.CopyConstantExpression(subprogram, subprogram.node(matmul).inputs[1]));
    sizes.push_back(e.shape(weights.back()).back());
  }
  ValueId y = e.MatMul(inputs[0], e.Concat(weights, 1));
  if (biased) y = e.Add(y, e.Concat(rows, 0));
  const int64_t axis = static_cast<int64_t>(e.shape(y).size()) - 1;
  const std::vector<ValueId> parts =
      e.Ops("Split", {y}, sizes.size(), {{"axis", axis}, {"sizes", sizes}});
  for (size_t k = 0; k < parts.size(); ++k) e.Output(subprogram.outputs()[k].name, parts[k]);
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  const int64_t depth = rng.Between(2, 6);
  const ValueId x = e.Input("x", {DType::kF32, {rng.Between(1, 3), rng.Between(1, 4), depth}});
  const bool biased = rng.Flip();
  for (int64_t k = 0; k < rng.Between(2, 4); ++k) {
    const int64_t width = rng.Between(1, 5);
    const std::string number = std::to_string(k);
    ValueId y = e.MatMul(
        x, e.Constant(Tensor::Filled({DType::kF32, {depth, width}}, 1.0 + static_cast<double>(k)),
                      "w" + number));
    if (biased) y = e.Add(y, e.Constant(Tensor::Filled({DType::kF32, {width}}, 0.5), "b" + number));
    e.Output("y" + number, y);
  }
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "merge_matmuls";
  rule.family = "sharing";
  rule.before = "MatMul(x, w1) + b1, MatMul(x, w2) + b2, ..";
  rule.after = "Split(MatMul(x, [w1 | w2 | ..]) + [b1 | b2 | ..])";
  rule.precondition =
      "one left operand, constant right operands of rank 2, no product depends on another";
  rule.loses_when = "the split is a copy that costs more than the wider product gains";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::merge_matmuls
