// Parts of a whole taken from where they came: concatenations and splits that undo each other.
//
//   before  Concat(Split(x)[0], Split(x)[1], ..){same axis}      after  x
//   before  Slice(Concat(a, b, ..)) within one operand           after  Slice(that operand)
//   exact. Never loses: the copy is gone (concat elimination).

#include <algorithm>

#include "graph/emitter.h"
#include "mutator/parallel.h"
#include "mutator/rule.h"

namespace mendel::rules::cancel_parts {
namespace {

bool RejoinsSplit(const Graph& graph, const Node& concat) {
  const int32_t split = concat.inputs[0].node;
  const Node& producer = graph.node(split);
  if (producer.op->name != "Split" || producer.attrs.Int("axis") != concat.attrs.Int("axis")) return false;
  if (producer.outputs.size() != concat.inputs.size()) return false;
  for (size_t k = 0; k < concat.inputs.size(); ++k) {
    if (concat.inputs[k] != ValueId{split, static_cast<int32_t>(k)}) return false;
  }
  return true;
}

/// The operand of `concat` that holds all that `slice` takes, and where it begins; -1 when several do.
int OperandHolding(const Graph& graph, const Node& concat, const Node& slice, int64_t& begin) {
  const size_t axis = static_cast<size_t>(concat.attrs.Int("axis"));
  const int64_t from = slice.attrs.IntList("starts")[axis], to = slice.attrs.IntList("ends")[axis];
  begin = 0;
  for (size_t k = 0; k < concat.inputs.size(); ++k) {
    const int64_t end = begin + graph.type(concat.inputs[k]).shape[axis];
    if (slice.attrs.IntList("steps")[axis] > 0 && from >= begin && to <= end && from < to) return static_cast<int>(k);
    begin = end;
  }
  return -1;
}

std::vector<Match> FindMatches(const Graph& graph, int32_t node) {
  const Node& last = graph.node(node);
  if (last.op->name == "Concat") {
    if (!RejoinsSplit(graph, last)) return {};
    return {{{last.inputs[0].node, node}, {}}};
  }
  if (last.op->name != "Slice" || graph.node(last.inputs[0].node).op->name != "Concat") return {};
  const int32_t concat = last.inputs[0].node;
  int64_t begin = 0;
  if (IsWeight(graph, {concat, 0}) || graph.users(concat).size() != 1 || graph.IsOutput(concat)) return {};
  const int operand = OperandHolding(graph, graph.node(concat), last, begin);
  if (operand < 0 || IsWeight(graph, graph.node(concat).inputs[static_cast<size_t>(operand)])) return {};
  return {{{concat, node}, {}}};
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&) {
  Emitter e;
  const std::vector<ValueId> inputs = e.InputsOf(subprogram);
  for (const GraphOutput& output : subprogram.outputs()) {
    const Node& last = subprogram.node(output.value.node);
    if (last.op->name == "Split") {  // parts that others read too
      e.Output(output.name, e.Ops("Split", {inputs[0]}, last.outputs.size(), last.attrs)[static_cast<size_t>(output.value.output)]);
    } else if (last.op->name == "Concat") {
      e.Output(output.name, inputs[0]);
    } else {
      const Node& concat = subprogram.node(last.inputs[0].node);
      const size_t axis = static_cast<size_t>(concat.attrs.Int("axis"));
      int64_t begin = 0;
      const int k = OperandHolding(subprogram, concat, last, begin);
      if (k < 0) return absl::FailedPreconditionError("the slice takes from several operands");
      Attributes attrs = last.attrs;
      for (const char* name : {"starts", "ends"}) {
        Ints places = last.attrs.IntList(name);
        places[axis] -= begin;
        attrs.Set(name, places);
      }
      e.Output(output.name, e.Op("Slice", {OperandOf(e, subprogram, concat.inputs[static_cast<size_t>(k)], inputs)}, attrs));
    }
  }
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  if (rng.Flip()) {
    const ValueId x = e.Input("x", {DType::kF32, {2, 5, 3}});
    const std::vector<ValueId> parts = e.Ops("Split", {x}, 2, {{"axis", int64_t{1}}, {"sizes", Ints{2, 3}}});
    e.Output("y", e.Concat(parts, 1));
    if (rng.Flip()) e.Output("z", e.Op("Relu", {parts[0]}));
    return e.Finish();
  }
  const ValueId a = e.Input("a", {DType::kF32, {2, 4, 3}}), b = e.Input("b", {DType::kF32, {2, 5, 3}});
  const bool second = rng.Flip();
  const int64_t from = rng.Between(0, 2);
  const int64_t step = rng.Between(1, 2), to = rng.Between(from + 1, 4), offset = second ? 4 : 0;
  e.Output("y", e.Slice(e.Concat({a, b}, 1), 1, offset + from, offset + to, step));
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "cancel_parts";
  rule.family = "views";
  rule.before = "Concat(Split(x)), Slice(Concat(a, b, ..)) within one operand";
  rule.after = "x, Slice(that operand)";
  rule.precondition = "all parts in their order; the concatenation is read once";
  rule.loses_when = "never";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::cancel_parts
