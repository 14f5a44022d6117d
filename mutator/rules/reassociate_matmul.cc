// Matrix products are reassociated.
//
//   before  MatMul(MatMul(a, b), c)
//   after   MatMul(a, MatMul(b, c)), and the converse
//
// Exact. The rule gains most where b and c are weights: their product is computed once.

#include "graph/emitter.h"
#include "mutator/parallel.h"

namespace mendel::rules::reassociate_matmul {
namespace {

constexpr int64_t kLeft = 0;  // the inner product is the left operand
constexpr int64_t kRight = 1;

std::vector<Match> FindMatches(const Graph& graph, int32_t node) {
  std::vector<Match> matches;
  const Node& outer = graph.node(node);
  if (outer.op->name != "MatMul") return matches;
  for (int64_t side : {kLeft, kRight}) {
    const int32_t inner = outer.inputs[static_cast<size_t>(side)].node;
    if (graph.node(inner).op->name != "MatMul" || graph.OnlyUser(inner) < 0) continue;
    if (IsWeight(graph, {inner, 0})) continue;
    bool matrices = true;  // batched chains broadcast; their reassociation is left to matrices,
                           // where shapes always fit
    for (int32_t id : {node, inner}) {
      for (ValueId value : graph.node(id).inputs)
        matrices = matrices && graph.type(value).shape.size() == 2;
    }
    if (matrices) matches.push_back({{inner, node}, {{"side", side}}});
  }
  return matches;
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match& match) {
  Emitter e;
  const std::vector<ValueId> inputs = e.InputsOf(subprogram);
  const auto operand = [&](ValueId value) {
    for (size_t k = 0; k < inputs.size(); ++k) {
      if (subprogram.inputs()[k] == value.node) return inputs[k];
    }
    return e.CopyConstantExpression(subprogram, value);
  };
  const Node& outer = subprogram.node(subprogram.outputs()[0].value.node);
  const size_t side = static_cast<size_t>(match.choices.at("side"));
  const Node& inner = subprogram.node(outer.inputs[side].node);
  if (side == kLeft) {
    e.Output("out0", e.MatMul(operand(inner.inputs[0]),
                              e.MatMul(operand(inner.inputs[1]), operand(outer.inputs[1]))));
  } else {
    e.Output("out0", e.MatMul(e.MatMul(operand(outer.inputs[0]), operand(inner.inputs[0])),
                              operand(inner.inputs[1])));
  }
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  const int64_t m = rng.Between(1, 5), k = rng.Between(1, 5), n = rng.Between(1, 5),
                p = rng.Between(1, 5);
  const ValueId a = e.Input("a", {DType::kF32, {m, k}});
  const ValueId b = e.Constant(Tensor::Filled({DType::kF32, {k, n}}, 2), "b");
  const ValueId c = rng.Flip() ? e.Input("c", {DType::kF32, {n, p}})
                               : e.Constant(Tensor::Filled({DType::kF32, {n, p}}, 3), "c");
  e.Output("y", e.MatMul(e.MatMul(a, b), c));
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "reassociate_matmul";
  rule.family = "linear order";
  rule.before = "MatMul(MatMul(a, b), c)";
  rule.after = "MatMul(a, MatMul(b, c)), and the converse";
  rule.precondition = "matrices of rank 2; the inner product is read once";
  rule.loses_when = "the other order needs more arithmetic";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::reassociate_matmul
