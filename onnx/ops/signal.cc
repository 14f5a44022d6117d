// Windows, the mel matrix, and Fourier transforms as products with constant matrices.

#include <algorithm>
#include <cmath>
#include <numbers>

#include "onnx/formula.h"
#include "onnx/tensor_decode.h"

namespace mendel::lowerings::signal {
namespace {

constexpr int64_t kMaxLength = int64_t{1} << 20;
constexpr int64_t kMaxMatrix = int64_t{1} << 24;
constexpr double kTurn = 2 * std::numbers::pi;

/// a - b cos(turn n / N) + c cos(2 turn n / N) in float32, step by step as the function body says.
absl::Status ImportWindow(OpContext& op) {
  MENDEL_ASSIGN_OR_RETURN(const int64_t size, op.ConstantInt(0, "size"));
  const auto dtype =
      DTypeFromOnnx(static_cast<int32_t>(op.Int("output_datatype", onnx::TensorProto::FLOAT)));
  if (!dtype.ok()) return dtype.status();
  if (size < 0 || size > kMaxLength) return InvalidInput("cannot make a window of ", size);
  const int64_t steps = op.Int("periodic", 1) != 0 ? size : size - 1;
  double a = 0.5, b = 0.5, c = 0;
  if (op.op() == "HammingWindow") a = 25.0 / 46, b = 1 - a;
  if (op.op() == "BlackmanWindow") a = 0.42, c = 0.08;
  std::vector<double> positions;
  for (int64_t n = 0; n < size; ++n) positions.push_back(static_cast<double>(n));
  Formula f(op);
  const ValueId n = f.Literal(Tensor::FromDoubles({DType::kF32, {size}}, positions));
  const ValueId step = f.Div(f.Scalar(n, kTurn), f.Scalar(n, static_cast<double>(steps)));
  const ValueId angle = f.Mul(n, step);
  const ValueId first = f.Mul(f.Scalar(n, b), f.Op("Cos", {angle}));
  const ValueId second = f.Mul(f.Scalar(n, c), f.Op("Cos", {f.Mul(angle, f.Scalar(n, 2))}));
  f.SetOutput(0, f.Cast(f.Add(f.Sub(f.Scalar(n, a), first), second), *dtype));
  return f.status();
}

/// Edges of the triangles, as bins of the spectrogram.
std::vector<int64_t> MelBins(int64_t mels, int64_t length, double rate, double low, double high) {
  const auto to_mel = [](double hertz) { return 2595 * std::log1p(hertz / 700) / std::log(10.0); };
  const double first = to_mel(low);
  const double step = (to_mel(high) - first) / static_cast<double>(mels + 2);
  std::vector<int64_t> bins;
  for (int64_t k = 0; k < mels + 2; ++k) {
    const double mel = static_cast<double>(k) * step + first;
    const double hertz = 700 * std::expm1(mel / 2595 * std::log(10.0));
    bins.push_back(
        static_cast<int64_t>(std::floor(static_cast<double>(length + 1) * hertz / rate)));
  }
  return bins;
}

absl::Status ImportMelWeightMatrix(OpContext& op) {
  std::vector<double> given;
  for (int k = 0; k < 5; ++k) {
    MENDEL_ASSIGN_OR_RETURN(const std::vector<double> value, op.ConstantDoubles(k, "parameters"));
    if (value.size() != 1) return InvalidInput("the parameters must be single numbers");
    given.push_back(value[0]);
  }
  const auto dtype =
      DTypeFromOnnx(static_cast<int32_t>(op.Int("output_datatype", onnx::TensorProto::FLOAT)));
  if (!dtype.ok()) return dtype.status();
  const double nyquist = given[2] / 2;
  if (!(given[0] >= 1 && given[0] <= 1 << 16 && given[1] >= 1 && given[1] <= 1 << 20 &&
        given[2] > 0 && given[3] >= 0 && given[3] <= given[4] && given[4] <= nyquist))
    return InvalidInput("the parameters are out of range");
  const int64_t mels = static_cast<int64_t>(given[0]), length = static_cast<int64_t>(given[1]);
  const int64_t rows = length / 2 + 1;
  if (rows * mels > kMaxMatrix) return Unsupported("the matrix has more than 2^24 elements");
  const std::vector<int64_t> bins = MelBins(mels, length, given[2], given[3], given[4]);
  std::vector<double> values(static_cast<size_t>(rows * mels), 0.0);
  for (int64_t m = 0; m < mels; ++m) {
    const size_t at = static_cast<size_t>(m);
    const int64_t left = bins[at], center = bins[at + 1], right = bins[at + 2];
    for (int64_t row = left; row < std::min(right, rows); ++row) {
      const bool rises = row < center;
      const double distance = static_cast<double>(rises ? row - left : right - row);
      const double width = static_cast<double>(rises ? center - left : right - center);
      values[static_cast<size_t>(row * mels + m)] = distance / width;
    }
    if (center < rows) values[static_cast<size_t>(center * mels + m)] = 1;
  }
  return op.SetOutput(0, op.Literal(Tensor::FromDoubles({*dtype, {rows, mels}}, values)));
}

/// scale cos (or sin) of turn n k / length, for n < rows and k < columns.
ValueId Waves(Formula& f, DType dtype, bool sine, int64_t rows, int64_t columns, int64_t length,
              double scale) {
  std::vector<double> values;
  for (int64_t n = 0; n < rows; ++n) {
    for (int64_t k = 0; k < columns; ++k) {
      const double angle =
          kTurn * static_cast<double>(n * k % length) / static_cast<double>(length);
      values.push_back(scale * (sine ? std::sin(angle) : std::cos(angle)));
    }
  }
  return f.Literal(Tensor::FromDoubles({dtype, {rows, columns}}, values));
}

struct Spectrum {
  int64_t length = 0;  ///< length of the transform
  bool inverse = false;
  bool onesided = false;
};

/// Rows of `real` and, where there is one, `imaginary` [.., n] transformed: [.., k, 1 or 2].
ValueId Transform(Formula& f, ValueId real, std::optional<ValueId> imaginary, const Spectrum& to) {
  const int64_t length = to.length;
  const int64_t rows = f.shape(real).empty() ? 0 : f.shape(real).back();
  const int64_t columns = to.onesided ? length / 2 + 1 : length;
  if (rows * columns > kMaxMatrix) f.Fail(Unsupported("a transform of ", length, " is too long"));
  if (!f.ok()) return real;
  const DType dtype = f.dtype(real);
  const double scale = to.inverse ? 1 / static_cast<double>(length) : 1;
  const double sign = to.inverse ? 1 : -1;
  const ValueId cosine = Waves(f, dtype, false, rows, columns, length, scale);
  const ValueId sine = Waves(f, dtype, true, rows, columns, length, sign * scale);
  ValueId y_real = f.MatMul(real, cosine), y_imaginary = f.MatMul(real, sine);
  if (imaginary.has_value()) {
    y_real = f.Sub(y_real, f.MatMul(*imaginary, sine));
    y_imaginary = f.Add(y_imaginary, f.MatMul(*imaginary, cosine));
  }
  Shape shape = f.shape(y_real);
  shape.push_back(1);
  return f.Concat({f.Reshape(y_real, shape), f.Reshape(y_imaginary, shape)},
                  static_cast<int64_t>(shape.size()) - 1);
}

/// The real signal of a spectrum's first half: [.., n, 1]. The imaginary parts of the first
/// frequency and, of an even length, of the last have no effect.
ValueId RealSignal(Formula& f, ValueId real, ValueId imaginary, int64_t length) {
  const int64_t rows = f.shape(real).empty() ? 0 : f.shape(real).back();
  if (rows * length > kMaxMatrix) f.Fail(Unsupported("a transform of ", length, " is too long"));
  if (!f.ok()) return real;
  std::vector<double> cosine, sine;
  for (int64_t k = 0; k < rows; ++k) {
    const bool single = k == 0 || 2 * k == length;
    const double scale = (single ? 1.0 : 2.0) / static_cast<double>(length);
    for (int64_t n = 0; n < length; ++n) {
      const double angle =
          kTurn * static_cast<double>(n * k % length) / static_cast<double>(length);
      cosine.push_back(scale * std::cos(angle));
      sine.push_back(single ? 0 : scale * std::sin(angle));
    }
  }
  const TensorType type{f.dtype(real), {rows, length}};
  const ValueId y = f.Sub(f.MatMul(real, f.Literal(Tensor::FromDoubles(type, cosine))),
                          f.MatMul(imaginary, f.Literal(Tensor::FromDoubles(type, sine))));
  Shape shape = f.shape(y);
  shape.push_back(1);
  return f.Reshape(y, shape);
}

/// The first `count` of the last dimension, filled with zeros.
ValueId Resized(Formula& f, ValueId x, int64_t count) {
  const int64_t rank = f.rank(x);
  if (!f.ok()) return x;
  const int64_t extent = f.shape(x).back();
  x = f.Slice(x, rank - 1, 0, std::min(extent, count));
  Ints pads(static_cast<size_t>(2 * rank), 0);
  pads.back() = std::max<int64_t>(0, count - extent);
  return f.Pad(x, pads);
}

/// Part `k` of the last dimension, which goes.
ValueId Part(Formula& f, ValueId x, int64_t k) {
  Shape shape = f.shape(x);
  if (!f.ok()) return x;
  shape.pop_back();
  return f.Reshape(f.Slice(x, f.rank(x) - 1, k, k + 1), shape);
}

/// Dimension `axis` of `rank` last, or the way back.
Ints LastAxis(int64_t rank, int64_t axis, bool back) {
  Ints perm;
  for (int64_t d = 0; d < rank; ++d) {
    if (d != axis) perm.push_back(d);
  }
  perm.push_back(axis);
  if (!back) return perm;
  Ints inverse(perm.size());
  for (size_t d = 0; d < perm.size(); ++d)
    inverse[static_cast<size_t>(perm[d])] = static_cast<int64_t>(d);
  return inverse;
}

absl::StatusOr<int64_t> DftAxis(OpContext& op, int64_t rank) {
  int64_t axis = op.Int("axis", 1);
  if (op.version() >= 20) {
    axis = -2;
    if (op.Has(2)) {
      MENDEL_ASSIGN_OR_RETURN(axis, op.ConstantInt(2, "axis"));
    }
  }
  MENDEL_ASSIGN_OR_RETURN(axis, op.Axis(axis, rank));
  if (axis == rank - 1) return InvalidInput("the axis is that of real and imaginary part");
  return axis;
}

absl::Status ImportDft(OpContext& op) {
  const ValueId x = op.In(0);
  const int64_t rank = op.rank(x);
  if (rank < 2 || op.shape(x).back() < 1 || op.shape(x).back() > 2)
    return InvalidInput("expects real or real and imaginary parts along the last dimension, not ",
                        ShapeString(op.shape(x)));
  MENDEL_ASSIGN_OR_RETURN(const int64_t axis, DftAxis(op, rank));
  Spectrum to{0, op.Int("inverse", 0) != 0, op.Int("onesided", 0) != 0};
  const bool complex = op.shape(x).back() == 2;
  const bool to_real = to.inverse && to.onesided;
  const int64_t extent = op.shape(x)[static_cast<size_t>(axis)];
  to.length = to_real ? 2 * (extent - 1) : extent;
  if (op.Has(1)) {
    MENDEL_ASSIGN_OR_RETURN(to.length, op.ConstantInt(1, "length"));
  }
  if (to.length < 1 || to.length > kMaxLength)
    return InvalidInput("cannot transform a length of ", to.length);
  if (to_real && !complex) return InvalidInput("the inverse to a real signal needs both parts");
  if (to.onesided && !to.inverse && complex)
    return InvalidInput("only a real signal has a spectrum of one side");
  Formula f(op);
  const Ints there = LastAxis(rank - 1, axis, false);
  const auto part = [&](int64_t k) {
    return Resized(f, f.Transpose(Part(f, x, k), there), to_real ? to.length / 2 + 1 : to.length);
  };
  const ValueId real = part(0);
  std::optional<ValueId> imaginary;
  if (complex) imaginary = part(1);
  const ValueId y =
      to_real ? RealSignal(f, real, *imaginary, to.length) : Transform(f, real, imaginary, to);
  Ints back = LastAxis(rank - 1, axis, true);
  back.push_back(rank - 1);
  f.SetOutput(0, f.Transpose(y, back));
  return f.status();
}

/// Frames that start every `step` positions, [N, frames, length].
ValueId Frames(Formula& f, ValueId x, int64_t step, int64_t length) {
  const Shape shape = f.shape(x);
  if (!f.ok()) return x;
  const int64_t frames = (shape[1] - length) / step + 1;
  std::vector<int64_t> positions;
  for (int64_t frame = 0; frame < frames; ++frame) {
    for (int64_t k = 0; k < length; ++k) positions.push_back(frame * step + k);
  }
  return f.Op("Gather",
              {x, f.Literal(Tensor::FromInts({DType::kI64, {frames, length}}, positions))},
              {{"axis", int64_t{1}}});
}

/// Inputs: signal [N, length, 1 or 2] or [N, length], step, window, frame length.
absl::Status ImportStft(OpContext& op) {
  const ValueId x = op.In(0);
  const Shape shape = op.shape(x);
  if (shape.size() != 2 && (shape.size() != 3 || shape[2] < 1 || shape[2] > 2))
    return InvalidInput("cannot cut frames of ", ShapeString(shape));
  MENDEL_ASSIGN_OR_RETURN(const int64_t step, op.ConstantInt(1, "step"));
  const bool onesided = op.Int("onesided", 1) != 0;
  const bool complex = shape.size() == 3 && shape[2] == 2;
  int64_t length = op.Has(2) ? NumElements(op.shape(op.In(2))) : shape[1];
  if (op.Has(3)) {
    MENDEL_ASSIGN_OR_RETURN(length, op.ConstantInt(3, "frame length"));
  }
  if (step < 1 || length < 1 || length > shape[1])
    return InvalidInput("cannot cut frames of ", length, " every ", step, " from ", shape[1]);
  if (op.Has(2) && op.shape(op.In(2)) != Shape{length})
    return InvalidInput("the window must have ", length, " elements");
  op.NoteCount("frames", (shape[1] - length) / step + 1);
  if (onesided && complex) return InvalidInput("only a real signal has a spectrum of one side");
  Formula f(op);
  const auto frames = [&](int64_t k) {
    const ValueId cut = Frames(f, shape.size() == 2 ? x : Part(f, x, k), step, length);
    return op.Has(2) ? f.Mul(cut, op.In(2)) : cut;
  };
  const ValueId real = frames(0);
  std::optional<ValueId> imaginary;
  if (complex) imaginary = frames(1);
  f.SetOutput(0, Transform(f, real, imaginary, {length, false, onesided}));
  return f.status();
}

const OpImportRegistrar registrar({
    {"BlackmanWindow", 1, 1, &ImportWindow},
    {"DFT", 1, 3, &ImportDft},
    {"HammingWindow", 1, 1, &ImportWindow},
    {"HannWindow", 1, 1, &ImportWindow},
    {"MelWeightMatrix", 5, 5, &ImportMelWeightMatrix},
    {"STFT", 2, 4, &ImportStft},
});

}  // namespace
}  // namespace mendel::lowerings::signal
