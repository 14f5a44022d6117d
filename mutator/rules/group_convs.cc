// Parallel convolutions of equal shapes on different inputs become one grouped convolution.
//
//   before  Conv(x1, w1, b1), Conv(x2, w2, b2), ..   (equal types and attributes)
//   after   Split(Conv(Concat(x1, x2, ..), [w1; w2; ..], [b1; b2; ..]){group n*g})
//
// Exact.

#include <algorithm>

#include "graph/emitter.h"
#include "mutator/parallel.h"
#include "mutator/rule.h"
#include "mutator/sample.h"

namespace mendel::rules::group_convs {
namespace {

constexpr size_t kMaxMembers = 8;

std::vector<Match> FindMatches(const Graph& graph, int32_t node) {
  const Node& last = graph.node(node);
  if (last.op->name != "Conv" || IsWeight(graph, last.inputs[0])) return {};
  const std::vector<int32_t> group = GroupEndingAt(graph, node, kMaxMembers, [&](int32_t id) {
    const Node& other = graph.node(id);
    if (other.op != last.op || other.attrs != last.attrs ||
        other.inputs.size() != last.inputs.size())
      return false;
    for (size_t k = 0; k < other.inputs.size(); ++k) {
      if (graph.type(other.inputs[k]) != graph.type(last.inputs[k])) return false;
      if (k > 0 && !IsWeight(graph, other.inputs[k])) return false;
    }
    return !IsWeight(graph, other.inputs[0]);
  });
  const bool one_input = std::all_of(group.begin(), group.end(), [&](int32_t id) {
    return graph.node(id).inputs[0] == last.inputs[0];
  });
  return group.empty() || one_input ? std::vector<Match>() : std::vector<Match>{{group, {}}};
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&) {
  Emitter e;
  const std::vector<ValueId> inputs = e.InputsOf(subprogram);
  std::vector<std::vector<ValueId>> operands(3);
  for (const GraphOutput& output : subprogram.outputs()) {
    const Node& conv = subprogram.node(output.value.node);
    operands[0].push_back(OperandOf(e, subprogram, conv.inputs[0], inputs));
    for (size_t k = 1; k < conv.inputs.size(); ++k)
      operands[k].push_back(e.CopyConstantExpression(subprogram, conv.inputs[k]));
  }
  const Node& first = subprogram.node(subprogram.outputs()[0].value.node);
  const int64_t count = static_cast<int64_t>(subprogram.outputs().size());
  std::vector<ValueId> joined;
  for (size_t k = 0; k < first.inputs.size(); ++k)
    joined.push_back(e.Concat(operands[k], k == 0 ? 1 : 0));
  Attributes attrs = first.attrs;
  attrs.Set("group", count * first.attrs.Int("group"));
  const Ints sizes(static_cast<size_t>(count), first.outputs[0].shape[1]);
  const std::vector<ValueId> parts = e.Ops("Split", {e.Op("Conv", joined, attrs)}, sizes.size(),
                                           {{"axis", int64_t{1}}, {"sizes", sizes}});
  for (size_t k = 0; k < parts.size(); ++k) e.Output(subprogram.outputs()[k].name, parts[k]);
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  const int64_t group = rng.Between(1, 2);
  Attributes attrs = WindowAttributes(2, rng.Between(1, 2), 1, 1);
  attrs.Set("group", group);
  const bool biased = rng.Flip();
  for (int64_t k = 0; k < rng.Between(2, 4); ++k) {
    const std::string number = std::to_string(k);
    std::vector<ValueId> inputs = {e.Input("x" + number, {DType::kF32, {1, 2 * group, 5, 4}}),
                                   SampleWeight(e, rng, {3 * group, 2, 3, 3}, "w" + number)};
    if (biased) inputs.push_back(SampleWeight(e, rng, {3 * group}, "b" + number));
    e.Output("y" + number, e.Op("Conv", inputs, attrs));
  }
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "group_convs";
  rule.family = "groups";
  rule.before = "Conv(x1, w1), Conv(x2, w2), .. of equal shapes";
  rule.after = "Split(Conv(Concat(x1, x2, ..), [w1; w2; ..]){group n*g})";
  rule.precondition =
      "equal types and attributes, constant weights, no one depends on another, at most 8";
  rule.loses_when =
      "concatenating the inputs costs more than the calls saved, or the library runs groups badly";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::group_convs
