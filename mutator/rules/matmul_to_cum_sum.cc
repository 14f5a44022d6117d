// Products with a constant triangle become running sums.
//
//   before  MatMul(t, x), each row of t one number c over a prefix or a suffix
//   before  MatMul(x, t), each column of t one number c over a prefix or a suffix
//   after   c * CumSum(x), its positions picked where they are not all in order
//
// Exact, and for literals only (onnx/importer.cc makes triangles literals). A product of a few rows
// is as fast as a running sum.

#include <algorithm>
#include <optional>

#include "graph/positions.h"
#include "graph/running_sums.h"
#include "mutator/literal_product.h"
#include "mutator/regions/select.h"
#include "mutator/rule.h"

namespace mendel::rules::matmul_to_cum_sum {
namespace {

struct Site {
  size_t axis = 0;  ///< of the operand, along which it is summed
  RunningSums sums;
};

std::optional<Site> FindSite(const Graph& graph, int32_t id) {
  for (const LiteralProduct& product : LiteralProductsOf(graph, id)) {
    auto sums = RunningSumsOf(*product.matrix, product.transposed);
    if (sums.has_value()) return Site{product.axis, *std::move(sums)};
  }
  return std::nullopt;
}

std::vector<Match> FindMatches(const Graph& graph, int32_t node, const Predictor&) {
  return FindSite(graph, node).has_value() ? std::vector<Match>{{{node}, {}}}
                                           : std::vector<Match>();
}

/// The sums at the bounds of all rows.
ValueId EmitSums(Emitter& e, ValueId x, const Site& site) {
  const std::vector<int64_t>& bounds = site.sums.bounds;
  std::vector<int64_t> picked;
  const int64_t extent = e.shape(x)[site.axis];
  const auto [least, most] = std::minmax_element(bounds.begin(), bounds.end());
  // Exclusive sums contain the empty one, but not that of everything.
  const bool exclusive =
      site.sums.suffixes ? *most == extent && *least > 0 : *least == 0 && *most < extent;
  for (const int64_t bound : bounds) {
    const int64_t at = bound - (site.sums.suffixes == exclusive ? 1 : 0);
    picked.push_back(at >= 0 && at < extent ? at : kAbsent);
  }
  const ValueId sums = e.Op("CumSum", {x},
                            {{"axis", static_cast<int64_t>(site.axis)},
                             {"exclusive", int64_t{exclusive}},
                             {"reverse", int64_t{site.sums.suffixes}}});
  return PickAlong(e, sums, site.axis, picked);
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&, const Predictor&) {
  const int32_t id = subprogram.outputs()[0].value.node;
  const auto site = FindSite(subprogram, id);
  if (!site.has_value()) return absl::FailedPreconditionError("no running sums");
  Emitter e;
  const ValueId y = EmitSums(e, e.InputsOf(subprogram)[0], *site);
  return FinishScaled(e, y, site->sums.scale, subprogram.node(id).outputs[0]);
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  const bool right = rng.Flip(), suffixes = rng.Flip();
  const int64_t columns = rng.Between(3, 7), rows = rng.Flip() ? columns : rng.Between(2, 7);
  const int64_t diagonal = rng.Flip() ? rng.Between(0, 1) : rng.Between(-2, 3);
  const double scale = rng.Flip() ? 1 : 0.5 * static_cast<double>(rng.Between(-3, 3));
  return SampleLiteralProduct(rng, right, rows, columns, [&](int64_t row, int64_t column) {
    const bool below = column < row + diagonal;
    return below != suffixes ? scale : 0;
  });
}

Rule Make() {
  Rule rule;
  rule.name = "matmul_to_cum_sum";
  rule.family = "known numbers";
  rule.before = "MatMul(t, x), t one number over a prefix or suffix of each row";
  rule.after = "CumSum(x), scaled";
  rule.precondition = "t is a literal: a stored triangle, or any such weight where they are exact";
  rule.loses_when = "the axis is short";
  rule.reads_values = true;
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::matmul_to_cum_sum
