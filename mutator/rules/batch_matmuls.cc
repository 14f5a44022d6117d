// Independent matrix products with one right operand become one product over stacked rows.
//
//   before  MatMul(x1, w), MatMul(x2, w), ..   (w a weight of rank 2)
//   after   Split(MatMul([x1; x2; ..], w)) along the rows
//
// Exact. Example: the input side of a recurrent cell over time, whose weights are then read once
// instead of once a step.

#include <algorithm>

#include "graph/emitter.h"
#include "mutator/matches_by_last_node.h"
#include "mutator/parallel.h"

namespace mendel::rules::batch_matmuls {
namespace {

bool TakesPart(const Graph& graph, int32_t id) {
  const Node& node = graph.node(id);
  return node.op->name == "MatMul" && IsWeight(graph, node.inputs[1]) &&
         graph.type(node.inputs[1]).shape.size() == 2 && !IsWeight(graph, node.inputs[0]);
}

MatchesByLastNode AllMatches(const Graph& graph) {
  MatchesByLastNode matches;
  for (const auto& group : SiblingGroups(graph, {.operand = 1, .takes_part = &TakesPart}))
    matches[group.back()].push_back({group, {}});
  return matches;
}

std::vector<Match> FindMatches(const Graph& graph, int32_t node, const Predictor&) {
  return MatchesEndingAt(graph, node, &AllMatches);
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&, const Predictor&) {
  Emitter e;
  const std::vector<ValueId> inputs = e.InputsOf(subprogram);
  std::vector<ValueId> rows;
  Ints sizes;
  ValueId w;
  for (const GraphOutput& output : subprogram.outputs()) {
    const Node& matmul = subprogram.node(output.value.node);
    const auto place =
        std::find(subprogram.inputs().begin(), subprogram.inputs().end(), matmul.inputs[0].node);
    if (place == subprogram.inputs().end())
      return absl::FailedPreconditionError("a product reads another");
    const ValueId x = inputs[static_cast<size_t>(place - subprogram.inputs().begin())];
    const int64_t depth = e.shape(x).back();
    sizes.push_back(NumElements(e.shape(x)) / std::max<int64_t>(1, depth));
    rows.push_back(e.Reshape(x, {sizes.back(), depth}));
    w = e.CopyConstantExpression(subprogram, matmul.inputs[1]);
  }
  const ValueId y = e.MatMul(e.Concat(rows, 0), w);
  const std::vector<ValueId> parts =
      e.Ops("Split", {y}, sizes.size(), {{"axis", int64_t{0}}, {"sizes", sizes}});
  for (size_t k = 0; k < parts.size(); ++k) {
    e.Output(subprogram.outputs()[k].name,
             e.Reshape(parts[k], subprogram.type(subprogram.outputs()[k].value).shape));
  }
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  const int64_t depth = rng.Between(2, 6);
  const ValueId w = e.Constant(Tensor::Filled({DType::kF32, {depth, rng.Between(1, 5)}}, 2), "w");
  for (int64_t k = 0; k < rng.Between(2, 4); ++k) {
    const std::string number = std::to_string(k);
    const Shape shape =
        rng.Flip() ? Shape{rng.Between(1, 3), depth} : Shape{2, rng.Between(1, 3), depth};
    e.Output("y" + number, e.MatMul(e.Input("x" + number, {DType::kF32, shape}), w));
  }
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "batch_matmuls";
  rule.family = "sharing";
  rule.before = "MatMul(x1, w), MatMul(x2, w), ..";
  rule.after = "Split(MatMul([x1; x2; ..], w)) along the rows";
  rule.precondition = "one constant right operand of rank 2, no product depends on another";
  rule.loses_when = "stacking the rows costs more than reading the weights again";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::batch_matmuls
