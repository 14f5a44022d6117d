// Chains of matrix products are computed in the cheapest order, biases included.
//
//   before  (((x * w1 + b1) * w2 + b2) * ..) * wn, or any association
//   after   the product in the order of least run-time work + (b1 * w2..wn + b2 * w3..wn + ..)
//
// Exact. Products of weights cost nothing at run time. Behind a bias all operands must be weights;
// where some are not, the product with the bias is one operand.
// In attention, P * (x * Wv) * Wo becomes P * (x * (Wv * Wo)) where that is cheaper.
//
// Source: matrix chain multiplication by dynamic programming.

#include <algorithm>
#include <limits>
#include <optional>

#include "base/status.h"
#include "base/work.h"
#include "graph/emitter.h"
#include "mutator/parallel.h"
#include "mutator/rule.h"
#include "mutator/sample.h"

namespace mendel::rules::matmul_chain {
namespace {

constexpr size_t kMaxOperands = 64;
constexpr size_t kMaxVisited = 3 * kMaxOperands;  // operands, their products and biases
constexpr double kWorthwhile = 0.95;              // of the arithmetic before

struct Chain {
  std::vector<ValueId> operands;                   ///< left to right
  std::vector<std::pair<size_t, ValueId>> biases;  ///< added behind operand number `first`
  std::vector<int32_t> nodes;
  size_t visited = 0;
};

bool IsProduct(const Graph& graph, ValueId value) {
  const Node& node = graph.node(value.node);
  return node.op->name == "MatMul" && !IsWeight(graph, value) &&
         graph.type(node.inputs[0]).shape.size() >= 2 &&
         graph.type(node.inputs[1]).shape.size() >= 2;
}

/// Index of the constant row that an Add adds to a product, or -1.
int RowOperand(const Graph& graph, const Node& add) {
  if (add.op->name != "Add") return -1;
  for (int k : {0, 1}) {
    const ValueId row = add.inputs[static_cast<size_t>(k)];
    const Shape& shape = graph.type(row).shape;
    if (IsWeight(graph, row) && !shape.empty() && NumElements(shape) == shape.back() &&
        graph.type(add.inputs[static_cast<size_t>(1 - k)]) == add.outputs[0] &&
        shape.back() == add.outputs[0].shape.back())
      return k;
  }
  return -1;
}

/// Appends the operands of `value`; `spine`: everything so far stands behind it, so that biases may
/// be passed on.
void Flatten(const Graph& graph, ValueId value, bool root, bool spine, Chain& chain) {
  CountWork();
  if (++chain.visited > kMaxVisited) return;
  const Node& node = graph.node(value.node);
  const bool inner = root || graph.OnlyUser(value.node) >= 0;
  if (inner && IsProduct(graph, value)) {
    Flatten(graph, node.inputs[0], false, spine, chain);
    Flatten(graph, node.inputs[1], false, false, chain);
    chain.nodes.push_back(value.node);
    return;
  }
  const int row = inner && spine && !root ? RowOperand(graph, node) : -1;
  if (row >= 0 && IsProduct(graph, node.inputs[static_cast<size_t>(1 - row)]) &&
      graph.OnlyUser(node.inputs[static_cast<size_t>(1 - row)].node) >= 0) {
    Flatten(graph, node.inputs[static_cast<size_t>(1 - row)], false, true, chain);
    chain.biases.emplace_back(chain.operands.size() - 1, node.inputs[static_cast<size_t>(row)]);
    chain.nodes.push_back(value.node);
    return;
  }
  chain.operands.push_back(value);
}

/// Splits of the cheapest order, by dynamic programming over segments.
class Order {
 public:
  Order(const Graph& graph, const Chain& chain) : graph_(graph), operands_(chain.operands) {
    const size_t n = operands_.size();
    cost_.assign(n, std::vector<double>(n, 0));
    split_.assign(n, std::vector<size_t>(n, 0));
    for (size_t length = 2; length <= n; ++length) {
      for (size_t i = 0; i + length <= n; ++i) Cheapest(i, i + length - 1);
    }
  }
  double cost() const { return cost_.front().back(); }
  size_t SplitOf(size_t i, size_t j) const { return split_[i][j]; }

 private:
  void Cheapest(size_t i, size_t j) {
    double batch = 1;
    bool constant = true;
    for (size_t k = i; k <= j; ++k) {
      const Shape& shape = graph_.type(operands_[k]).shape;
      batch =
          std::max(batch, static_cast<double>(NumElements(Shape(shape.begin(), shape.end() - 2))));
      constant = constant && IsWeight(graph_, operands_[k]);
    }
    const Shape& left = graph_.type(operands_[i]).shape;
    const double rows = static_cast<double>(left[left.size() - 2]);
    const double columns = static_cast<double>(graph_.type(operands_[j]).shape.back());
    cost_[i][j] = std::numeric_limits<double>::infinity();
    for (size_t k = i; k < j; ++k) {
      const double inner = static_cast<double>(graph_.type(operands_[k]).shape.back());
      const double own = constant ? 0 : 2 * batch * rows * inner * columns;
      if (cost_[i][k] + cost_[k + 1][j] + own >= cost_[i][j]) continue;
      cost_[i][j] = cost_[i][k] + cost_[k + 1][j] + own;
      split_[i][j] = k;
    }
  }

