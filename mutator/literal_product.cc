#include "mutator/literal_product.h"

#include "mutator/parallel.h"
#include "mutator/regions/select.h"

namespace mendel {

std::vector<LiteralProduct> LiteralProductsOf(const Graph& graph, int32_t id) {
  const Node& node = graph.node(id);
  std::vector<LiteralProduct> products;
  if (node.op->name != "MatMul" || NumElements(node.outputs[0]) == 0) return products;
  for (const size_t matrix : {size_t{0}, size_t{1}}) {
    const Node& stored = graph.node(node.inputs[matrix].node);
    if (!IsConstant(stored) || !SymbolName(stored).empty()) continue;
    const ValueId operand = node.inputs[1 - matrix];
    const size_t rank = graph.type(operand).shape.size();
    if (rank == 0 || IsWeight(graph, operand)) continue;
    const size_t axis = matrix == 0 && rank > 1 ? rank - 2 : rank - 1;
    products.push_back({&ConstantValue(stored), matrix == 1, 1 - matrix, axis});
  }
  return products;
}

absl::StatusOr<Graph> FinishScaled(Emitter& e, ValueId y, double scale, const TensorType& type) {
  if (scale != 1 && IsBuilt(y)) y = e.Mul(y, e.Constant(Tensor::Scalar(type.dtype, scale)));
  if (IsBuilt(y) && e.shape(y) != type.shape) y = e.Reshape(y, type.shape);
  e.Output("out0", y);
  return e.Finish();
}

absl::StatusOr<Graph> SampleLiteralProduct(
    Rng& rng, bool right, int64_t rows, int64_t columns,
    const std::function<double(int64_t row, int64_t column)>& number) {
  Emitter e("sample");
  std::vector<double> values;
  const Shape shape = right ? Shape{columns, rows} : Shape{rows, columns};
  for (int64_t i = 0; i < shape[0]; ++i) {
    for (int64_t j = 0; j < shape[1]; ++j) values.push_back(right ? number(j, i) : number(i, j));
  }
  const Tensor matrix = Tensor::FromDoubles({DType::kF32, shape}, values);
  const ValueId t = e.Constant(rng.Flip() ? matrix : matrix.Reshaped({1, shape[0], shape[1]}));
  Shape operand = right ? Shape{rng.Between(1, 4), columns} : Shape{columns, rng.Between(1, 4)};
  if (rng.Flip()) operand.insert(operand.begin(), rng.Between(1, 3));
  const ValueId x = e.Input("x", {DType::kF32, operand});
  e.Output("y", right ? e.MatMul(x, t) : e.MatMul(t, x));
  return e.Finish();
}

}  // namespace mendel
