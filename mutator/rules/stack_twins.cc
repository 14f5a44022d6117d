// The same chain of operators with the same weights on two inputs becomes one chain on both.
//
//   before  f(x), f(y)
//   after   Split(f(Concat(x, y))), along the batch
//
// Exact: every operator of the chain computes the rows of dimension 0 alike and separately. Weights
// are read once, and products have twice the rows. Siamese encoders have such chains.

#include <algorithm>

#include "graph/emitter.h"
#include "mutator/rule.h"
#include "mutator/sample.h"
#include "mutator/twin_chains.h"

namespace mendel::rules::stack_twins {
namespace {

constexpr size_t kMostPairs = 256;
constexpr size_t kMostReaders = 16;
constexpr int kMostSteps = 6;  // behind the last product of a chain

/// True when the operators that read the two nodes are twins, too: a larger pair ends further on.
bool GoesOn(const Graph& graph, int32_t first, int32_t second) {
  const std::vector<int32_t>&ours = graph.users(first), &theirs = graph.users(second);
  if (ours.size() > kMostReaders || theirs.size() > kMostReaders) return false;
  for (const int32_t a : ours) {
    for (const int32_t b : theirs) {
      if (a != b && TwinsEndingAt(graph, a, b, 2).has_value()) return true;
    }
  }
  return false;
}

std::vector<Match> FindMatches(const Graph& graph, int32_t node, const Predictor&) {
  std::vector<Match> matches;
  for (const int32_t partner : PartnersOf(graph, node, kMostSteps)) {
    const auto twins = TwinsEndingAt(graph, partner, node, kMostPairs);
    if (!twins.has_value() || twins->products == 0 || GoesOn(graph, partner, node)) continue;
    Match match;
    for (const auto& [a, b] : twins->pairs) match.nodes.insert(match.nodes.end(), {a, b});
    std::sort(match.nodes.begin(), match.nodes.end());
    if (match.nodes.back() == node) matches.push_back(std::move(match));
    if (!matches.empty()) break;
  }
  return matches;
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&, const Predictor&) {
  if (subprogram.outputs().size() != 2)
    return absl::FailedPreconditionError("no two chains with one result each");
  const int32_t first = subprogram.outputs()[0].value.node,
                second = subprogram.outputs()[1].value.node;
  const auto twins = TwinsEndingAt(subprogram, first, second, kMostPairs);
  if (!twins.has_value()) return absl::FailedPreconditionError("no twin chains");
  Emitter e;
  const ValueId both = EmitStacked(e, subprogram, *twins, first, e.InputsOf(subprogram));
  const int64_t rows = subprogram.node(first).outputs[0].shape[0];
  e.Output(subprogram.outputs()[0].name, e.Slice(both, 0, 0, rows));
  e.Output(subprogram.outputs()[1].name, e.Slice(both, 0, rows, 2 * rows));
  return e.Finish();
}

/// An encoder: its weights, and which operators it has.
struct Encoder {
  ValueId w, b, v, s, l;
  int64_t kinds;
};

ValueId Encode(Emitter& e, ValueId x, const Encoder& encoder) {
  x = e.Op("Conv", {x, encoder.w, encoder.b}, WindowAttributes(2, 1, 1, 1));
  if (encoder.kinds & 1) x = e.Op("Relu", {x});
  const ValueId y = e.Op("Conv", {x, encoder.v}, WindowAttributes(2, 1, 1, 0));
  x = encoder.kinds & 2 ? e.Add(x, y) : e.Op("Tanh", {y});
  if (encoder.kinds & 4) x = e.Mul(x, encoder.s);
  if (encoder.kinds & 8) x = e.MatMul(e.Reshape(x, {e.shape(x)[0], 80}), encoder.l);
  return x;
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  const TensorType type{DType::kF32, {rng.Between(1, 2), 3, 5, 4}};
  const Encoder encoder{
      SampleWeight(e, rng, {4, 3, 3, 3}, "w"), SampleWeight(e, rng, {4}, "b"),
      SampleWeight(e, rng, {4, 4, 1, 1}, "v"), SampleWeight(e, rng, {4, 1, 1}, "s"),
      SampleWeight(e, rng, {80, 3}, "l"),      rng.Between(0, 15)};
  const ValueId a = Encode(e, e.Input("x", type), encoder),
                b = Encode(e, e.Op("Relu", {e.Input("y", type)}), encoder);
  if (rng.Flip()) {
    e.Output("a", a);
    e.Output("b", b);
  } else {
    e.Output("y", e.Op("Sub", {a, b}));
  }
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "stack_twins";
  rule.family = "sharing";
  rule.before = "f(x), f(y)";
  rule.after = "Split(f(Concat(x, y)))";
  rule.precondition =
      "the same operators with the same weights, independent of the batch, every value read in its "
      "chain only";
  rule.loses_when = "one batch fills the machine already";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::stack_twins
