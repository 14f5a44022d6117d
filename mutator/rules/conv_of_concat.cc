// A linear operator on a concatenation becomes a sum, and the concatenation is never computed.
//
//   before  Conv(Concat(a, b, ..), w)             MatMul(Concat(a, b, ..), w)
//   after   Conv(a, w_a) + Conv(b, w_b) + ..      MatMul(a, w_a) + ..
//
// Exact: w is cut along its input channels (its rows). sum_to_concat is the converse.
//
// Source: EinNet (summation splitting), TASO.

#include <algorithm>

#include "base/status.h"
#include "graph/emitter.h"
#include "mutator/conv_chain.h"
#include "mutator/parallel.h"
#include "mutator/sample.h"

namespace mendel::rules::conv_of_concat {
namespace {

constexpr size_t kMaxOperands = 4;

bool IsLinear(const Graph& graph, const Node& node) {
  if (node.op->name == "Conv")
    return node.attrs.Int("group") == 1 && IsWeight(graph, node.inputs[1]);
  return node.op->name == "MatMul" && IsWeight(graph, node.inputs[1]) &&
         graph.type(node.inputs[1]).shape.size() == 2;
}

std::vector<Match> FindMatches(const Graph& graph, int32_t node) {
  const Node& linear = graph.node(node);
  if (!IsLinear(graph, linear) || HasRunTimeBias(graph, linear)) return {};
  const int32_t concat = linear.inputs[0].node;
  const Node& producer = graph.node(concat);
  if (producer.op->name != "Concat" || producer.inputs.size() > kMaxOperands ||
      IsWeight(graph, {concat, 0}))
    return {};
  const int64_t axis =
      linear.op->name == "Conv" ? 1 : static_cast<int64_t>(producer.outputs[0].shape.size()) - 1;
  if (producer.attrs.Int("axis") != axis || graph.OnlyUser(concat) < 0) return {};
  if (std::any_of(producer.inputs.begin(), producer.inputs.end(),
                  [&](ValueId v) { return IsWeight(graph, v); }))
    return {};
  return {{{concat, node}, {}}};
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&) {
  Emitter e;
  const std::vector<ValueId> inputs = e.InputsOf(subprogram);
  const Node& linear = subprogram.node(subprogram.outputs()[0].value.node);
  const Node& concat = subprogram.node(linear.inputs[0].node);
  const bool conv = linear.op->name == "Conv";
  const ValueId w = e.CopyConstantExpression(subprogram, linear.inputs[1]);
  const int64_t w_axis = conv ? 1 : 0;
  int64_t begin = 0;
  std::optional<ValueId> sum;
  for (ValueId operand : concat.inputs) {
    const ValueId x = OperandOf(e, subprogram, operand, inputs);
    const int64_t end = begin + e.shape(x)[static_cast<size_t>(concat.attrs.Int("axis"))];
    std::vector<ValueId> operands = {x, e.Slice(w, w_axis, begin, end)};
    if (!sum.has_value() && conv && linear.inputs.size() > 2)
      operands.push_back(e.CopyConstantExpression(subprogram, linear.inputs[2]));
    const ValueId y = e.Op(linear.op->name, operands, linear.attrs, linear.name);
    sum = sum.has_value() ? e.Add(*sum, y) : y;
    begin = end;
  }
  e.Output("out0", *sum);
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  const bool conv = rng.Flip();
  std::vector<ValueId> operands;
  int64_t channels = 0;
  for (int64_t k = 0; k < rng.Between(2, 4); ++k) {
    const int64_t width = rng.Between(1, 3);
    channels += width;
    const Shape shape = conv ? Shape{2, width, 5, 4} : Shape{2, 3, width};
    operands.push_back(e.Input(Cat("x", k), {DType::kF32, shape}));
  }
  const ValueId x = e.Concat(operands, conv ? 1 : 2);
  if (!conv) {
    e.Output("y", e.MatMul(x, SampleWeight(e, rng, {channels, 3}, "w")));
    return e.Finish();
  }
  const int64_t kernel = rng.Between(1, 3);
  std::vector<ValueId> inputs = {x, SampleWeight(e, rng, {3, channels, kernel, kernel}, "w")};
  if (rng.Flip()) inputs.push_back(SampleWeight(e, rng, {3}, "b"));
  const int64_t pad = rng.Between(0, 1);
  e.Output("y", e.Op("Conv", inputs, WindowAttributes(2, rng.Between(1, 2), 1, pad)));
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "conv_of_concat";
  rule.family = "linear order";
  rule.before = "Conv(Concat(a, b, ..), w), MatMul(Concat(a, b, ..), w)";
  rule.after = "Conv(a, w_a) + Conv(b, w_b) + .., MatMul(a, w_a) + ..";
  rule.precondition =
      "constant weights, group 1, at most 4 operands, the concatenation is read once";
  rule.loses_when = "the sum costs more than the copy it saves";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::conv_of_concat
