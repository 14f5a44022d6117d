// Repeated elements are computed once.
//
//   before  Conv(Concat(x, Expand(v)), w)
//   after   Conv(x, w_x) + Conv(v, w_v), broadcast
//   before  Conv(Expand(v), w) with padding
//   after   Gather(Conv(the few windows that differ, w))
//
// Exact: equal inputs give equal elements. Expand, Tile and nearest upsampling move down to where
// other values are combined with what they repeat. Equal pixels behind a constant picture are
// computed once.

#include "base/status.h"
#include "graph/rewrite.h"
#include "mutator/regions/candidates.h"
#include "mutator/regions/plan.h"
#include "mutator/regions/split_parts.h"
#include "mutator/sample.h"

namespace mendel::rules::compute_once {
namespace {

std::vector<bool> Changed(const Graph& graph) {
  std::vector<bool> changed(graph.nodes().size(), false);
  const auto split = SplitRepeatedParts(graph, true);
  if (!split.ok()) return changed;
  const std::vector<bool> nodes = PlanRegions(*split, Known::kRepeats).changed;
  std::vector<size_t> several;  // nodes of several outputs, in order
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    if (graph.nodes()[i].outputs.size() > 1) several.push_back(i);
  }
  std::vector<bool> stays(graph.nodes().size(), false);
  size_t next = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = split->nodes()[i];
    if (IsInput(node) || IsConstant(node) || (node.outputs.size() == 1 && node.name.empty()))
      continue;
    const size_t own =
        node.outputs.size() == 1 ? static_cast<size_t>(std::stol(node.name)) : several[next++];
    changed[own] = changed[own] || nodes[i] || stays[own];  // several nodes stand for one
    stays[own] = true;
  }
  // A Concat whose operands are read apart is gone.
  for (size_t i = 0; i < graph.nodes().size(); ++i)
    changed[i] = changed[i] || (!stays[i] && !graph.constant()[i] && !IsInput(graph.nodes()[i]));
  return changed;
}

absl::StatusOr<Graph> Derive(const Graph& graph) {
  MENDEL_ASSIGN_OR_RETURN(const Graph split, SplitRepeatedParts(graph, false));
  MENDEL_ASSIGN_OR_RETURN(Graph once, BuildPlan(split, PlanRegions(split, Known::kRepeats)));
  return UnlessNeededSuffices(std::move(once), graph, "nothing repeats");
}

constexpr Derivation kDerivation = {&Changed, &Derive};

MatchesByLastNode AllMatches(const Graph& graph) { return Candidates(graph, kDerivation); }

std::vector<Match> FindMatches(const Graph& graph, int32_t node, const Predictor&) {
  return MatchesEndingAt(graph, node, &AllMatches);
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&, const Predictor&) {
  return ApplyIfLess(subprogram, kDerivation);
}

/// A convolution over a picture of one vector, or of it beside another picture.
ValueId Picture(Emitter& e, Rng& rng) {
  const int64_t channels = rng.Between(2, 4), rows = rng.Between(6, 9), columns = rng.Between(6, 9);
  ValueId v = e.Input("v", {DType::kF32, {1, channels, 1, 1}});
  if (rng.Flip()) v = e.Op("Relu", {v});
  ValueId x = e.Op("Expand", {v}, {{"shape", Ints{1, channels, rows, columns}}});
  int64_t kernel = rng.Between(1, 3), all = channels;
  if (rng.Flip()) {
    const ValueId other = e.Input("x", {DType::kF32, {1, 1, rows, columns}});
    x = rng.Flip() ? e.Concat({other, x}, 1) : e.Concat({x, other}, 1);
    ++all;
  }
  if (rng.Flip(0.3))  // the same as a product
    return e.MatMul(SampleWeight(e, rng, {4, all}, "w"), e.Reshape(x, {1, all, rows * columns}));
  const ValueId w = SampleWeight(e, rng, {4, all, kernel, kernel}, "w");
  return e.Op("Conv", {x, w}, WindowAttributes(2, 1, 1, kernel / 2));
}

/// Tiled or expanded batches, nearest upsampling, and a mean over what was repeated.
ValueId Rows(Emitter& e, Rng& rng) {
  const int64_t width = rng.Between(4, 6);
  ValueId x = e.Input("x", {DType::kF32, {1, 3, width}});
  const int64_t copies = rng.Between(3, 5);
  x = rng.Flip() ? e.Op("Tile", {x}, {{"repeats", Ints{copies, 1, 1}}})
                 : e.Op("Expand", {x}, {{"shape", Ints{copies, 3, width}}});
  x = e.MatMul(x, SampleWeight(e, rng, {width, 2 * width}, "w"));
  x = rng.Flip() ? e.Op("Softmax", {x}, {{"axis", int64_t{2}}}) : e.Op("Sigmoid", {x});
  if (rng.Flip()) return e.Op("ReduceMean", {x}, {{"axes", Ints{0}}});
  return rng.Flip() ? x : e.Add(x, e.Input("y", {DType::kF32, {copies, 3, 2 * width}}));
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  e.Output("y", rng.Flip() ? Picture(e, rng) : Rows(e, rng));
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "compute_once";
  rule.family = "regions";
  rule.before = "operators on what Expand, Tile, nearest upsampling or padding repeats";
  rule.after = "the same operators on each different element once, and a copy of the results";
  rule.precondition = "elements are equal for every input";
  rule.loses_when = "copies of the results cost more than what is saved";
  rule.because = "the rest repeats them";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::compute_once
