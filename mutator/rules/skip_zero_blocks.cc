// Products with a stored matrix of blocks are computed only where the matrix is not zero.
//
//   before  MatMul(x, w), w zero outside of blocks (any rows, any columns)
//   after   Concat of MatMul(x[rows], w[rows, columns]) a block; zeros where a column has none
//
// Exact, and for literals only. Nonzero numbers connect the rows and columns of one block.

#include "mutator/parallel.h"
#include "mutator/regions/select.h"
#include "mutator/rule.h"
#include "mutator/zero_blocks.h"

namespace mendel::rules::skip_zero_blocks {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 24;

std::vector<ZeroBlock> BlocksOf(const Tensor& matrix) {
  const int64_t columns = matrix.shape()[1];
  return ZeroBlocksOf(matrix.shape()[0], columns, [&](int64_t row, int64_t column) {
    return matrix.DoubleAt(row * columns + column) == 0;
  });
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

std::vector<Match> FindMatches(const Graph& graph, int32_t node, const Predictor&) {
  const Tensor* matrix = MatrixOf(graph, node);
  if (matrix == nullptr) return {};
  if (!AreWorthwhile(BlocksOf(*matrix), matrix->shape()[0], matrix->shape()[1])) return {};
  return {{{node}, {}}};
}

Tensor Cut(const Tensor& matrix, const ZeroBlock& block) {
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

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match&, const Predictor&) {
  const int32_t id = subprogram.outputs()[0].value.node;
  const Tensor* matrix = MatrixOf(subprogram, id);
  if (matrix == nullptr) return absl::FailedPreconditionError("the matrix is no literal");
  Emitter e;
  const ValueId x = e.InputsOf(subprogram)[0];
  const std::vector<ZeroBlock> blocks = BlocksOf(*matrix);
  const size_t last = e.shape(x).size() - 1;
  std::vector<ValueId> parts;
  for (const ZeroBlock& block : blocks) {
    const ValueId part = PickAlong(e, x, last, block.rows);
    if (!IsBuilt(part)) break;
    parts.push_back(e.MatMul(part, e.Constant(Cut(*matrix, block))));
  }
  if (parts.empty()) return absl::FailedPreconditionError("the matrix is zero");
  const ValueId y = parts.size() == 1 ? parts[0] : e.Concat(parts, static_cast<int64_t>(last));
  e.Output("out0", PickAlong(e, y, last, OrderOf(blocks, matrix->shape()[1])));
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
