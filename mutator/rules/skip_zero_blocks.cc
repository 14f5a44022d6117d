// Products with a stored matrix of blocks, only where it is not zero.
//
//   before  MatMul(x, w), w zero outside of blocks (any rows, any columns)
//   after   Concat of MatMul(x[rows], w[rows, columns]) a block; zeros where a column has none
//   exact: for literals only. Rows and columns of one block are connected by numbers that are not
//   zero. Loses where blocks are many or small.

#include <algorithm>
#include <map>
#include <numeric>

#include "graph/positions.h"
#include "mutator/parallel.h"
#include "mutator/regions/select.h"
#include "mutator/rule.h"
#include "mutator/sample.h"

namespace mendel::rules::skip_zero_blocks {
namespace {

constexpr double kWorthwhile = 0.75;  // of the numbers of the matrix
constexpr size_t kMostBlocks = 16;
constexpr int64_t kMostElements = int64_t{1} << 24;

/// Rows and columns, ascending, outside of which they have zeros only.
struct Block {
  std::vector<int64_t> rows, columns;
};

/// The blocks of a matrix, by their first column.
std::vector<Block> BlocksOf(const Tensor& matrix) {
  const int64_t rows = matrix.shape()[0], columns = matrix.shape()[1];
  std::vector<int64_t> parent(static_cast<size_t>(rows + columns));
  std::iota(parent.begin(), parent.end(), 0);
  const auto root = [&](int64_t at) {
    while (parent[static_cast<size_t>(at)] != at) {
      parent[static_cast<size_t>(at)] =
          parent[static_cast<size_t>(parent[static_cast<size_t>(at)])];
      at = parent[static_cast<size_t>(at)];
    }
    return at;
  };
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      if (matrix.DoubleAt(i * columns + j) != 0)
        parent[static_cast<size_t>(root(i))] = root(rows + j);
    }
  }
  std::map<int64_t, Block> by_root;
  for (int64_t i = 0; i < rows; ++i) by_root[root(i)].rows.push_back(i);
  for (int64_t j = 0; j < columns; ++j) by_root[root(rows + j)].columns.push_back(j);
  std::vector<Block> blocks;
  for (auto& [id, block] : by_root) {
    if (!block.rows.empty() && !block.columns.empty()) blocks.push_back(std::move(block));
  }
  std::sort(blocks.begin(), blocks.end(),
            [](const Block& a, const Block& b) { return a.columns[0] < b.columns[0]; });
  return blocks;
}

/// The stored matrix of a product; null for other nodes.
const Tensor* MatrixOf(const Graph& graph, int32_t id) {
  const Node& node = graph.node(id);
  if (node.op->name != "MatMul" || IsWeight(graph, node.inputs[0])) return nullptr;
  const Node& stored = graph.node(node.inputs[1].node);
  if (!IsConstant(stored) || !SymbolName(stored).empty()) return nullptr;
  const Tensor& matrix = ConstantValue(stored);
  const bool fits = matrix.shape().size() == 2 && matrix.size() <= kMostElements &&
                    NumElements(node.outputs[0]) > 0 && IsFloat(matrix.dtype());
  return fits ? &matrix : nullptr;
}

std::vector<Match> FindMatches(const Graph& graph, int32_t node) {
  const Tensor* matrix = MatrixOf(graph, node);
  if (matrix == nullptr) return {};
  const std::vector<Block> blocks = BlocksOf(*matrix);
  double left = 0;
  for (const Block& block : blocks)
    left += static_cast<double>(block.rows.size() * block.columns.size());
  if (blocks.empty() || blocks.size() > kMostBlocks ||
      left > kWorthwhile * static_cast<double>(matrix->size()))
    return {};
  return {{{node}, {}}};
}

/// Positions `picked` along the last axis.
ValueId Pick(Emitter& e, ValueId x, const std::vector<int64_t>& picked) {
  const Shape shape = e.shape(x);
  std::vector<std::vector<int64_t>> lists;
  for (const int64_t extent : shape) {
    lists.emplace_back(static_cast<size_t>(extent));
    std::iota(lists.back().begin(), lists.back().end(), 0);
  }
  if (lists.back() == picked) return x;
  lists.back() = picked;
  return SelectPositions(e, x, lists, 0);
}

Tensor Cut(const Tensor& matrix, const Block& block) {
  std::vector<double> values;
  for (const int64_t row : block.rows) {
    for (const int64_t column : block.columns)
      values.push_back(matrix.DoubleAt(row * matrix.shape()[1] + column));
  }
  return Tensor::FromDoubles(
      {matrix.dtype(),
       {static_cast<int64_t>(block.rows.size()), static_cast<int64_t>(block.columns.size())}},
      values);
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&) {
  const int32_t id = subprogram.outputs()[0].value.node;
  const Tensor* matrix = MatrixOf(subprogram, id);
  if (matrix == nullptr) return absl::FailedPreconditionError("the matrix is no literal");
  Emitter e;
  const ValueId x = e.InputsOf(subprogram)[0];
  std::vector<int64_t> order(static_cast<size_t>(matrix->shape()[1]), kAbsent);
  std::vector<ValueId> parts;
  int64_t next = 0;
  for (const Block& block : BlocksOf(*matrix)) {
    const ValueId part = Pick(e, x, block.rows);
    if (!IsBuilt(part)) break;
    parts.push_back(e.MatMul(part, e.Constant(Cut(*matrix, block))));
    for (const int64_t column : block.columns) order[static_cast<size_t>(column)] = next++;
  }
  if (parts.empty()) return absl::FailedPreconditionError("the matrix is zero");
  const int64_t last = static_cast<int64_t>(e.shape(x).size()) - 1;
  const ValueId y = parts.size() == 1 ? parts[0] : e.Concat(parts, last);
  e.Output("out0", IsBuilt(y) ? Pick(e, y, order) : y);
  return e.Finish();
}

/// A few blocks of random rows and columns.
absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  const int64_t rows = rng.Between(4, 9), columns = rng.Between(4, 9), blocks = rng.Between(2, 3);
  const bool in_order = rng.Flip();
  const auto block_of = [&](int64_t at, int64_t extent) {
    return in_order ? at * blocks / extent : rng.Between(0, blocks - 1);
  };
  std::vector<int64_t> row_blocks, column_blocks;
  for (int64_t i = 0; i < rows; ++i) row_blocks.push_back(block_of(i, rows));
  for (int64_t j = 0; j < columns; ++j) column_blocks.push_back(block_of(j, columns));
  std::vector<double> values;
  for (const int64_t row : row_blocks) {
    for (const int64_t column : column_blocks) values.push_back(row == column ? rng.Normal() : 0);
  }
  const ValueId w = e.Constant(Tensor::FromDoubles({DType::kF32, {rows, columns}}, values));
  const Shape shape = rng.Flip() ? Shape{3, rows} : Shape{2, 3, rows};
  e.Output("y", e.MatMul(e.Input("x", {DType::kF32, shape}), w));
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "skip_zero_blocks";
  rule.family = "known numbers";
  rule.before = "MatMul(x, w), w zero outside of at most 16 blocks";
  rule.after = "Concat of MatMul(x[rows], w[rows, columns])";
  rule.precondition = "w is a literal of rank 2; at least a quarter of it lies outside of blocks";
  rule.loses_when = "blocks are many or small";
  rule.reads_values = true;
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::skip_zero_blocks
