// Operators that are constants once shapes are static, and operators that mean nothing at
// inference.

#include <cmath>

#include "onnx/op_context.h"
#include "onnx/ops/quantized.h"
#include "onnx/tensor_decode.h"

namespace mendel::lowerings::constants {
namespace {

constexpr int64_t kMaxRange = int64_t{1} << 22;

absl::Status ImportConstant(OpContext& op) {
  MENDEL_ASSIGN_OR_RETURN(const std::optional<Tensor> tensor, op.TensorAttribute("value"));
  if (tensor.has_value()) return op.SetOutput(0, op.NamedConstant(*tensor));
  if (op.HasAttribute("value_int"))
    return op.SetOutput(
        0, op.Literal(Tensor::FromInts({DType::kI64, {}}, {{op.Int("value_int", 0)}})));
  if (op.HasAttribute("value_float"))
    return op.SetOutput(0, op.Literal(Tensor::Scalar(DType::kF32, op.Float("value_float", 0))));
  if (const std::optional<Ints> ints = op.IntList("value_ints"); ints.has_value()) {
    return op.SetOutput(0, op.Literal(Tensor::FromInts(
                               {DType::kI64, {static_cast<int64_t>(ints->size())}}, *ints)));
  }
  if (const auto floats = op.FloatList("value_floats"); floats.has_value()) {
    return op.SetOutput(0, op.NamedConstant(Tensor::FromDoubles(
                               {DType::kF32, {static_cast<int64_t>(floats->size())}}, *floats)));
  }
  return Unsupported("only dense tensors of numbers are supported as constants");
}

absl::Status ImportConstantOfShape(OpContext& op) {
  MENDEL_ASSIGN_OR_RETURN(const Ints shape, op.ConstantInts(0, "shape"));
  MENDEL_ASSIGN_OR_RETURN(std::optional<Tensor> value, op.TensorAttribute("value"));
  if (!value.has_value()) value = Tensor::Scalar(DType::kF32, 0);
  if (value->size() != 1)
    return InvalidInput("the value must have one element, not ", value->size());
  return op.SetOutput(0, op.Filled(*value, shape));
}

absl::Status ImportShape(OpContext& op) {
  const Shape& shape = op.shape(op.In(0));
  const int64_t rank = static_cast<int64_t>(shape.size());
  const auto clamp = [rank](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const int64_t start = clamp(op.Int("start", 0));
  const int64_t end = std::max(start, clamp(op.Int("end", rank)));
  const Shape part(shape.begin() + start, shape.begin() + end);
  return op.SetOutput(0, op.Literal(Tensor::FromInts({DType::kI64, {end - start}}, part)));
}

absl::Status ImportSize(OpContext& op) {
  const std::vector<int64_t> size = {NumElements(op.shape(op.In(0)))};
  return op.SetOutput(0, op.Literal(Tensor::FromInts({DType::kI64, {}}, size)));
}

/// Number of elements of start, start + delta, ... before limit; negative when there are too many.
int64_t RangeCount(double start, double limit, double delta) {
  const double count = std::ceil((limit - start) / delta);
  if (!(count <= static_cast<double>(kMaxRange))) return -1;
  return count > 0 ? static_cast<int64_t>(count) : 0;
}

/// The same of integers; no distance of two is too long for 64 bits without a sign.
int64_t RangeCount(int64_t start, int64_t limit, int64_t delta) {
  if (delta > 0 ? start >= limit : start <= limit) return 0;
  const uint64_t forward = static_cast<uint64_t>(limit) - static_cast<uint64_t>(start);
  const uint64_t distance = delta > 0 ? forward : 0 - forward;
  const uint64_t step = delta > 0 ? static_cast<uint64_t>(delta) : 0 - static_cast<uint64_t>(delta);
  const uint64_t count = (distance - 1) / step + 1;
  return count > uint64_t{kMaxRange} ? -1 : static_cast<int64_t>(count);
}

absl::Status ImportRange(OpContext& op) {
  op.Ignore("stash_type");  // the definition multiplies, where others add up rounded sums
  for (int k = 0; k < 3; ++k) {
    MENDEL_ASSIGN_OR_RETURN(const std::vector<double> value,
                            op.ConstantDoubles(k, "bounds of the range"));
    if (value.size() != 1) return InvalidInput("the bounds of the range must be single elements");
    if (op.type(op.In(k)).dtype != op.type(op.In(0)).dtype)
      return InvalidInput("the bounds of the range must have one dtype");
  }
  const auto element = [&](int k) -> const Tensor& { return *op.ConstantOf(op.In(k)); };
  const DType dtype = element(0).dtype();
  if (element(2).DoubleAt(0) == 0) return InvalidInput("the step of the range is zero");
  const int64_t count =
      IsIntegral(dtype)
          ? RangeCount(element(0).IntAt(0), element(1).IntAt(0), element(2).IntAt(0))
          : RangeCount(element(0).DoubleAt(0), element(1).DoubleAt(0), element(2).DoubleAt(0));
  if (count < 0) return Unsupported("the range has more than 2^22 elements or is not finite");
  op.NoteCount("count", count);
  if (IsFloat(dtype)) {
    std::vector<double> values;
    for (int64_t k = 0; k < count; ++k)
      values.push_back(element(0).DoubleAt(0) + static_cast<double>(k) * element(2).DoubleAt(0));
    return op.SetOutput(0, op.Literal(Tensor::FromDoubles({dtype, {count}}, values)));
  }
  std::vector<int64_t> values;
  for (int64_t k = 0; k < count; ++k) {
    // Wrapping arithmetic: hostile bounds must not overflow.
    const uint64_t value = static_cast<uint64_t>(element(0).IntAt(0)) +
                           static_cast<uint64_t>(k) * static_cast<uint64_t>(element(2).IntAt(0));
    values.push_back(static_cast<int64_t>(value));
  }
  return op.SetOutput(0, op.Literal(Tensor::FromInts({dtype, {count}}, values)));
}

absl::Status ImportIdentity(OpContext& op) { return op.SetOutput(0, op.In(0)); }

absl::Status ImportDropout(OpContext& op) {
  op.Ignore("ratio");
  op.Ignore("seed");
  if (op.version() < 7 && op.Int("is_test", 0) == 0)
    return Unsupported("Dropout in training mode is not supported");
  if (op.Has(2)) {
    const Tensor* training = op.ConstantOf(op.In(2));
    if (training == nullptr || training->size() != 1 || training->DoubleAt(0) != 0) {
      return Unsupported("Dropout in training mode is not supported");
    }
  }
  MENDEL_RETURN_IF_ERROR(op.SetOutput(0, op.In(0)));
  if (!op.Wants(1)) return absl::OkStatus();
  return op.SetOutput(1, op.Filled(Tensor::Scalar(DType::kBool, 1), op.shape(op.In(0))));
}

absl::Status ImportCast(OpContext& op) {
  op.Ignore("round_mode");  // concerns f8e8m0 only, which DTypeFromOnnx refuses
  int32_t to = 0;
  if (op.version() < 6) {  // by name
    onnx::TensorProto::DataType named = onnx::TensorProto::UNDEFINED;
    if (!onnx::TensorProto::DataType_Parse(op.Str("to", ""), &named))
      return InvalidInput("unknown element type '", op.Str("to", ""), "'");
    to = named;
  } else {
    to = static_cast<int32_t>(op.Int("to", 0));
  }
  const auto dtype = DTypeFromOnnx(to);
  if (!dtype.ok()) return dtype.status();
  Formula f(op);
  f.SetOutput(0, Converted(f, op.In(0), *dtype, op.Int("saturate", 1) != 0));
  return f.status();
}

absl::Status ImportCastLike(OpContext& op) {
  op.Ignore("round_mode");
  Formula f(op);
  f.SetOutput(0, Converted(f, op.In(0), op.type(op.In(1)).dtype, op.Int("saturate", 1) != 0));
  return f.status();
}

absl::Status ImportEyeLike(OpContext& op) {
  const TensorType like = op.type(op.In(0));
  if (like.shape.size() != 2) return InvalidInput("expects a matrix");
  DType dtype = like.dtype;
  if (op.HasAttribute("dtype")) {
    MENDEL_ASSIGN_OR_RETURN(dtype, DTypeFromOnnx(static_cast<int32_t>(op.Int("dtype", 0))));
  }
  const int64_t k = op.Int("k", 0);
  for (size_t d = 0; d < like.shape.size(); ++d) {
    op.NoteRelation(Cat("diagonal ", d), std::abs(k), like.shape[d]);
    op.NoteRelation(Cat("behind diagonal ", d), std::abs(k) + 1, like.shape[d]);
  }
  if (NumElements(like.shape) > kMaxRange) return Unsupported("more than 2^22 elements");
  std::vector<double> values(static_cast<size_t>(NumElements(like.shape)), 0.0);
  for (int64_t row = 0; row < like.shape[0]; ++row) {
    const int64_t column = row + k;
    if (column >= 0 && column < like.shape[1])
      values[static_cast<size_t>(row * like.shape[1] + column)] = 1;
  }
  return op.SetOutput(0, op.Literal(Tensor::FromDoubles({dtype, like.shape}, values)));
}

absl::StatusOr<std::vector<ValueId>> ImportEither(OpContext& op, const onnx::GraphProto& branch,
                                                  const char* name) {
  auto outputs = op.Branch(branch);
  if (outputs.ok()) return outputs;
  return absl::Status(
      outputs.status().code(),
      Cat("the condition is known at run time only, and ", name,
          " does not import: ", std::string(outputs.status().message()),
          "; other shapes may suit both branches, or --bind NAME=file.npy fixes the input that "
          "chooses one"));
}

/// Computes both branches and selects: no operator fails, whatever its operands are, so that the
/// branch that is not taken has no effect.
absl::Status SelectBranches(OpContext& op, const onnx::GraphProto& yes,
                            const onnx::GraphProto& no) {
  MENDEL_ASSIGN_OR_RETURN(const auto taken, ImportEither(op, yes, "then_branch"));
  MENDEL_ASSIGN_OR_RETURN(const auto other, ImportEither(op, no, "else_branch"));
  if (taken.size() != other.size()) {
    return InvalidInput("then_branch has ", taken.size(), " outputs, else_branch ", other.size());
  }
  MENDEL_ASSIGN_OR_RETURN(const ValueId condition, op.Reshape(op.In(0), {}));
  std::vector<ValueId> outputs;
  for (size_t k = 0; k < taken.size(); ++k) {
    const TensorType a = op.type(taken[k]), b = op.type(other[k]);
    if (a != b) {
      return Unsupported("the condition is known at run time only, and output ", k, " is ",
                         TypeString(a), " of then_branch, but ", TypeString(b),
                         " of else_branch; --bind NAME=file.npy fixes the input that chooses one");
    }
    MENDEL_ASSIGN_OR_RETURN(outputs.emplace_back(),
                            op.Emit("Where", {condition, taken[k], other[k]}));
  }
  return op.SetOutputs(outputs);
}

absl::Status ImportIf(OpContext& op) {
  const onnx::GraphProto* yes = op.GraphAttribute("then_branch");
  const onnx::GraphProto* no = op.GraphAttribute("else_branch");
  if (NumElements(op.shape(op.In(0))) != 1)
    return InvalidInput("the condition must have one element");
  const Tensor* condition = op.ConstantOf(op.In(0));
  if (condition == nullptr) {
    if (yes == nullptr || no == nullptr) return InvalidInput("lacks a branch");
    return SelectBranches(op, *yes, *no);
  }
  const onnx::GraphProto* branch = condition->DoubleAt(0) != 0 ? yes : no;
  if (branch == nullptr) return InvalidInput("has no such branch");
  return op.SetOutputs(op.Branch(*branch));
}

const OpImportRegistrar registrar({
    {"Cast", 1, 1, &ImportCast},
    {"CastLike", 2, 2, &ImportCastLike},
    {"Constant", 0, 0, &ImportConstant},
    {"ConstantOfShape", 1, 1, &ImportConstantOfShape},
    {"Dropout", 1, 3, &ImportDropout},
    {"EyeLike", 1, 1, &ImportEyeLike},
    {"Identity", 1, 1, &ImportIdentity},
    {"If", 1, 1, &ImportIf},
    {"Range", 3, 3, &ImportRange},
    {"Shape", 1, 1, &ImportShape},
    {"Size", 1, 1, &ImportSize},
});

}  // namespace
}  // namespace mendel::lowerings::constants
