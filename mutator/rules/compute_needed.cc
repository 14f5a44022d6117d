// Only what an output needs is computed.
//
//   before  Slice(Conv(.. Conv(x, v) .., w))      Gather(MatMul(x, w), 7)
//   after   Conv(.. Conv(Slice(x), v) .., w)      MatMul(Gather(x, 7), w)
//
// Exact: each operator states which positions of its inputs suffice. Crops, strides, gathers of
// constants and unused channels move up to the inputs, through every operator whose elements do not
// depend on all others. The whole connected cone shrinks at once.

#include <algorithm>

#include "mutator/regions/candidates.h"
#include "mutator/regions/plan.h"
#include "mutator/sample.h"

namespace mendel::rules::compute_needed {
namespace {

std::vector<bool> Changed(const Graph& graph) {
  return PlanRegions(graph, Known::kNothing).changed;
}
absl::StatusOr<Graph> Derive(const Graph& graph) {
  return BuildPlan(graph, PlanRegions(graph, Known::kNothing));
}
constexpr Derivation kDerivation = {&Changed, &Derive};

MatchesByLastNode AllMatches(const Graph& graph) { return Candidates(graph, kDerivation); }

std::vector<Match> FindMatches(const Graph& graph, int32_t node, const Predictor&) {
  return MatchesEndingAt(graph, node, &AllMatches);
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&, const Predictor&) {
  return ApplyIfLess(subprogram, kDerivation);
}

/// Two convolutions, perhaps an upsampling between them, and a crop with steps.
ValueId Picture(Emitter& e, Rng& rng) {
  const int64_t channels = rng.Between(1, 3);
  ValueId x = e.Input("x", {DType::kF32, {2, channels, rng.Between(8, 12), rng.Between(8, 12)}});
  for (int k = 0; k < 2; ++k) {
    const int64_t kernel = rng.Between(1, 3);
    const ValueId w =
        SampleWeight(e, rng, {channels, channels, kernel, kernel}, k == 0 ? "w0" : "w1");
    x = e.Op("Conv", {x, w},
             WindowAttributes(2, k == 0 ? rng.Between(1, 2) : 1, rng.Between(1, 2), kernel - 1));
    x = rng.Flip() ? e.Op("Relu", {x}) : e.Op("Softmax", {x}, {{"axis", int64_t{1}}});
  }
  if (rng.Flip()) {
    Attributes pool = WindowAttributes(2, 1, 1, 1);
    pool.Set("kernel_shape", Ints{3, 3});
    x = e.Op(rng.Flip() ? "MaxPool" : "AveragePool", {x}, pool);
  }
  const Shape shape = e.shape(x);
  const int64_t row = rng.Between(0, shape[2] - 2), column = rng.Between(0, shape[3] - 2);
  x = e.Slice(x, 2, row, rng.Between(row + 1, std::min(shape[2], row + 3)));
  return e.Slice(x, 3, column, std::min(shape[3], column + 4), rng.Between(1, 2));
}

/// A residual layer on a sequence, of which one or two positions are used.
ValueId Sequence(Emitter& e, Rng& rng) {
  const int64_t length = rng.Between(6, 10), width = rng.Between(4, 6);
  const ValueId x = e.Input("x", {DType::kF32, {2, length, width}});
  const ValueId w = SampleWeight(e, rng, {width, width}, "w");
  ValueId y = e.MatMul(x, w);
  if (rng.Flip()) y = e.Add(y, x);
  if (rng.Flip()) y = e.Reshape(y, {2 * length, width});
  y = e.Op("Sigmoid", {y});
  const size_t axis = e.shape(y).size() - 2;
  const int64_t last = e.shape(y)[axis] - 1;
  if (rng.Flip()) return e.Slice(y, static_cast<int64_t>(axis), last, last + 1);
  const std::vector<int64_t> list = {last};
  return e.Op("Gather", {y, e.Constant(Tensor::FromInts({DType::kI64, {}}, list))},
              {{"axis", static_cast<int64_t>(axis)}});
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  e.Output("y", rng.Flip() ? Picture(e, rng) : Sequence(e, rng));
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "compute_needed";
  rule.family = "regions";
  rule.before = "a crop, stride or gather of constants behind operators of any kind";
  rule.after = "the same operators on the positions that the crop needs";
  rule.precondition = "positions are known, and some operator before them computes others";
  rule.loses_when = "copies of the needed parts cost more than what is saved";
  rule.because = "no output reads the rest";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::compute_needed
