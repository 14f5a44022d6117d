// Concatenations and splits that undo each other are removed.
//
//   before  Concat(Split(x)[0], Split(x)[1], ..){same axis}
//   after   x
//   before  Slice(Concat(a, b, ..))
//   after   the operands that the slice takes from, sliced and concatenated
//   before  Concat(Concat(a, b), c, ..){same axis}
//   after   Concat(a, b, c, ..)
//
// Exact; a copy is saved.

#include <algorithm>

#include "graph/emitter.h"
#include "mutator/parallel.h"
#include "mutator/rule.h"

namespace mendel::rules::cancel_parts {
namespace {

bool RejoinsSplit(const Graph& graph, const Node& concat) {
  const int32_t split = concat.inputs[0].node;
  const Node& producer = graph.node(split);
  if (producer.op->name != "Split" || producer.attrs.Int("axis") != concat.attrs.Int("axis"))
    return false;
  if (producer.outputs.size() != concat.inputs.size()) return false;
  for (size_t k = 0; k < concat.inputs.size(); ++k) {
    if (concat.inputs[k] != ValueId{split, static_cast<int32_t>(k)}) return false;
  }
  return true;
}

/// The part of one operand of a concatenation that a slice takes, along its axis.
struct Piece {
  size_t operand;
  int64_t from, to;
};

/// The operands that `slice` takes from, in order; empty where it takes nothing, or several
/// operands not in steps of one.
std::vector<Piece> PiecesOf(const Graph& graph, const Node& concat, const Node& slice) {
  const size_t axis = static_cast<size_t>(concat.attrs.Int("axis"));
  const int64_t from = slice.attrs.IntList("starts")[axis], to = slice.attrs.IntList("ends")[axis];
  const int64_t step = slice.attrs.IntList("steps")[axis];
  std::vector<Piece> pieces;
  int64_t begin = 0;
  for (size_t k = 0; k < concat.inputs.size(); ++k) {
    const int64_t end = begin + graph.type(concat.inputs[k]).shape[axis];
    if (step > 0 && std::max(from, begin) < std::min(to, end))
      pieces.push_back({k, std::max(from, begin) - begin, std::min(to, end) - begin});
    begin = end;
  }
  return pieces.size() > 1 && step != 1 ? std::vector<Piece>() : pieces;
}

bool IsInnerConcat(const Graph& graph, ValueId value, const Node& outer) {
  const Node& inner = graph.node(value.node);
  return inner.op->name == "Concat" && inner.attrs.Int("axis") == outer.attrs.Int("axis") &&
         graph.OnlyUser(value.node) >= 0 && !IsWeight(graph, value);
}

std::vector<Match> FindMatches(const Graph& graph, int32_t node, const Predictor&) {
  const Node& last = graph.node(node);
  if (last.op->name == "Concat") {
    if (RejoinsSplit(graph, last)) return {{{last.inputs[0].node, node}, {}}};
    Match match{{node}, {}};
    for (ValueId value : last.inputs) {
      if (IsInnerConcat(graph, value, last)) match.nodes.insert(match.nodes.begin(), value.node);
    }
    return match.nodes.size() > 1 ? std::vector<Match>{match} : std::vector<Match>();
  }
  if (last.op->name != "Slice" || graph.node(last.inputs[0].node).op->name != "Concat") return {};
  const int32_t concat = last.inputs[0].node;
  const Node& producer = graph.node(concat);
  if (IsWeight(graph, {concat, 0}) || graph.OnlyUser(concat) < 0) return {};
  const std::vector<Piece> pieces = PiecesOf(graph, producer, last);
  const bool weights = std::any_of(pieces.begin(), pieces.end(), [&](const Piece& p) {
    return IsWeight(graph, producer.inputs[p.operand]);
  });
  const bool fewer = NumElements(last.outputs[0]) < NumElements(producer.outputs[0]);
  if (pieces.empty() || weights || (pieces.size() > 1 && !fewer)) return {};
  return {{{concat, node}, {}}};
}

/// The slice as one of the concatenation's operands.
ValueId SliceOfPieces(Emitter& e, const Graph& subprogram, const Node& slice,
                      const std::vector<ValueId>& inputs) {
  const Node& concat = subprogram.node(slice.inputs[0].node);
  const size_t axis = static_cast<size_t>(concat.attrs.Int("axis"));
  std::vector<ValueId> parts;
  for (const Piece& piece : PiecesOf(subprogram, concat, slice)) {
    Attributes attrs = slice.attrs;
    Ints starts = slice.attrs.IntList("starts"), ends = slice.attrs.IntList("ends");
    starts[axis] = piece.from;
    ends[axis] = piece.to;
    attrs.Set("starts", starts);
    attrs.Set("ends", ends);
    parts.push_back(
        e.Op("Slice", {OperandOf(e, subprogram, concat.inputs[piece.operand], inputs)}, attrs));
  }
  return parts.size() == 1 ? parts[0] : e.Concat(parts, concat.attrs.Int("axis"));
}

/// `concat` with the operands of concatenations in its operands' place.
ValueId Flattened(Emitter& e, const Graph& subprogram, const Node& concat,
                  const std::vector<ValueId>& inputs) {
  std::vector<ValueId> parts;
  for (ValueId value : concat.inputs) {
    if (!IsInnerConcat(subprogram, value, concat)) {
      parts.push_back(OperandOf(e, subprogram, value, inputs));
      continue;
    }
    for (ValueId part : subprogram.node(value.node).inputs)
      parts.push_back(OperandOf(e, subprogram, part, inputs));
  }
  return e.Concat(parts, concat.attrs.Int("axis"));
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&, const Predictor&) {
  Emitter e;
  const std::vector<ValueId> inputs = e.InputsOf(subprogram);
  for (const GraphOutput& output : subprogram.outputs()) {
    const Node& last = subprogram.node(output.value.node);
    if (last.op->name == "Split") {  // parts that others read too
      e.Output(output.name, e.Ops("Split", {inputs[0]}, last.outputs.size(),
                                  last.attrs)[static_cast<size_t>(output.value.output)]);
    } else if (last.op->name == "Concat") {
      e.Output(output.name,
               RejoinsSplit(subprogram, last) ? inputs[0] : Flattened(e, subprogram, last, inputs));
    } else {
      e.Output(output.name, SliceOfPieces(e, subprogram, last, inputs));
    }
  }
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  if (rng.Flip()) {
    const ValueId x = e.Input("x", {DType::kF32, {2, 5, 3}});
    const std::vector<ValueId> parts =
        e.Ops("Split", {x}, 2, {{"axis", int64_t{1}}, {"sizes", Ints{2, 3}}});
    e.Output("y", e.Concat(parts, 1));
    if (rng.Flip()) e.Output("z", e.Op("Relu", {parts[0]}));
    return e.Finish();
  }
  const ValueId a = e.Input("a", {DType::kF32, {2, 4, 3}}),
                b = e.Input("b", {DType::kF32, {2, 5, 3}});
  const ValueId c = e.Input("c", {DType::kF32, {2, 2, 3}});
  if (rng.Flip()) {
    const ValueId inner = e.Concat({a, b}, 1);
    e.Output("y", rng.Flip() ? e.Concat({inner, c}, 1) : e.Concat({c, inner, a}, 1));
    return e.Finish();
  }
  const bool one = rng.Flip();
  const int64_t from = rng.Between(0, one ? 2 : 9), to = rng.Between(from + 1, one ? 4 : 11),
                step = one ? rng.Between(1, 2) : 1;
  const ValueId y = e.Slice(e.Concat({a, b, c}, 1), 1, from, to, step);
  e.Output("y", rng.Flip() ? e.Slice(y, 2, 0, 2) : y);
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "cancel_parts";
  rule.family = "views";
  rule.before = "Concat(Split(x)), Slice(Concat(a, b, ..)), Concat(Concat(a, b), c)";
  rule.after = "x, slices of the operands it takes from, Concat(a, b, c)";
  rule.precondition =
      "all parts in their order; the concatenation is read once; slices of several operands: step "
      "1, something is cut away";
  rule.loses_when = "never";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::cancel_parts
