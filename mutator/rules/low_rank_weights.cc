// Weights of exactly low rank, as two smaller products.
//
//   before  MatMul(x, w) with w = a * b; Conv(x, w, c) where w[o, c, k..], as a matrix of rows o or of columns c, is such a product
//   after   MatMul(MatMul(x, a), b); Conv(Conv(x, b[r, C, K..]), a[O, r, 1..], c) or Conv(Conv(x, a[r, C, 1..]), b[O, r, K..], c)
//   exact: only for literal weights (the judge knows them) whose stored numbers are such products without rounding: rows or
//   channels that are repeated, zero, multiples or combinations of others, products of small integers (mutator/low_rank.h).
//   loses when the rank is so high that two products keep the machine less busy than one.

#include <algorithm>
#include <optional>
#include <utility>

#include "graph/emitter.h"
#include "mutator/conv_chain.h"
#include "mutator/low_rank.h"
#include "mutator/parallel.h"
#include "mutator/rule.h"
#include "mutator/sample.h"

namespace mendel::rules::low_rank_weights {
namespace {

constexpr double kWorthwhile = 0.75;  // of the arithmetic before
constexpr double kMaxRank = 128;
// Choice "side": which operand of a MatMul the weight is; whether rows of a convolution's matrix are outputs or columns are inputs.
constexpr int64_t kLeft = 0, kRight = 1, kOutputs = 0, kInputs = 1;

/// A product with a literal weight, the weight as a matrix and the largest rank that saves arithmetic.
struct Site {
  StoredMatrix matrix;
  double max_rank = 0;
};

std::optional<Site> MatMulSite(const Graph& graph, const Node& node, int64_t side) {
  const ValueId weight = node.inputs[static_cast<size_t>(side)];
  const Tensor* w = LiteralOperand(graph, weight);
  if (w == nullptr || w->shape().size() != 2 || IsWeight(graph, node.inputs[static_cast<size_t>(1 - side)])) return std::nullopt;
  const double rows = static_cast<double>(w->shape()[0]), columns = static_cast<double>(w->shape()[1]);
  return Site{{static_cast<size_t>(w->shape()[0]), static_cast<size_t>(w->shape()[1]), w->ToDoubles()},
              kWorthwhile * rows * columns / (rows + columns)};
}

std::optional<Site> ConvSite(const Graph& graph, const Node& node, int64_t side) {
  const Tensor* w = StoredKernelOf(graph, node.inputs[1]).values;
  if (w == nullptr || node.attrs.Int("group") != 1 || IsWeight(graph, node.inputs[0])) return std::nullopt;
  const size_t outputs = static_cast<size_t>(w->shape()[0]), inputs = static_cast<size_t>(w->shape()[1]);
  const size_t taps = static_cast<size_t>(w->size()) / std::max<size_t>(1, outputs * inputs);
  if (taps == 1 && side == kInputs) return std::nullopt;  // the same two convolutions
  std::vector<double> values = w->ToDoubles();
  const double all = static_cast<double>(values.size());
  const double out = static_cast<double>(NumElements(node.outputs[0].shape)) / static_cast<double>(outputs);
  const double in = static_cast<double>(NumElements(graph.type(node.inputs[0]).shape)) / static_cast<double>(inputs);
  if (side == kOutputs) {
    const double both = all / static_cast<double>(outputs) + static_cast<double>(outputs);
    return Site{{outputs, inputs * taps, std::move(values)}, kWorthwhile * all / both};
  }
  StoredMatrix matrix{inputs, outputs * taps, std::vector<double>(values.size())};
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t o = i / (inputs * taps), c = i / taps % inputs;
    matrix.values[(c * outputs + o) * taps + i % taps] = values[i];
  }
  const double both = static_cast<double>(inputs) * in + all / static_cast<double>(inputs) * out;
  return Site{std::move(matrix), kWorthwhile * all * out / both};
}

std::optional<MatrixFactors> FactorsAt(const Graph& graph, int32_t id, int64_t side) {
  const Node& node = graph.node(id);
  const bool matmul = node.op->name == "MatMul";
  if (!matmul && node.op->name != "Conv") return std::nullopt;
  const std::optional<Site> site = matmul ? MatMulSite(graph, node, side) : ConvSite(graph, node, side);
  if (!site.has_value() || site->matrix.values.empty()) return std::nullopt;
  return FactorExactly(site->matrix, static_cast<size_t>(std::min(kMaxRank, site->max_rank)));
}

std::vector<Match> FindMatches(const Graph& graph, int32_t node) {
  std::vector<Match> matches;
  for (const int64_t side : {kLeft, kRight}) {
    if (FactorsAt(graph, node, side).has_value()) matches.push_back({{node}, {{"side", side}}});
  }
  return matches;
}

ValueId EmitMatrix(Emitter& e, const StoredMatrix& matrix) {
  const Shape shape = {static_cast<int64_t>(matrix.rows), static_cast<int64_t>(matrix.columns)};
  return e.Constant(Tensor::FromDoubles({DType::kF32, shape}, matrix.values));
}

/// Convolution weights [O, C, K..] out of a matrix; `turned`: its rows are inputs.
ValueId EmitKernel(Emitter& e, const StoredMatrix& matrix, Shape window, bool turned) {
  const size_t taps = static_cast<size_t>(NumElements(window));
  const size_t outputs = turned ? matrix.columns / taps : matrix.rows, inputs = turned ? matrix.rows : matrix.columns / taps;
  std::vector<double> values(matrix.values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t o = i / (inputs * taps), c = i / taps % inputs;
    values[i] = turned ? matrix.values[(c * outputs + o) * taps + i % taps] : matrix.values[i];
  }
  window.insert(window.begin(), {static_cast<int64_t>(outputs), static_cast<int64_t>(inputs)});
  return e.Constant(Tensor::FromDoubles({DType::kF32, window}, values));
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match& match) {
  const int32_t id = subprogram.outputs()[0].value.node;
  const Node& node = subprogram.node(id);
  const int64_t side = match.choices.at("side");
  const std::optional<MatrixFactors> factors = FactorsAt(subprogram, id, side);
  if (!factors.has_value()) return absl::FailedPreconditionError("the weight has no exact factors");
  Emitter e;
  const ValueId x = e.InputsOf(subprogram)[0];
  if (node.op->name == "MatMul") {
    const ValueId a = EmitMatrix(e, factors->left), b = EmitMatrix(e, factors->right);
    e.Output("out0", side == kRight ? e.MatMul(e.MatMul(x, a), b) : e.MatMul(a, e.MatMul(b, x)));
    return e.Finish();
  }
  const Shape& weight = subprogram.type(node.inputs[1]).shape;
  const Shape window(weight.begin() + 2, weight.end()), point(window.size(), 1);
  const Attributes pointwise = WindowAttributes(window.size(), 1, 1, 0);
  const bool outputs = side == kOutputs;
  const ValueId first = outputs ? EmitKernel(e, factors->right, window, false) : EmitKernel(e, factors->left, point, true);
  ValueId second = outputs ? EmitKernel(e, factors->left, point, false) : EmitKernel(e, factors->right, window, true);
  const std::optional<ValueId> scale = StoredKernelOf(subprogram, node.inputs[1]).scale;
  if (scale.has_value()) second = e.Mul(second, e.CopyConstantExpression(subprogram, *scale));
  std::vector<ValueId> inputs = {e.Op("Conv", {x, first}, outputs ? node.attrs : pointwise, node.name), second};
  if (node.inputs.size() > 2) inputs.push_back(e.CopyConstantExpression(subprogram, node.inputs[2]));
  e.Output("out0", e.Op("Conv", inputs, outputs ? pointwise : node.attrs, node.name));
  return e.Finish();
}

/// A product of small integers, of given rank or less, its rows rearranged by powers of two.
std::vector<double> SampleProduct(Rng& rng, int64_t rows, int64_t columns, int64_t rank) {
  std::vector<double> left(static_cast<size_t>(rows * rank)), right(static_cast<size_t>(rank * columns)), product;
  for (double& value : left) value = static_cast<double>(rng.Between(-3, 3));
  for (double& value : right) value = static_cast<double>(rng.Between(-3, 3)) / 8;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      product.push_back(0);
      for (int64_t k = 0; k < rank; ++k)
        product.back() += left[static_cast<size_t>(i * rank + k)] * right[static_cast<size_t>(k * columns + j)];
    }
  }
  return product;
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  const int64_t rows = rng.Between(8, 10), columns = rng.Between(8, 10), rank = rng.Between(1, 3);
  if (rng.Flip()) {
    const ValueId w = e.Constant(Tensor::FromDoubles({DType::kF32, {rows, columns}}, SampleProduct(rng, rows, columns, rank)));
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
  std::vector<ValueId> inputs = {e.Input("x", {DType::kF32, {1, shape[1], 4, 5}}), w};
  if (rng.Flip()) inputs.push_back(SampleWeight(e, rng, {shape[0]}, "b"));
  const int64_t pad = rng.Between(0, 1);
  e.Output("y", e.Op("Conv", inputs, WindowAttributes(2, rng.Between(1, 2), 1, pad)));
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "low_rank_weights";
  rule.family = "low rank";
  rule.before = "MatMul(x, w), Conv(x, w) where w = a * b";
  rule.after = "MatMul(MatMul(x, a), b), Conv(Conv(x, b), a[O, r, 1..]), Conv(Conv(x, a[r, C, 1..]), b)";
  rule.precondition =
      "literal weights whose stored numbers are exactly such products of floats; rank at most 128; group 1 (a folded batch norm's "
      "scale moves to the second one)";
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
