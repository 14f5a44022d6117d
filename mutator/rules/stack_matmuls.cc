// Independent matrix products of equal shapes become one batched product.
//
//   before  MatMul(a1, b1), MatMul(a2, b2), ..      (a_i of one type, b_i of one type)
//   after   rows of MatMul(stack(a_i), stack(b_i))
//
// Exact. Stacks of weights are made when the plan is loaded.

#include <algorithm>

#include "graph/emitter.h"
#include "mutator/parallel.h"
#include "mutator/rule.h"
#include "mutator/sample.h"

namespace mendel::rules::stack_matmuls {
namespace {

constexpr size_t kMaxMembers = 12;

std::vector<Match> FindMatches(const Graph& graph, int32_t node, const Predictor&) {
  const Node& last = graph.node(node);
  if (last.op->name != "MatMul" || IsWeight(graph, {node, 0})) return {};
  const TensorType &a = graph.type(last.inputs[0]), &b = graph.type(last.inputs[1]);
  if (a.shape.size() < 2 || a.shape.size() != b.shape.size() || a.shape.size() >= kMaxRank)
    return {};
  if (!std::equal(a.shape.begin(), a.shape.end() - 2, b.shape.begin())) return {};
  const std::vector<int32_t> group = GroupEndingAt(graph, node, kMaxMembers, [&](int32_t id) {
    const Node& other = graph.node(id);
    return other.op == last.op && graph.type(other.inputs[0]) == a &&
           graph.type(other.inputs[1]) == b && !IsWeight(graph, {id, 0});
  });
  if (group.empty()) return {};
  const auto same = [&](size_t side) {
    return std::all_of(group.begin(), group.end(), [&](int32_t id) {
      return graph.node(id).inputs[side] == last.inputs[side];
    });
  };
  if (same(0) || same(1)) return {};  // merge_matmuls and batch_matmuls do better
  return {{group, {}}};
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&, const Predictor&) {
  Emitter e;
  const std::vector<ValueId> inputs = e.InputsOf(subprogram);
  std::vector<ValueId> stacks[2];
  for (const GraphOutput& output : subprogram.outputs()) {
    const Node& matmul = subprogram.node(output.value.node);
    for (size_t side : {size_t{0}, size_t{1}}) {
      const ValueId operand = OperandOf(e, subprogram, matmul.inputs[side], inputs);
      Shape one = e.shape(operand);
      one.insert(one.begin(), 1);
      stacks[side].push_back(e.Reshape(operand, one));
    }
  }
  const ValueId y = e.MatMul(e.Concat(stacks[0], 0), e.Concat(stacks[1], 0));
  const std::vector<ValueId> parts =
      e.Ops("Split", {y}, subprogram.outputs().size(),
            {{"axis", int64_t{0}}, {"sizes", Ints(subprogram.outputs().size(), 1)}});
  for (size_t k = 0; k < parts.size(); ++k) {
    const GraphOutput& output = subprogram.outputs()[k];
    e.Output(output.name, e.Reshape(parts[k], subprogram.type(output.value).shape));
  }
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  const int64_t m = rng.Between(1, 4), k = rng.Between(2, 4), n = rng.Between(1, 4);
  const Shape batch = rng.Flip() ? Shape{} : Shape{rng.Between(1, 2)};
  const auto shaped = [&](int64_t rows, int64_t columns) {
    Shape shape = batch;
    shape.insert(shape.end(), {rows, columns});
    return shape;
  };
  const bool weights = rng.Flip();
  for (int64_t i = 0; i < rng.Between(2, 4); ++i) {
    const std::string number = std::to_string(i);
    const ValueId a = e.Input("a" + number, {DType::kF32, shaped(m, k)});
    const ValueId b = weights ? SampleWeight(e, rng, shaped(k, n), "b" + number)
                              : e.Input("b" + number, {DType::kF32, shaped(k, n)});
    e.Output("y" + number, e.MatMul(a, b));
  }
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "stack_matmuls";
  rule.family = "sharing";
  rule.before = "MatMul(a1, b1), MatMul(a2, b2), .. of equal shapes";
  rule.after = "rows of MatMul(stack(a1, a2, ..), stack(b1, b2, ..))";
  rule.precondition = "equal types, no product depends on another, at most 12";
  rule.loses_when = "stacking activations costs more than the calls that are saved";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::stack_matmuls
