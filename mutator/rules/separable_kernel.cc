// A kernel that is exactly a sum of products becomes two convolutions.
//
//   before  Conv(x, w[O, C/g, K..], b), where for one dimension a (k: the others) and a rank r
//           w[o, c, k, k_a] = sum_t u[o, t, c, k] * v[o, t, k_a]     (each filter by itself)
//           w[o, c, k, k_a] = sum_t u[c, t, k] * v[o, c, t, k_a]     (each input channel by itself)
//           w[o, c, k, k_a] = sum_t u[t, c, k] * v[o, t, k_a]        (a whole group)
//   after   Conv(Conv(x, u){K_a = 1}, v{K = 1}, b)
//           over r*O, r*C or r*g channels in O, g and g groups
//
// Exact, and for literal weights only: their stored numbers are such sums without rounding
// (mutator/low_rank.h). Examples are blurs, Sobel and box filters, and factorized (2+1)-D kernels.

#include <algorithm>
#include <cmath>
#include <optional>

#include "mutator/factored_conv.h"
#include "mutator/rule.h"
#include "mutator/sample.h"

namespace mendel::rules::separable_kernel {
namespace {

constexpr double kWorthwhile = 0.9;  // of the arithmetic before

std::vector<bool> Only(size_t rank, size_t d) {
  std::vector<bool> along(rank, false);
  along[d] = true;
  return along;
}

std::vector<Match> FindMatches(const Graph& graph, int32_t node, const Predictor&) {
  const Tensor* w = LiteralKernel(graph, node);
  if (w == nullptr || w->size() == 0) return {};
  const size_t rank = w->shape().size() - 2;
  const int64_t taps = w->size() / (w->shape()[0] * w->shape()[1]);
  std::optional<Match> best;
  double least = 0;
  for (size_t d = 0; d < rank; ++d) {
    if (w->shape()[d + 2] < 2 || w->shape()[d + 2] == taps) continue;
    for (const FactorBlocks blocks :
         {FactorBlocks::kOutputs, FactorBlocks::kInputs, FactorBlocks::kGroups}) {
      const ConvFactoring factoring = FactoringOf(graph, node, blocks, Only(rank, d));
      const auto factors = FactorKernel(*w, factoring, kWorthwhile);
      if (!factors.has_value()) continue;
      const double after = factoring.After(factors->front().left.columns);
      if (best.has_value() && after >= least) continue;
      best = Match{
          {node}, {{"dim", static_cast<int64_t>(d + 2)}, {"blocks", static_cast<int64_t>(blocks)}}};
      least = after;
    }
  }
  return best.has_value() ? std::vector<Match>{*best} : std::vector<Match>();
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match& match, const Predictor&) {
  const int32_t id = subprogram.outputs()[0].value.node;
  const Tensor* w = LiteralKernel(subprogram, id);
  if (w == nullptr) return absl::FailedPreconditionError("the kernel is no literal");
  const std::vector<bool> along =
      Only(w->shape().size() - 2, static_cast<size_t>(match.choices.at("dim") - 2));
  const ConvFactoring factoring =
      FactoringOf(subprogram, id, static_cast<FactorBlocks>(match.choices.at("blocks")), along);
  const auto factors = FactorKernel(*w, factoring, kWorthwhile);
  if (!factors.has_value())
    return absl::FailedPreconditionError("the kernel is no sum of products");
  return EmitFactored(subprogram, factoring, *factors);
}

/// Weights [4, C, K..] that are a sum of `terms` products of small numbers along dimension `dim`,
/// in one of the three ways.
std::vector<double> SampleProduct(Rng& rng, const Shape& weight, size_t dim, int64_t terms) {
  const int64_t taps = weight[dim], stride = RowMajorStrides(weight)[dim],
                volume = NumElements(weight) / (weight[0] * weight[1]);
  const auto blocks = static_cast<FactorBlocks>(rng.Between(0, 2));
  std::vector<double> u(static_cast<size_t>(NumElements(weight))), v(u.size()), values(u.size(), 0);
  for (int64_t t = 0; t < terms; ++t) {
    for (double& value : u) value = static_cast<double>(rng.Between(-3, 3)) / 4;
    for (double& value : v) value = std::exp2(static_cast<double>(rng.Between(-1, 2)));
    for (int64_t i = 0; i < NumElements(weight); ++i) {
      const int64_t o = i / volume / weight[1], c = i / volume % weight[1], tap = i / stride % taps;
      const int64_t place = (i - tap * stride) % volume + volume * c;
      const int64_t row = place + (blocks == FactorBlocks::kOutputs ? o * volume * weight[1] : 0);
      const int64_t column = (blocks == FactorBlocks::kInputs ? o * weight[1] + c : o) * taps + tap;
      values[static_cast<size_t>(i)] +=
          u[static_cast<size_t>(row)] * v[static_cast<size_t>(column)];
    }
  }
  return values;
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  const size_t rank = static_cast<size_t>(rng.Between(2, 3));
  const int64_t group = rng.Between(1, 2), terms = rng.Between(1, 2);
  const int64_t channels = group * rng.Between(1, 3);
  Shape input = {1, channels}, weight = {4, channels / group};
  for (size_t d = 0; d < rank; ++d) {
    input.push_back(rng.Between(5, 6));
    weight.push_back(rng.Between(2 * terms - 1, 2 * terms + 1));
  }
  const size_t dim = static_cast<size_t>(rng.Between(2, static_cast<int64_t>(rank) + 1));
  weight[dim] = std::max<int64_t>(2, weight[dim]);
  ValueId w = e.Constant(
      Tensor::FromDoubles({DType::kF32, weight}, SampleProduct(rng, weight, dim, terms)));
  Shape rows(weight.size(), 1);
  rows[0] = weight[0];
  if (rng.Flip()) w = e.Mul(SampleWeight(e, rng, rows, "scale"), w);
  std::vector<ValueId> inputs = {e.Input("x", {DType::kF32, input}), w};
  if (rng.Flip()) inputs.push_back(SampleWeight(e, rng, {4}, "b"));
  const int64_t pad = rng.Between(0, 1);
  Attributes attrs = WindowAttributes(rank, rng.Between(1, 2), 1, pad);
  attrs.Set("group", group);
  e.Output("y", e.Op("Conv", inputs, attrs));
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "separable_kernel";
  rule.family = "kernel shape";
  rule.before =
      "Conv(x, w) where w[o, c, k, k_a] = sum_t u[.., t, c, k] * v[o, .., t, k_a], u of one "
      "filter, one channel or a group";
  rule.after = "Conv(Conv(x, u), v) over r*O, r*C or r*g channels in O or g groups";
  rule.precondition =
      "literal weights whose stored numbers are exactly such sums (a folded batch norm's scale "
      "moves to v); 10 % less arithmetic";
  rule.reads_values = true;
  rule.loses_when = "the kernel is small: the second pass reads everything again";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::separable_kernel
