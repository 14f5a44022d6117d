// Gemm and MatMul: transposes, scales and missing matrix dimensions become nodes of their own.

#include "graph/integers.h"
#include "onnx/ops/normalized.h"

namespace mendel {
namespace lowerings::gemm {
namespace {

/// `value` times the scalar, or itself when the scalar is one.
absl::StatusOr<ValueId> Scale(OpContext& op, ValueId value, double scale) {
  if (scale == 1) return value;
  const DType dtype = op.type(value).dtype;
  if (IsIntegral(dtype) && !IsIntegerOf(dtype, scale))
    return Unsupported("integers times ", scale, ", which is no ", DTypeName(dtype));
  return op.Emit("Mul", {value, op.ScalarLike(value, scale)});
}

absl::Status ImportGemm(OpContext& op) { return op.SetOutput(0, EmitGemm(op)); }

/// NumPy's rule: a vector on the left is a row, on the right a column, and its dimension leaves the
/// result.
absl::Status ImportMatMul(OpContext& op) {
  ValueId a = op.In(0);
  ValueId b = op.In(1);
  const bool row = op.rank(a) == 1;
  const bool column = op.rank(b) == 1;
  if (row) {
    MENDEL_ASSIGN_OR_RETURN(a, op.Reshape(a, {1, op.shape(a)[0]}));
  }
  if (column) {
    MENDEL_ASSIGN_OR_RETURN(b, op.Reshape(b, {op.shape(b)[0], 1}));
  }
  MENDEL_ASSIGN_OR_RETURN(const ValueId product, op.Emit("MatMul", {a, b}));
  Shape shape = op.shape(product);
  if (column) shape.pop_back();
  if (row) shape.erase(shape.end() - (column ? 1 : 2));
  return op.SetOutput(0, op.Reshape(product, shape));
}

const OpImportRegistrar registrar({
    {"Gemm", 2, 3, &ImportGemm},
    {"MatMul", 2, 2, &ImportMatMul},
});

}  // namespace
}  // namespace lowerings::gemm

absl::StatusOr<ValueId> EmitGemm(OpContext& op) {
  if (op.version() < 7) op.Ignore("broadcast");  // the shapes say whether C broadcasts
  ValueId a = op.In(0);
  ValueId b = op.In(1);
  if (op.rank(a) != 2 || op.rank(b) != 2) return InvalidInput("expects two matrices");
  if (op.Int("transA", 0) != 0) {
    MENDEL_ASSIGN_OR_RETURN(a, op.Transpose(a, {1, 0}));
  }
  if (op.Int("transB", 0) != 0) {
    MENDEL_ASSIGN_OR_RETURN(b, op.Transpose(b, {1, 0}));
  }
  MENDEL_ASSIGN_OR_RETURN(ValueId product, op.Emit("MatMul", {a, b}));
  MENDEL_ASSIGN_OR_RETURN(product, lowerings::gemm::Scale(op, product, op.Float("alpha", 1)));
  const double beta = op.Float("beta", 1);
  if (!op.Has(2) || beta == 0) return product;
  MENDEL_ASSIGN_OR_RETURN(const ValueId bias, lowerings::gemm::Scale(op, op.In(2), beta));
  return op.Emit("Add", {product, bias});
}

}  // namespace mendel
