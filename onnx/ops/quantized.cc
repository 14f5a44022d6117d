// Operators on quantized tensors by their exact integer meaning: differences from the zero points,
// products and sums in 32 bits, then scales.

#include "onnx/ops/quantized.h"

#include <algorithm>
#include <cmath>

#include "onnx/ops/normalized.h"

namespace mendel::lowerings::quantized {
namespace {

/// x - zero point in 32 bits.
ValueId Centered(Formula& f, ValueId x, std::optional<ValueId> zero) {
  x = f.Cast(x, DType::kI32);
  return zero.has_value() ? f.Sub(x, f.Cast(*zero, DType::kI32)) : x;
}

std::optional<ValueId> Optional(OpContext& op, int k) {
  return op.Has(k) ? std::optional(op.In(k)) : std::nullopt;
}

/// A parameter of the rows of the left operand: one, or one a row.
ValueId OfRows(Formula& f, ValueId value) {
  const Shape shape = f.shape(value);
  if (NumElements(shape) == 1) return f.Reshape(value, {});
  return shape.size() == 1 ? f.Reshape(value, {shape[0], 1}) : value;
}

ValueId OfColumns(Formula& f, ValueId value) {
  return NumElements(f.shape(value)) == 1 ? f.Reshape(value, {}) : value;
}

/// The products of two integer matrices, NumPy's matmul.
ValueId Product(OpContext& op, Formula& f, int a, int a_zero, int b, int b_zero) {
  std::optional<ValueId> left_zero = Optional(op, a_zero), right_zero = Optional(op, b_zero);
  if (left_zero.has_value()) left_zero = OfRows(f, *left_zero);
  if (right_zero.has_value()) right_zero = OfColumns(f, *right_zero);
  ValueId left = Centered(f, op.In(a), left_zero);
  ValueId right = Centered(f, op.In(b), right_zero);
  const bool row = f.rank(left) == 1, column = f.rank(right) == 1;
  if (row) left = f.Reshape(left, {1, f.shape(left)[0]});
  if (column) right = f.Reshape(right, {f.shape(right)[0], 1});
  const ValueId product = f.MatMul(left, right);
  Shape shape = f.shape(product);
  if (!f.ok()) return product;
  if (column) shape.pop_back();
  if (row) shape.erase(shape.end() - (column ? 1 : 2));
  return f.Reshape(product, shape);
}

absl::Status ImportMatMulInteger(OpContext& op) {
  Formula f(op);
  f.SetOutput(0, Product(op, f, 0, 2, 1, 3));
  return f.status();
}

/// Inputs a, scale, zero, b, scale, zero, scale of y, zero of y.
absl::Status ImportQLinearMatMul(OpContext& op) {
  Formula f(op);
  const ValueId product = Product(op, f, 0, 2, 3, 5);
  const DType scale = op.type(op.In(1)).dtype;
  const ValueId factor =
      f.Div(f.Mul(OfRows(f, op.In(1)), OfColumns(f, op.In(4))), OfRows(f, f.Cast(op.In(6), scale)));
  const ValueId y = f.Mul(f.Cast(product, scale), factor);
  f.SetOutput(0, Quantized(f, y, OfRows(f, op.In(7)), op.type(op.In(7)).dtype));
  return f.status();
}

/// A parameter of each output channel, against weights [O, ..] or results [N, O, ..].
ValueId OfChannels(Formula& f, ValueId value, size_t rank, size_t axis) {
  const int64_t count = NumElements(f.shape(value));
  if (count == 1) return f.Reshape(value, {});
  Shape shape(rank, 1);
  shape[axis] = count;
  return f.Reshape(value, shape);
}

constexpr double kLargestCode = 255;  // less a zero point, in magnitude

/// No sum of an output channel's weights, less `zero`, is larger in magnitude: of the stored ones,
/// or of whatever 8 bits hold.
double LargestWeights(OpContext& op, ValueId w, std::optional<ValueId> zero) {
  const Shape& shape = op.shape(w);
  const int64_t channels = std::max<int64_t>(1, shape[0]), depth = NumElements(shape) / channels;
  const Tensor* const weights = op.ConstantOf(w);
  const Tensor* const zeros = zero.has_value() ? op.ConstantOf(*zero) : nullptr;
  if (weights == nullptr || (zero.has_value() && zeros == nullptr))
    return static_cast<double>(depth) * kLargestCode;
  double largest = 0;
  for (int64_t c = 0; c < channels; ++c) {
    const double origin = zeros == nullptr ? 0 : zeros->DoubleAt(c < zeros->size() ? c : 0);
    double sum = 0;
    for (int64_t k = 0; k < depth; ++k) sum += std::abs(weights->DoubleAt(c * depth + k) - origin);
    largest = std::max(largest, sum);
  }
  return largest;
}

/// The convolution of integers, exact: every partial sum is a whole number that the float type
/// holds. `largest`: that of sums of weights.
ValueId IntegerConv(OpContext& op, Formula& f, ValueId x, ValueId w, double largest) {
  const DType dtype = largest * kLargestCode <= 0x1p24 ? DType::kF32 : DType::kF64;
  const auto y = EmitConv(op, f.Cast(x, dtype), f.Cast(w, dtype), std::nullopt);
  f.Fail(y.status());
  // A kernel that is not exact (Winograd's) is off by less than a half.
  return f.ok() ? f.Cast(f.Op("Round", {*y}), DType::kI32) : x;
}

ValueId CenteredConv(OpContext& op, Formula& f, int x, int x_zero, int w, int w_zero) {
  std::optional<ValueId> data_zero = Optional(op, x_zero), weight_zero = Optional(op, w_zero);
  const size_t rank = op.shape(op.In(w)).size();
  if (rank < 3) {
    f.Fail(InvalidInput("weights have ", rank, " dimensions, and a convolution needs 3 or more"));
    return op.In(x);
  }
  const double largest = LargestWeights(op, op.In(w), weight_zero);
  if (data_zero.has_value()) data_zero = OfChannels(f, *data_zero, rank, 0);
  if (weight_zero.has_value()) weight_zero = OfChannels(f, *weight_zero, rank, 0);
  return IntegerConv(op, f, Centered(f, op.In(x), data_zero), Centered(f, op.In(w), weight_zero),
                     largest);
}

absl::Status ImportConvInteger(OpContext& op) {
  Formula f(op);
  f.SetOutput(0, CenteredConv(op, f, 0, 2, 1, 3));
  return f.status();
}

/// Inputs x, scale, zero, w, scale, zero, scale of y, zero of y, bias in units of the product.
absl::Status ImportQLinearConv(OpContext& op) {
  Formula f(op);
  ValueId y = CenteredConv(op, f, 0, 2, 3, 5);
  if (!f.ok()) return f.status();
  const size_t rank = op.shape(op.In(3)).size();
  if (op.Has(8)) y = f.Add(y, OfChannels(f, op.In(8), rank, 1));
  const ValueId factor = f.Div(f.Mul(f.Reshape(op.In(1), {}), OfChannels(f, op.In(4), rank, 1)),
                               f.Reshape(op.In(6), {}));
  const ValueId real = f.Mul(f.Cast(y, DType::kF32), factor);
  f.SetOutput(0, Quantized(f, real, f.Reshape(op.In(7), {}), op.type(op.In(7)).dtype));
  return f.status();
}

const OpImportRegistrar registrar({
    {"ConvInteger", 2, 4, &ImportConvInteger},
    {"MatMulInteger", 2, 4, &ImportMatMulInteger},
    {"QLinearConv", 8, 9, &ImportQLinearConv},
    {"QLinearMatMul", 8, 8, &ImportQLinearMatMul},
});

}  // namespace
}  // namespace mendel::lowerings::quantized