  const Graph& graph_;
  const std::vector<ValueId>& operands_;
  std::vector<std::vector<double>> cost_;
  std::vector<std::vector<size_t>> split_;
};

/// The chain that ends with MatMul `node`, if it is one whose order is free. `spine`: products with
/// a bias may be parts of it.
std::optional<Chain> ChainAt(const Graph& graph, int32_t node, bool spine) {
  if (!IsProduct(graph, {node, 0})) return std::nullopt;
  Chain chain;
  Flatten(graph, {node, 0}, true, spine, chain);
  if (chain.visited > kMaxVisited) return std::nullopt;
  if (chain.operands.size() < 3 || chain.operands.size() > kMaxOperands) return std::nullopt;
  Shape batch;
  for (ValueId operand : chain.operands) {
    const Shape& shape = graph.type(operand).shape;
    if (shape.size() < 2) return std::nullopt;
    const Shape own(shape.begin(), shape.end() - 2);
    if (own.empty()) continue;
    if (!batch.empty() && own != batch) return std::nullopt;
    batch = own;
  }
  const size_t weights_from =
      chain.biases.empty() ? chain.operands.size() : chain.biases.front().first + 1;
  for (size_t k = weights_from; k < chain.operands.size(); ++k) {
    if (!IsWeight(graph, chain.operands[k]) || graph.type(chain.operands[k]).shape.size() != 2)
      return std::nullopt;
  }
  return chain;
}

/// A bias can be passed on through weights alone. Where that fails, the product with the bias is an
/// operand like any other.
std::optional<Chain> ChainAt(const Graph& graph, int32_t node) {
  std::optional<Chain> chain = ChainAt(graph, node, true);
  return chain.has_value() ? chain : ChainAt(graph, node, false);
}

std::vector<Match> FindMatches(const Graph& graph, int32_t node, const Predictor&) {
  const std::optional<Chain> chain = ChainAt(graph, node);
  if (!chain.has_value()) return {};
  double before = 0;
  for (int32_t id : chain->nodes) {
    if (graph.node(id).op->name != "MatMul") continue;
    const double inner = static_cast<double>(graph.type(graph.node(id).inputs[0]).shape.back());
    before += 2 * inner * static_cast<double>(NumElements(graph.node(id).outputs[0]));
  }
  if (Order(graph, *chain).cost() > kWorthwhile * before) return {};
  std::vector<int32_t> nodes = chain->nodes;
  std::sort(nodes.begin(), nodes.end());
  return {{nodes, {}}};
}

ValueId Emit(Emitter& e, const Order& order, const std::vector<ValueId>& operands, size_t i,
             size_t j) {
  if (i == j) return operands[i];
  const size_t k = order.SplitOf(i, j);
  return e.MatMul(Emit(e, order, operands, i, k), Emit(e, order, operands, k + 1, j));
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&, const Predictor&) {
  const std::optional<Chain> chain = ChainAt(subprogram, subprogram.outputs()[0].value.node);
  if (!chain.has_value()) return absl::FailedPreconditionError("not a chain of products");
  Emitter e;
  const std::vector<ValueId> inputs = e.InputsOf(subprogram);
  std::vector<ValueId> operands;
  for (ValueId operand : chain->operands)
    operands.push_back(OperandOf(e, subprogram, operand, inputs));
  ValueId y = Emit(e, Order(subprogram, *chain), operands, 0, operands.size() - 1);
  for (const auto& [first, bias] : chain->biases) {
    ValueId row = e.CopyConstantExpression(subprogram, bias);
    row = e.Reshape(row, {1, e.shape(row).back()});
    for (size_t k = first + 1; k < operands.size(); ++k) row = e.MatMul(row, operands[k]);
    y = e.Add(y, row);
  }
  e.Output("out0", y);
  return e.Finish();
}

absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  const Shape batch = rng.Flip() ? Shape{} : Shape{2};
  const bool attention = !batch.empty() && rng.Flip();
  int64_t width = rng.Between(3, 5);
  const int64_t rows = rng.Between(4, 6);
  Shape shape = batch;
  shape.insert(shape.end(), {rows, width});
  ValueId x = e.Input("x", {DType::kF32, shape});
  const int64_t length = rng.Between(attention ? 2 : 3, 5);
  for (int64_t k = 0; k < length; ++k) {
    const int64_t next = rng.Between(1, 6);
    x = e.MatMul(x, SampleWeight(e, rng, {width, next}, Cat("w", k)));
    if (attention && k == 0) x = e.MatMul(e.Input("p", {DType::kF32, {2, rows, rows}}), x);
    if (!attention && k + 1 < length && rng.Between(0, 2) == 0)
      x = e.Add(
          x, e.Constant(Tensor::Filled({DType::kF32, {next}}, 0.5), next == 1 ? "" : Cat("b", k)));
    width = next;
  }
  e.Output("y", x);
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "matmul_chain";
  rule.family = "linear order";
  rule.before = "((x * w1 + b1) * w2 + b2) * .. * wn, any association";
  rule.after = "the cheapest association + (b1 * w2..wn + ..)";
  rule.precondition =
      "3 to 64 operands of rank 2 or one common batch, each product read once; 5 % less arithmetic";
  rule.loses_when = "the new order's shapes suit the library less than they save";
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::matmul_chain
