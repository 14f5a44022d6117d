// Batch, layer, instance and group normalization, softmax and its relatives.

#include <algorithm>

#include "onnx/formula.h"

namespace mendel::lowerings::normalizations {
namespace {

absl::Status ImportBatchNormalization(OpContext& op) {
  op.Ignore("momentum");
  const bool trains = op.version() < 7 ? op.Int("is_test", 0) == 0
                                       : op.version() >= 14 && op.Int("training_mode", 0) != 0;
  if (trains) return Unsupported("training mode is not supported");
  if (op.Int("spatial", 1) == 0) return Unsupported("spatial = 0 is not supported");
  MENDEL_ASSIGN_OR_RETURN(std::vector<ValueId> inputs, op.AllInputs());
  return op.SetOutput(0, op.Emit("BatchNormalization", std::move(inputs),
                                 {{"epsilon", op.Float("epsilon", 1e-5f)}}));
}

absl::Status ImportInstanceNormalization(OpContext& op) {
  MENDEL_ASSIGN_OR_RETURN(std::vector<ValueId> inputs, op.AllInputs());
  return op.SetOutput(0, op.Emit("InstanceNormalization", std::move(inputs),
                                 {{"epsilon", op.Float("epsilon", 1e-5f)}}));
}

/// Mean and 1 / sqrt(variance + epsilon), the optional outputs of LayerNormalization.
absl::Status SetMoments(OpContext& op, const Ints& axes, double epsilon) {
  const ValueId x = op.In(0);
  const Attributes over{{"axes", axes}, {"keepdims", int64_t{1}}};
  MENDEL_ASSIGN_OR_RETURN(const ValueId mean, op.Emit("ReduceMean", {x}, over));
  MENDEL_RETURN_IF_ERROR(op.SetOutput(1, mean));
  if (!op.Wants(2)) return absl::OkStatus();
  MENDEL_ASSIGN_OR_RETURN(const ValueId centered, op.Emit("Sub", {x, mean}));
  MENDEL_ASSIGN_OR_RETURN(const ValueId square, op.Emit("Mul", {centered, centered}));
  MENDEL_ASSIGN_OR_RETURN(const ValueId variance, op.Emit("ReduceMean", {square}, over));
  MENDEL_ASSIGN_OR_RETURN(const ValueId sum,
                          op.Emit("Add", {variance, op.ScalarLike(variance, epsilon)}));
  MENDEL_ASSIGN_OR_RETURN(const ValueId deviation, op.Emit("Sqrt", {sum}));
  return op.SetOutput(2, op.Emit("Reciprocal", {deviation}));
}

absl::Status ImportLayerNormalization(OpContext& op) {
  op.Ignore("stash_type");  // the precision of the moments; the language has no rounding inside an
                            // operator
  const int64_t rank = op.rank(op.In(0));
  MENDEL_ASSIGN_OR_RETURN(const int64_t axis, op.Axis(op.Int("axis", -1), rank));
  const double epsilon = op.Float("epsilon", 1e-5f);
  MENDEL_ASSIGN_OR_RETURN(std::vector<ValueId> inputs, op.AllInputs());
  MENDEL_RETURN_IF_ERROR(op.SetOutput(
      0, op.Emit("LayerNormalization", std::move(inputs), {{"axis", axis}, {"epsilon", epsilon}})));
  if (!op.Wants(1) && !op.Wants(2)) return absl::OkStatus();
  Ints axes;
  for (int64_t d = axis; d < rank; ++d) axes.push_back(d);
  return SetMoments(op, axes, epsilon);
}

/// Before opset 21 scale and bias had one element a group; each is repeated for the channels of its
/// group.
absl::StatusOr<ValueId> PerChannel(OpContext& op, ValueId value, int64_t groups, int64_t channels) {
  if (op.version() >= 21 || groups == channels || op.shape(value) == Shape{channels}) return value;
  if (op.shape(value) != Shape{groups})
    return InvalidInput("scale and bias must have ", groups, " elements");
  MENDEL_ASSIGN_OR_RETURN(const ValueId column, op.Reshape(value, {groups, 1}));
  MENDEL_ASSIGN_OR_RETURN(
      const ValueId repeated,
      op.Emit("Expand", {column}, {{"shape", Ints{groups, channels / groups}}}));
  return op.Reshape(repeated, {channels});
}

absl::Status ImportGroupNormalization(OpContext& op) {
  op.Ignore("stash_type");
  const int64_t groups = op.Int("num_groups", 0);
  if (op.rank(op.In(0)) < 2) return InvalidInput("expects a channel dimension");
  const int64_t channels = op.shape(op.In(0))[1];
  if (groups < 1 || channels % groups != 0)
    return InvalidInput("cannot form ", groups, " groups of ", channels, " channels");
  MENDEL_ASSIGN_OR_RETURN(const ValueId scale, PerChannel(op, op.In(1), groups, channels));
  MENDEL_ASSIGN_OR_RETURN(const ValueId bias, PerChannel(op, op.In(2), groups, channels));
  return op.SetOutput(0,
                      op.Emit("GroupNormalization", {op.In(0), scale, bias},
                              {{"num_groups", groups}, {"epsilon", op.Float("epsilon", 1e-5f)}}));
}

/// Softmax, LogSoftmax, Hardmax. Before opset 13 they worked on the matrix that splitting the shape
/// at `axis` gives.
absl::Status ImportSoftmax(OpContext& op) {
  const ValueId x = op.In(0);
  const int64_t rank = op.rank(x);
  const bool flattens = op.version() < 13;
  int64_t axis = op.Int("axis", flattens ? 1 : -1);
  if (rank == 0) return InvalidInput("expects at least one dimension");
  if (flattens && axis == rank)
    return Unsupported("an axis behind the last dimension is not supported");
  MENDEL_ASSIGN_OR_RETURN(axis, op.Axis(axis, rank));
  if (!flattens || axis == rank - 1)
    return op.SetOutput(0, op.Emit(op.op(), {x}, {{"axis", axis}}));
  const Shape shape = op.shape(x);
  const Shape outer(shape.begin(), shape.begin() + axis);
  const Shape inner(shape.begin() + axis, shape.end());
  MENDEL_ASSIGN_OR_RETURN(const ValueId matrix,
                          op.Reshape(x, {NumElements(outer), NumElements(inner)}));
  MENDEL_ASSIGN_OR_RETURN(const ValueId result, op.Emit(op.op(), {matrix}, {{"axis", int64_t{1}}}));
  return op.SetOutput(0, op.Reshape(result, shape));
}

/// (x - mean) / (standard deviation + 1e-9), as the operator's function body says.
absl::Status ImportMeanVarianceNormalization(OpContext& op) {
  const ValueId x = op.In(0);
  Ints axes = op.IntList("axes").value_or(Ints{0, 2, 3});
  for (int64_t& axis : axes) {
    MENDEL_ASSIGN_OR_RETURN(axis, op.Axis(axis, op.rank(x)));
  }
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end())
    return InvalidInput("an axis is given twice");
  const Attributes over{{"axes", axes}, {"keepdims", int64_t{1}}};
  MENDEL_ASSIGN_OR_RETURN(const ValueId mean, op.Emit("ReduceMean", {x}, over));
  MENDEL_ASSIGN_OR_RETURN(const ValueId centered, op.Emit("Sub", {x, mean}));
  MENDEL_ASSIGN_OR_RETURN(const ValueId square, op.Emit("Mul", {centered, centered}));
  MENDEL_ASSIGN_OR_RETURN(const ValueId variance, op.Emit("ReduceMean", {square}, over));
  MENDEL_ASSIGN_OR_RETURN(const ValueId deviation, op.Emit("Sqrt", {variance}));
  MENDEL_ASSIGN_OR_RETURN(const ValueId divisor,
                          op.Emit("Add", {deviation, op.ScalarLike(deviation, 1e-9)}));
  return op.SetOutput(0, op.Emit("Div", {centered, divisor}));
}

/// x over its L1 or L2 norm along one axis; zeros stay zeros.
absl::Status ImportLpNormalization(OpContext& op) {
  const ValueId x = op.In(0);
  MENDEL_ASSIGN_OR_RETURN(const int64_t axis, op.Axis(op.Int("axis", -1), op.rank(x)));
  const int64_t p = op.Int("p", 2);
  if (p != 1 && p != 2) return InvalidInput("p must be 1 or 2, not ", p);
  Formula f(op);
  const ValueId norm = f.Reduce(p == 1 ? "ReduceL1" : "ReduceL2", x, {axis});
  const ValueId empty = f.Op("Equal", {norm, f.Scalar(norm, 0)});
  f.SetOutput(0, f.Div(x, f.Where(empty, f.Scalar(norm, 1), norm)));
  return f.status();
}

const OpImportRegistrar registrar({
    {"BatchNormalization", 5, 5, &ImportBatchNormalization},
    {"GroupNormalization", 3, 3, &ImportGroupNormalization},
    {"Hardmax", 1, 1, &ImportSoftmax},
    {"InstanceNormalization", 3, 3, &ImportInstanceNormalization},
    {"LayerNormalization", 2, 3, &ImportLayerNormalization},
    {"LpNormalization", 1, 1, &ImportLpNormalization},
    {"MeanVarianceNormalization", 1, 1, &ImportMeanVarianceNormalization},
    {"LogSoftmax", 1, 1, &ImportSoftmax},
    {"Softmax", 1, 1, &ImportSoftmax},
});

}  // namespace
}  // namespace mendel::lowerings::normalizations
