// A scalar factor moves back to a weight, through views, biases and products of activations.
//
//   before  view*(MatMul(.. (MatMul(x, w) + b) .., k)) * c       (or / c)
//   after   view*(MatMul(.. (MatMul(x, w*c) + b*c) .., k))
//
// Exact: every operator on the way is linear in the operand that is followed. Example: the
// 1/sqrt(d) of attention, where a pass over the scores is saved.

#include <algorithm>

#include "graph/emitter.h"
#include "mutator/parallel.h"
#include "mutator/rule.h"
#include "mutator/sample.h"

namespace mendel::rules::scale_into_matmul {
namespace {

constexpr size_t kMaxPath = 12;

/// The operand through which a factor of `node`'s result goes back, or -1.
int FollowedOperand(const Graph& graph, const Node& node) {
  if (node.op->name == "Reshape" || node.op->name == "Transpose" || node.op->name == "MatMul")
    return 0;
  if (node.op->name != "Add") return -1;
  if (IsWeight(graph, node.inputs[1]))
    return graph.type(node.inputs[0]) == node.outputs[0] ? 0 : -1;
  return IsWeight(graph, node.inputs[0]) && graph.type(node.inputs[1]) == node.outputs[0] ? 1 : -1;
}

bool ScalesByConstant(const Graph& graph, const Node& node, size_t& data) {
  if (node.op->name != "Mul" && node.op->name != "Div") return false;
  for (size_t k : {size_t{1}, size_t{0}}) {
    if (k == 0 && node.op->name == "Div") continue;
    if (!IsWeight(graph, node.inputs[k]) || NumElements(graph.type(node.inputs[k])) != 1) continue;
    data = 1 - k;
    return graph.type(node.inputs[data]) == node.outputs[0] && IsFloat(node.outputs[0].dtype);
  }
  return false;
}

std::vector<Match> FindMatches(const Graph& graph, int32_t node, const Predictor&) {
  size_t data = 0;
  if (!ScalesByConstant(graph, graph.node(node), data)) return {};
  Match match{{node}, {}};
  int32_t id = graph.node(node).inputs[data].node;
  while (match.nodes.size() < kMaxPath) {
    const Node& here = graph.node(id);
    const int followed = FollowedOperand(graph, here);
    if (followed < 0 || graph.OnlyUser(id) < 0) return {};
    match.nodes.insert(match.nodes.begin(), id);
    if (here.op->name == "MatMul" && IsWeight(graph, here.inputs[1])) return {match};
    id = here.inputs[static_cast<size_t>(followed)].node;
  }
  return {};
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&, const Predictor&) {
  Emitter e;
  const std::vector<ValueId> inputs = e.InputsOf(subprogram);
  const Node& last = subprogram.node(subprogram.outputs()[0].value.node);
  size_t data = 0;
  if (!ScalesByConstant(subprogram, last, data)) return absl::FailedPreconditionError("no factor");
  const ValueId factor = e.Reshape(e.CopyConstantExpression(subprogram, last.inputs[1 - data]), {});
  const auto scaled = [&](ValueId weight) {
    return e.Op(last.op->name, {e.CopyConstantExpression(subprogram, weight), factor});
  };
  std::vector<const Node*> path;  // from the factor back to the weight
  for (int32_t id = last.inputs[data].node; path.empty() || path.back()->op->name != "MatMul" ||
                                            !IsWeight(subprogram, path.back()->inputs[1]);) {
    path.push_back(&subprogram.node(id));
    id = path.back()->inputs[static_cast<size_t>(FollowedOperand(subprogram, *path.back()))].node;
  }
  ValueId x = e.MatMul(OperandOf(e, subprogram, path.back()->inputs[0], inputs),
                       scaled(path.back()->inputs[1]));
  for (size_t k = path.size() - 1; k-- > 0;) {
    const Node& node = *path[k];
    if (node.op->name == "Add") {
      x = e.Add(x, scaled(node.inputs[static_cast<size_t>(1 - FollowedOperand(subprogram, node))]));
    } else if (node.op->name == "MatMul") {
      x = e.MatMul(x, OperandOf(e, subprogram, node.inputs[1], inputs));
    } else {
      x = e.Op(node.op->name, {x}, node.attrs);
    }
  }
  e.Output("out0", x);
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  const int64_t heads = rng.Between(1, 2), depth = 3, length = rng.Between(2, 4);
  ValueId q = e.MatMul(e.Input("x", {DType::kF32, {2, length, 5}}),
                       SampleWeight(e, rng, {5, heads * depth}, "w"));
  if (rng.Flip()) q = e.Add(q, SampleWeight(e, rng, {heads * depth}, "b"));
  q = e.Transpose(e.Reshape(q, {2, length, heads, depth}), {0, 2, 1, 3});
  if (rng.Flip()) q = e.MatMul(q, e.Input("k", {DType::kF32, {2, heads, depth, length}}));
  const ValueId c = e.Constant(Tensor::Scalar(DType::kF32, 0.25));
  e.Output("y", rng.Flip() ? e.Op("Div", {q, c}) : (rng.Flip() ? e.Mul(q, c) : e.Mul(c, q)));
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "scale_into_matmul";
  rule.family = "attention";
  rule.before = "c * view(MatMul(MatMul(x, w) + b, k)), or divided by c";
  rule.after = "view(MatMul(MatMul(x, w*c) + b*c, k))";
  rule.precondition =
      "c constant of one element; only views, constant adds and products on the way, each read "
      "once";
  rule.loses_when = "never";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::scale_into_matmul
