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
#include "mutator/parallel.h"
#include "mutator/regions/select.h"
#include "mutator/rule.h"
#include "mutator/sample.h"

namespace mendel::rules::matmul_to_cum_sum {
namespace {

struct Site {
  size_t operand = 0;  ///< what is summed; the other one is the matrix
  size_t axis = 0;     ///< along which it is summed
  RunningSums sums;
};

std::optional<Site> FindSite(const Graph& graph, int32_t id) {
  const Node& node = graph.node(id);
  if (node.op->name != "MatMul" || NumElements(node.outputs[0]) == 0) return std::nullopt;
  for (const size_t matrix : {size_t{0}, size_t{1}}) {
    const Node& stored = graph.node(node.inputs[matrix].node);
    if (!IsConstant(stored) || !SymbolName(stored).empty()) continue;
    const ValueId operand = node.inputs[1 - matrix];
    const size_t rank = graph.type(operand).shape.size();
    if (rank == 0 || IsWeight(graph, operand)) continue;
    auto sums = RunningSumsOf(ConstantValue(stored), matrix == 1);
    if (!sums.has_value()) continue;
    const size_t axis = matrix == 0 && rank > 1 ? rank - 2 : rank - 1;
    return Site{1 - matrix, axis, *std::move(sums)};
  }
  return std::nullopt;
}

std::vector<Match> FindMatches(const Graph& graph, int32_t node) {
  return FindSite(graph, node).has_value() ? std::vector<Match>{{{node}, {}}}
                                           : std::vector<Match>();
}

/// The sums at the bounds of all rows.
ValueId EmitSums(Emitter& e, ValueId x, const Site& site) {
  const Shape shape = e.shape(x);
  const std::vector<int64_t>& bounds = site.sums.bounds;
  std::vector<std::vector<int64_t>> lists;
  for (const int64_t extent : shape) {
    lists.emplace_back();
    for (int64_t i = 0; i < extent; ++i) lists.back().push_back(i);
  }
  std::vector<int64_t>& picked = lists[site.axis];
  const std::vector<int64_t> in_order = picked;
  picked.clear();
  const int64_t extent = shape[site.axis];
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
  return picked == in_order ? sums : SelectPositions(e, sums, lists, 0);
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&) {
  const int32_t id = subprogram.outputs()[0].value.node;
  const auto site = FindSite(subprogram, id);
  if (!site.has_value()) return absl::FailedPreconditionError("no running sums");
  Emitter e;
  ValueId y = EmitSums(e, e.InputsOf(subprogram)[0], *site);
  const TensorType& type = subprogram.node(id).outputs[0];
  if (site->sums.scale != 1) y = e.Mul(y, e.Constant(Tensor::Scalar(type.dtype, site->sums.scale)));
  if (IsBuilt(y) && e.shape(y) != type.shape) y = e.Reshape(y, type.shape);
  e.Output("out0", y);
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  const bool right = rng.Flip(), suffixes = rng.Flip();
  const int64_t columns = rng.Between(3, 7), rows = rng.Flip() ? columns : rng.Between(2, 7);
  const int64_t diagonal = rng.Flip() ? rng.Between(0, 1) : rng.Between(-2, 3);
  const double scale = rng.Flip() ? 1 : 0.5 * static_cast<double>(rng.Between(-3, 3));
  std::vector<double> values;
  const Shape shape = right ? Shape{columns, rows} : Shape{rows, columns};
  for (int64_t i = 0; i < shape[0]; ++i) {
    for (int64_t j = 0; j < shape[1]; ++j) {
      const int64_t row = right ? j : i, column = right ? i : j;
      const bool below = column < row + diagonal;
      values.push_back(below != suffixes ? scale : 0);
    }
  }
  const Tensor triangle = Tensor::FromDoubles({DType::kF32, shape}, values);
  const ValueId t = e.Constant(rng.Flip() ? triangle : triangle.Reshaped({1, shape[0], shape[1]}));
  Shape operand = right ? Shape{rng.Between(1, 4), columns} : Shape{columns, rng.Between(1, 4)};
  if (rng.Flip()) operand.insert(operand.begin(), rng.Between(1, 3));
  const ValueId x = e.Input("x", {DType::kF32, operand});
  e.Output("y", right ? e.MatMul(x, t) : e.MatMul(t, x));
  return e.Finish();
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
