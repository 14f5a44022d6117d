// Gathers, scatters, OneHot, TopK, Trilu. Constant indices are made non-negative and checked
// against the table here, so that the language's operators may rely on them.

#include "onnx/ops/indexing.h"

#include <algorithm>

namespace mendel {

absl::StatusOr<ValueId> CheckedIndices(OpContext& op, ValueId indices, int64_t extent) {
  if (!IsIntegral(op.type(indices).dtype))
    return InvalidInput("indices must be integers, not ", DTypeName(op.type(indices).dtype));
  const Tensor* tensor = op.ConstantOf(indices);
  if (tensor == nullptr) return indices;
  std::vector<int64_t> values = tensor->ToInts();
  bool changed = false;
  for (int64_t& value : values) {
    if (value < -extent || value >= extent)
      return InvalidInput("index ", value, " is outside an extent of ", extent);
    changed = changed || value < 0;
    if (value < 0) value += extent;
  }
  return changed ? op.Literal(Tensor::FromInts(tensor->type(), values)) : indices;
}

namespace lowerings::indexing {
namespace {

absl::Status ImportGather(OpContext& op) {
  MENDEL_ASSIGN_OR_RETURN(const int64_t axis, op.Axis(op.Int("axis", 0), op.rank(op.In(0))));
  MENDEL_ASSIGN_OR_RETURN(
      const ValueId indices,
      CheckedIndices(op, op.In(1), op.shape(op.In(0))[static_cast<size_t>(axis)]));
  return op.SetOutput(0, op.Emit(op.op(), {op.In(0), indices}, {{"axis", axis}}));
}

absl::Status ImportScatterElements(OpContext& op) {
  MENDEL_ASSIGN_OR_RETURN(const int64_t axis, op.Axis(op.Int("axis", 0), op.rank(op.In(0))));
  MENDEL_ASSIGN_OR_RETURN(
      const ValueId indices,
      CheckedIndices(op, op.In(1), op.shape(op.In(0))[static_cast<size_t>(axis)]));
  return op.SetOutput(0, op.Emit("ScatterElements", {op.In(0), indices, op.In(2)},
                                 {{"axis", axis}, {"reduction", op.Str("reduction", "none")}}));
}

/// Rows of constant indices index dimensions `first`, first + 1, ... of the table.
absl::StatusOr<ValueId> CheckedRows(OpContext& op, size_t first) {
  const ValueId indices = op.In(1);
  const Shape& table = op.shape(op.In(0));
  if (!IsIntegral(op.type(indices).dtype))
    return InvalidInput("indices must be integers, not ", DTypeName(op.type(indices).dtype));
  if (op.rank(indices) < 1) return InvalidInput("indices must have at least one dimension");
  const size_t width = static_cast<size_t>(op.shape(indices).back());
  if (first + width > table.size())
    return InvalidInput("indices of ", width, " dimensions exceed the table's rank");
  const Tensor* tensor = op.ConstantOf(indices);
  if (tensor == nullptr || width == 0) return indices;
  std::vector<int64_t> values = tensor->ToInts();
  for (size_t k = 0; k < values.size(); ++k) {
    const int64_t extent = table[first + k % width];
    if (values[k] < -extent || values[k] >= extent)
      return InvalidInput("index ", values[k], " is outside an extent of ", extent);
    if (values[k] < 0) values[k] += extent;
  }
  return op.Literal(Tensor::FromInts(tensor->type(), values));
}

absl::Status ImportGatherND(OpContext& op) {
  const int64_t batch = op.Int("batch_dims", 0);
  if (batch < 0 || batch >= std::min(op.rank(op.In(0)), op.rank(op.In(1))))
    return InvalidInput("batch_dims ", batch, " is outside the ranks");
  MENDEL_ASSIGN_OR_RETURN(const ValueId indices, CheckedRows(op, static_cast<size_t>(batch)));
  return op.SetOutput(0, op.Emit("GatherND", {op.In(0), indices}, {{"batch_dims", batch}}));
}

absl::Status ImportScatterND(OpContext& op) {
  MENDEL_ASSIGN_OR_RETURN(const ValueId indices, CheckedRows(op, 0));
  return op.SetOutput(0, op.Emit("ScatterND", {op.In(0), indices, op.In(2)},
                                 {{"reduction", op.Str("reduction", "none")}}));
}

absl::Status ImportOneHot(OpContext& op) {
  MENDEL_ASSIGN_OR_RETURN(const std::vector<double> depth, op.ConstantDoubles(1, "depth"));
  if (depth.size() != 1 || !(depth[0] >= 1 && depth[0] <= 1e12))
    return InvalidInput("the depth must be one positive number");
  MENDEL_ASSIGN_OR_RETURN(const int64_t axis, op.Axis(op.Int("axis", -1), op.rank(op.In(0)) + 1));
  // Float indices are allowed; they name the integer that they hold.
  MENDEL_ASSIGN_OR_RETURN(const ValueId indices, op.Cast(op.In(0), DType::kI64));
  return op.SetOutput(0, op.Emit("OneHot", {indices, op.In(2)},
                                 {{"axis", axis}, {"depth", static_cast<int64_t>(depth[0])}}));
}

absl::Status ImportTopK(OpContext& op) {
  const int64_t rank = op.rank(op.In(0));
  MENDEL_ASSIGN_OR_RETURN(const int64_t axis, op.Axis(op.Int("axis", -1), rank));
  int64_t k = op.Int("k", -1);
  if (!op.HasAttribute("k")) {
    MENDEL_ASSIGN_OR_RETURN(k, op.ConstantInt(1, "k"));
  }
  const int64_t extent = op.shape(op.In(0))[static_cast<size_t>(axis)];
  if (k < 0 || k > extent) return InvalidInput("k = ", k, " is outside an extent of ", extent);
  return op.SetOutputs(op.EmitAll("TopK", {op.In(0)},
                                  {{"k", k},
                                   {"axis", axis},
                                   {"largest", int64_t{op.Int("largest", 1) != 0}},
                                   {"sorted", int64_t{op.Int("sorted", 1) != 0}}}));
}

absl::Status ImportTrilu(OpContext& op) {
  int64_t k = 0;
  if (op.Has(1)) {
    MENDEL_ASSIGN_OR_RETURN(k, op.ConstantInt(1, "diagonal"));
  }
  k = std::clamp<int64_t>(k, -kMaxElements, kMaxElements);
  return op.SetOutput(
      0, op.Emit("Trilu", {op.In(0)}, {{"upper", int64_t{op.Int("upper", 1) != 0}}, {"k", k}}));
}

/// Compress with a constant condition picks fixed positions; without an axis, of the flattened
/// input.
absl::Status ImportCompress(OpContext& op) {
  MENDEL_ASSIGN_OR_RETURN(const Ints condition, op.ConstantInts(1, "condition"));
  ValueId x = op.In(0);
  int64_t axis = 0;
  if (op.HasAttribute("axis")) {
    MENDEL_ASSIGN_OR_RETURN(axis, op.Axis(op.Int("axis", 0), op.rank(x)));
  } else {
    MENDEL_ASSIGN_OR_RETURN(x, op.Reshape(x, {NumElements(op.shape(x))}));
  }
  Ints positions;
  for (size_t k = 0; k < condition.size(); ++k) {
    if (condition[k] != 0) positions.push_back(static_cast<int64_t>(k));
  }
  const int64_t extent = op.shape(x)[static_cast<size_t>(axis)];
  if (!positions.empty() && positions.back() >= extent) {
    return InvalidInput("the condition picks position ", positions.back(), " of ", extent);
  }
  const TensorType type{DType::kI64, {static_cast<int64_t>(positions.size())}};
  return op.SetOutput(
      0, op.Emit("Gather", {x, op.Literal(Tensor::FromInts(type, positions))}, {{"axis", axis}}));
}

const OpImportRegistrar registrar({
    {"Compress", 2, 2, &ImportCompress},
    {"Gather", 2, 2, &ImportGather},
    {"GatherElements", 2, 2, &ImportGather},
    {"GatherND", 2, 2, &ImportGatherND},
    {"OneHot", 3, 3, &ImportOneHot},
    {"Scatter", 3, 3, &ImportScatterElements},
    {"ScatterElements", 3, 3, &ImportScatterElements},
    {"ScatterND", 3, 3, &ImportScatterND},
    {"TopK", 1, 2, &ImportTopK},
    {"Trilu", 1, 2, &ImportTrilu},
});

}  // namespace
}  // namespace lowerings::indexing
}  // namespace mendel
