// Weights of exactly low rank become two smaller products.
//
//   before  MatMul(x, w), w = a * b
//   after   MatMul(MatMul(x, a), b)
//   before  Conv(x, w, c), w[o, c, k..] such a product as a matrix of rows o or of columns c
//   after   Conv(Conv(x, b[r, C, K..]), a[O, r, 1..], c)
//           or Conv(Conv(x, a[r, C, 1..]), b[O, r, K..], c)
//
// Exact, and for literal weights only: their stored numbers are such products without rounding
// (mutator/low_rank.h). Examples are rows or channels that are repeated, zero, or combinations of
// others, and products of small integers. Grouped convolutions use r channels a group.

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "graph/emitter.h"
#include "mutator/factored_conv.h"
#include "mutator/low_rank.h"
#include "mutator/parallel.h"
#include "mutator/row_basis.h"
#include "mutator/rule.h"
#include "mutator/sample.h"

namespace mendel::rules::low_rank_weights {
namespace {

constexpr double kWorthwhile = 0.75;  // of the arithmetic before
constexpr double kMaxRank = 128;
// Choice "side": which operand of a MatMul the weight is; whether rows of a convolution's matrix
// are outputs or columns are inputs.
constexpr int64_t kLeft = 0, kRight = 1, kOutputs = 0, kInputs = 1;

/// A matrix product with a literal weight, the weight as a matrix and the largest rank that saves
/// arithmetic.
struct Site {
  StoredMatrix matrix;
  size_t max_rank = 0;
};

std::optional<Site> MatMulSite(const Graph& graph, const Node& node, int64_t side) {
  const ValueId weight = node.inputs[static_cast<size_t>(side)];
  const Tensor* w = LiteralOperand(graph, weight);
  if (w == nullptr || w->shape().size() != 2 ||
      IsWeight(graph, node.inputs[static_cast<size_t>(1 - side)]))
    return std::nullopt;
  const size_t rows = static_cast<size_t>(w->shape()[0]),
               columns = static_cast<size_t>(w->shape()[1]);
  const double worthwhile = kWorthwhile * static_cast<double>(w->size()) /
                            static_cast<double>(std::max<size_t>(1, rows + columns));
  const size_t max_rank = static_cast<size_t>(std::min(kMaxRank, worthwhile));
  const std::span<const float> values = w->As<float>();
  const auto element = [&](size_t i, size_t j) { return values[i * columns + j]; };
  if (HasHigherRank(rows, columns, element, max_rank)) return std::nullopt;
  return Site{{rows, columns, w->ToDoubles()}, max_rank};
}

std::optional<MatrixFactors> MatMulFactors(const Graph& graph, int32_t id, int64_t side) {
  const Node& node = graph.node(id);
  const std::optional<Site> site =
      node.op->name == "MatMul" ? MatMulSite(graph, node, side) : std::nullopt;
  if (!site.has_value() || site->matrix.values.empty()) return std::nullopt;
  return FactorExactly(site->matrix, site->max_rank);
}

/// The factors of a convolution's groups: with the window in the first one (kOutputs) or in the
/// second.
std::optional<std::vector<MatrixFactors>> ConvFactors(const Graph& graph, int32_t id, int64_t side,
                                                      ConvFactoring& factoring) {
  const Tensor* w = LiteralKernel(graph, id);
  if (w == nullptr || w->size() == 0) return std::nullopt;
  if (side == kInputs && w->size() == w->shape()[0] * w->shape()[1])
    return std::nullopt;  // the same two convolutions
  factoring = FactoringOf(graph, id, FactorBlocks::kGroups,
                          std::vector<bool>(w->shape().size() - 2, side == kInputs));
  return FactorKernel(*w, factoring, kWorthwhile);
}

std::vector<Match> FindMatches(const Graph& graph, int32_t node, const Predictor&) {
  std::vector<Match> matches;
  for (const int64_t side : {kLeft, kRight}) {
    ConvFactoring factoring;
    const bool found = MatMulFactors(graph, node, side).has_value() ||
                       ConvFactors(graph, node, side, factoring).has_value();
    if (found) matches.push_back({{node}, {{"side", side}}});
  }
  return matches;
}

ValueId EmitMatrix(Emitter& e, const StoredMatrix& matrix) {
  const Shape shape = {static_cast<int64_t>(matrix.rows), static_cast<int64_t>(matrix.columns)};
  return e.Constant(Tensor::FromDoubles({DType::kF32, shape}, matrix.values));
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match& match, const Predictor&) {
  const int32_t id = subprogram.outputs()[0].value.node;
  const int64_t side = match.choices.at("side");
  ConvFactoring factoring;
  if (const auto factors = ConvFactors(subprogram, id, side, factoring))
    return EmitFactored(subprogram, factoring, *factors);
  const std::optional<MatrixFactors> factors = MatMulFactors(subprogram, id, side);
  if (!factors.has_value()) return absl::FailedPreconditionError("the weight has no exact factors");
  Emitter e;
  const ValueId x = e.InputsOf(subprogram)[0];
  const ValueId a = EmitMatrix(e, factors->left), b = EmitMatrix(e, factors->right);
  e.Output("out0", side == kRight ? e.MatMul(e.MatMul(x, a), b) : e.MatMul(a, e.MatMul(b, x)));
  return e.Finish();
}

/// A product of small integers, of given rank or less, its rows rearranged by powers of two.
std::vector<double> SampleProduct(Rng& rng, int64_t rows, int64_t columns, int64_t rank) {
  std::vector<double> left(static_cast<size_t>(rows * rank)),
      right(static_cast<size_t>(rank * columns)), product;
  for (double& value : left) value = static_cast<double>(rng.Between(-3, 3));
  for (double& value : right) value = static_cast<double>(rng.Between(-3, 3)) / 8;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      product.push_back(0);
      for (int64_t k = 0; k < rank; ++k)
        product.back() +=
            left[static_cast<size_t>(i * rank + k)] * right[static_cast<size_t>(k * columns + j)];
    }
  }
  return product;
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  const int64_t rows = rng.Between(8, 10), columns = rng.Between(8, 10), rank = rng.Between(1, 3);
  if (rng.Flip()) {
    const ValueId w = e.Constant(Tensor::FromDoubles({DType::kF32, {rows, columns}},
                                                     SampleProduct(rng, rows, columns, rank)));
    e.Output("y", rng.Flip() ? e.MatMul(e.Input("x", {DType::kF32, {2, 3, rows}}), w)
                             : e.MatMul(w, e.Input("x", {DType::kF32, {columns, 3}})));
    return e.Finish();
  }
  const int64_t k = rng.Between(1, 3);
  std::vector<double> values = SampleProduct(rng, rows, columns * k, rank);
  Shape shape = {rows, columns, k, 1};
  if (rng.Flip()) {  // low rank as a matrix of inputs
    shape = {columns, rows, k, 1};
    std::vector<double> turned;
    for (int64_t i = 0; i < rows * columns * k; ++i) {
      const int64_t o = i / (rows * k), c = i / k % rows;
      turned.push_back(values[static_cast<size_t>((c * columns + o) * k + i % k)]);
    }
    values = std::move(turned);
  }
  ValueId w = e.Constant(Tensor::FromDoubles({DType::kF32, shape}, values));
  if (rng.Flip()) w = e.Mul(w, SampleWeight(e, rng, {shape[0], 1, 1, 1}, "scale"));
  const int64_t group = shape[0] % 2 == 0 ? rng.Between(1, 2) : 1;
  std::vector<ValueId> inputs = {e.Input("x", {DType::kF32, {1, group * shape[1], 4, 5}}), w};
  if (rng.Flip()) inputs.push_back(SampleWeight(e, rng, {shape[0]}, "b"));
  const int64_t pad = rng.Between(0, 1);
  Attributes attrs = WindowAttributes(2, rng.Between(1, 2), 1, pad);
  attrs.Set("group", group);
  e.Output("y", e.Op("Conv", inputs, attrs));
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "low_rank_weights";
  rule.family = "low rank";
  rule.before = "MatMul(x, w), Conv(x, w) where w = a * b";
  rule.after =
      "MatMul(MatMul(x, a), b), Conv(Conv(x, b), a[O, r, 1..]), Conv(Conv(x, a[r, C, 1..]), b)";
  rule.precondition =
      "literal weights whose stored numbers are exactly such products of floats, group by group; "
      "rank at most 128 (a folded batch "
      "norm's scale moves to the second one)";
  rule.loses_when = "two thin products keep the machine less busy than one";
  rule.reads_values = true;
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::low_rank_weights
