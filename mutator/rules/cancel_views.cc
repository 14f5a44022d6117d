// Adjacent views are composed, and views that change nothing are removed.
//
//   before  Reshape(Reshape(x)), Transpose(Transpose(x)), a Slice or Pad that changes nothing
//   after   one view, or x
//
// Exact. It is applied before the search and after every mutant, so that chains of mutants stay in
// one layout.

#include <numeric>

#include "graph/emitter.h"
#include "mutator/rule.h"

namespace mendel::rules::cancel_views {
namespace {

bool IsView(const Node& node) { return node.op->name == "Reshape" || node.op->name == "Transpose"; }

bool IsNothing(const Graph& graph, const Node& node) {
  const Shape& from = graph.type(node.inputs[0]).shape;
  if (node.op->name == "Reshape" || node.op->name == "Slice")
    return from == node.outputs[0].shape &&
           (node.op->name != "Slice" || node.attrs.IntList("steps") == Ints(from.size(), 1));
  if (node.op->name == "Pad") return node.attrs.IntList("pads") == Ints(2 * from.size(), 0);
  if (node.op->name != "Transpose") return false;
  Ints identity(from.size());
  std::iota(identity.begin(), identity.end(), 0);
  return node.attrs.IntList("perm") == identity;
}

std::vector<Match> FindMatches(const Graph& graph, int32_t node, const Predictor&) {
  const Node& last = graph.node(node);
  if (last.inputs.size() != 1 || last.op->name == "Split") return {};
  if (IsNothing(graph, last)) return {{{node}, {}}};
  const int32_t first = last.inputs[0].node;
  if (!IsView(last) || graph.node(first).op != last.op) return {};
  return {{{first, node}, {}}};
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&, const Predictor&) {
  Emitter e;
  const ValueId x = e.InputsOf(subprogram)[0];
  for (const GraphOutput& output : subprogram.outputs()) {
    const Node& last = subprogram.node(output.value.node);
    const Node& first = subprogram.node(last.inputs[0].node);
    if (IsInput(
            first)) {  // a view of nothing, or the first of the two views, which others read too
      e.Output(output.name,
               IsNothing(subprogram, last) ? x : e.Op(last.op->name, {x}, last.attrs, last.name));
    } else if (last.op->name == "Reshape") {
      e.Output(output.name,
               e.shape(x) == last.outputs[0].shape ? x : e.Reshape(x, last.outputs[0].shape));
    } else {
      Ints perm;
      for (int64_t d : last.attrs.IntList("perm"))
        perm.push_back(first.attrs.IntList("perm")[static_cast<size_t>(d)]);
      Ints identity(perm.size());
      std::iota(identity.begin(), identity.end(), 0);
      e.Output(output.name, perm == identity ? x : e.Transpose(x, perm));
    }
  }
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  const ValueId x = e.Input("x", {DType::kF32, {2, 3, 4}});
  if (rng.Flip()) {
    e.Output("y", e.Reshape(e.Reshape(x, {6, 4}), rng.Flip() ? Shape{2, 3, 4} : Shape{24}));
  } else {
    e.Output("y",
             e.Transpose(e.Transpose(x, {2, 0, 1}), rng.Flip() ? Ints{1, 2, 0} : Ints{0, 2, 1}));
  }
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "cancel_views";
  rule.family = "views";
  rule.before = "view(view(x))";
  rule.after = "one view, or x";
  rule.precondition = "both Reshape or both Transpose, or a view that changes nothing";
  rule.loses_when = "never";
  rule.stage = Stage::kNormalize;
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::cancel_views
