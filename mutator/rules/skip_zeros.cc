// Known zeros are neither computed nor read by sums of products.
//
//   before  MatMul(Relu(x*a + b), w), channels of a and b zero      MatMul(Pad(x), w)
//   after   MatMul(Relu(x*a' + b'), w'), the other channels         MatMul(x, rows of w)
//
// Exact: a product with zero is zero. Zeros of weights, padding and concatenation go through every
// operator that is zero at zeros. A sum then runs over the positions at which no operand is zero,
// and only what it reads is computed.

#include <utility>

#include "base/status.h"
#include "mutator/regions/candidates.h"
#include "mutator/regions/plan.h"
#include "mutator/regions/zeros.h"
#include "mutator/sample.h"

namespace mendel::rules::skip_zeros {
namespace {

std::vector<bool> Changed(const Graph& graph) {
  if (!HasKnownZeros(graph)) return std::vector<bool>(graph.nodes().size(), false);
  return PlanRegions(graph, Known::kZeros).changed;
}

absl::StatusOr<Graph> Derive(const Graph& graph) {
  MENDEL_ASSIGN_OR_RETURN(Graph fewer, BuildPlan(graph, PlanRegions(graph, Known::kZeros)));
  return UnlessNeededSuffices(std::move(fewer), graph, "no sum reads zeros");
}
constexpr Derivation kDerivation = {&Changed, &Derive};

MatchesByLastNode AllMatches(const Graph& graph) { return Candidates(graph, kDerivation); }

std::vector<Match> FindMatches(const Graph& graph, int32_t node, const Predictor&) {
  return MatchesEndingAt(graph, node, &AllMatches);
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&, const Predictor&) {
  return ApplyIfLess(subprogram, kDerivation);
}

/// A literal whose positions along `axis` are zero where `zero` is true.
ValueId Pruned(Emitter& e, Rng& rng, Shape shape, size_t axis, const std::vector<bool>& zero) {
  const TensorType type{DType::kF32, std::move(shape)};
  const Shape strides = RowMajorStrides(type.shape);
  std::vector<double> values;
  for (int64_t i = 0; i < NumElements(type); ++i)
    values.push_back(
        zero[static_cast<size_t>(i / strides[axis] % type.shape[axis])] ? 0 : rng.Normal());
  return e.Constant(Tensor::FromDoubles(type, values));
}

/// Layers between which channels are zero, or a padded operand.
absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  const int64_t wide = rng.Between(6, 10);
  std::vector<bool> zero(static_cast<size_t>(wide));
  for (size_t p = 0; p < zero.size(); ++p) zero[p] = p % 2 == 0 || rng.Flip();
  zero.back() = false;
  if (rng.Flip(0.3)) {
    const int64_t width = rng.Between(2, 4), before = rng.Between(2, 4), behind = rng.Between(2, 4);
    const ValueId x = e.PadZero(e.Input("x", {DType::kF32, {3, width}}), 1, before, behind);
    e.Output("y", e.MatMul(x, SampleWeight(e, rng, {before + width + behind, 5}, "w")));
    return e.Finish();
  }
  if (rng.Flip()) {
    ValueId x =
        e.MatMul(e.Input("x", {DType::kF32, {2, 3, 4}}), Pruned(e, rng, {4, wide}, 1, zero));
    x = e.Op(rng.Flip() ? "Relu" : "Tanh", {e.Add(x, Pruned(e, rng, {wide}, 0, zero))});
    e.Output("y", e.MatMul(x, SampleWeight(e, rng, {wide, 5}, "w")));
    return e.Finish();
  }
  const bool behind = rng.Flip();  // the layer that reads them is pruned
  const ValueId x = e.Input("x", {DType::kF32, {1, 3, 6, 6}});
  const ValueId first = behind ? SampleWeight(e, rng, {wide, 3, 3, 3}, "w")
                               : Pruned(e, rng, {wide, 3, 3, 3}, 0, zero);
  const ValueId second = behind ? Pruned(e, rng, {4, wide, 1, 1}, 1, zero)
                                : SampleWeight(e, rng, {4, wide, 1, 1}, "w");
  const ValueId y = e.Op("Relu", {e.Op("Conv", {x, first}, WindowAttributes(2, 1, 1, 1))});
  e.Output("y", e.Op("Conv", {y, second}, WindowAttributes(2, 1, 1, 0)));
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "skip_zeros";
  rule.family = "regions";
  rule.before = "sums of products over positions at which an operand is zero for every input";
  rule.after = "the same sums over the other positions, which alone are computed";
  rule.precondition = "zeros of literals, padding or concatenation";
  rule.loses_when = "copies of the other positions cost more than what is saved";
  rule.because = "the rest is zero";
  rule.reads_values = true;
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::skip_zeros
