// GridSample and AffineGrid: positions computed from the grid, elements gathered there, weighted.

#include <string>
#include <vector>

#include "onnx/formula.h"

namespace mendel::lowerings::grid_sample {
namespace {

enum class Padding { kZeros, kBorder, kReflection };

/// One element along one dimension that a position reads.
struct GridTap {
  ValueId weight;
  ValueId index;                  ///< inside the dimension
  std::optional<ValueId> inside;  ///< absent: always
};

class Sampler {
 public:
  Sampler(OpContext& op, Padding padding, bool align, int taps)
      : op_(op), f_(op), padding_(padding), align_(align), taps_(taps) {}

  absl::Status Run() {
    const Shape x = f_.shape(op_.In(0)), grid = f_.shape(op_.In(1));
    const size_t rank = x.size() - 2;
    const Shape spatial(x.begin() + 2, x.end());
    Shape out(grid.begin() + 1, grid.end() - 1);
    const int64_t places = NumElements(out);
    const ValueId rows = f_.Reshape(op_.In(1), {grid[0], places, static_cast<int64_t>(rank)});
    std::vector<std::vector<GridTap>> taps;
    for (size_t d = 0; d < rank; ++d) {
      // The grid names the last dimension first.
      const int64_t column = static_cast<int64_t>(rank - 1 - d);
      taps.push_back(Taps(f_.Slice(rows, 2, column, column + 1), spatial[d]));
    }
    const ValueId table =
        f_.Transpose(f_.Reshape(op_.In(0), {x[0], x[1], NumElements(spatial)}), {0, 2, 1});
    const ValueId sum = SumOf(table, taps, RowMajorStrides(spatial));
    out.insert(out.begin(), {x[0], x[1]});
    f_.SetOutput(0, f_.Reshape(f_.Transpose(sum, {0, 2, 1}), out));
    return f_.status();
  }

 private:
  /// Grid numbers in [-1, 1] as positions along a dimension.
  ValueId Position(ValueId number, double extent) {
    const ValueId from_left = f_.Plus(number, 1);
    if (align_) return f_.Times(from_left, (extent - 1) / 2);
    return f_.Times(f_.Plus(f_.Times(from_left, extent), -1), 0.5);
  }

  /// Mirrored at the borders until it is inside them.
  ValueId Reflected(ValueId position, double low, double high) {
    if (high <= low) return f_.Times(position, 0);
    const double period = 2 * (high - low);
    const ValueId distance = f_.Op("Abs", {f_.Plus(position, -low)});
    const ValueId phase =
        f_.Op("Mod", {distance, f_.Scalar(distance, period)}, {{"fmod", int64_t{1}}});
    const ValueId back = f_.Sub(f_.Scalar(phase, period), phase);
    return f_.Plus(f_.Op("Min", {phase, back}), low);
  }

  ValueId Clipped(ValueId x, double high) {
    return f_.Op("Clip", {x}, {{"min", 0.0}, {"max", high}});
  }

  ValueId Padded(ValueId position, double extent) {
    const double low = align_ ? 0 : -0.5, high = align_ ? extent - 1 : extent - 0.5;
    if (padding_ == Padding::kReflection) return Reflected(position, low, high);
    if (padding_ == Padding::kZeros) return position;
    const ValueId outside = f_.Op("Or", {f_.Op("Less", {position, f_.Scalar(position, low)}),
                                         f_.Op("Greater", {position, f_.Scalar(position, high)})});
    return f_.Where(outside, Clipped(position, extent - 1), position);
  }

  /// A polynomial in w, the highest coefficient first.
  ValueId Polynomial(ValueId w, const std::vector<double>& coefficients) {
    ValueId sum = f_.Scalar(w, coefficients[0]);
    for (size_t k = 1; k < coefficients.size(); ++k) sum = f_.Plus(f_.Mul(sum, w), coefficients[k]);
    return sum;
  }

  /// Keys' cubic with a = -0.75 at distance 1 + w, w, 1 - w, 2 - w; w and 1 - w; 1.
  std::vector<ValueId> Weights(ValueId w) {
    if (taps_ == 1) return {f_.Scalar(w, 1)};
    const ValueId rest = f_.Sub(f_.Scalar(w, 1), w);
    if (taps_ == 2) return {rest, w};
    const double a = -0.75;
    const std::vector<double> near = {a + 2, -(a + 3), 0, 1}, far = {a, -5 * a, 8 * a, -4 * a};
    return {Polynomial(f_.Plus(w, 1), far), Polynomial(w, near), Polynomial(rest, near),
            Polynomial(f_.Plus(rest, 1), far)};
  }

  std::vector<GridTap> Taps(ValueId number, int64_t extent) {
    const double size = static_cast<double>(extent);
    ValueId position = Position(number, size);
    if (taps_ == 1) position = f_.Op("Round", {position});
    position = Padded(position, size);
    if (taps_ == 1 && padding_ == Padding::kReflection) position = f_.Op("Floor", {position});
    const ValueId first = f_.Op("Floor", {position});
    const std::vector<ValueId> weights = Weights(f_.Sub(position, first));
    std::vector<GridTap> taps;
    for (int k = 0; k < taps_; ++k) {
      ValueId at = f_.Plus(first, k - (taps_ == 4 ? 1 : 0));
      GridTap tap{weights[static_cast<size_t>(k)], at, std::nullopt};
      if (padding_ == Padding::kZeros) {
        tap.inside = f_.Op("And", {f_.Op("GreaterOrEqual", {at, f_.Scalar(at, 0)}),
                                   f_.Op("Less", {at, f_.Scalar(at, size)})});
      } else if (padding_ == Padding::kReflection) {
        at = Reflected(at, align_ ? 0 : -0.5, align_ ? size - 1 : size - 0.5);
      }
      tap.index = f_.Cast(Clipped(at, size - 1), DType::kI64);
      taps.push_back(tap);
    }
    return taps;
  }

  /// A literal where the grid is constant.
  ValueId Known(ValueId indices) {
    const Tensor* tensor = f_.ok() ? op_.ConstantOf(indices) : nullptr;
    return tensor == nullptr ? indices : f_.Literal(*tensor);
  }

  /// Over all combinations of one tap a dimension, [N, places, C].
  ValueId SumOf(ValueId table, const std::vector<std::vector<GridTap>>& taps,
                const Shape& strides) {
    std::optional<ValueId> sum;
    const Shape counts(taps.size(), taps_);
    Shape choice(taps.size(), 0);
    do {
      std::optional<ValueId> index, weight, inside;
      for (size_t d = 0; d < taps.size(); ++d) {
        const GridTap& tap = taps[d][static_cast<size_t>(choice[d])];
        const ValueId offset = f_.Times(tap.index, static_cast<double>(strides[d]));
        index = index.has_value() ? f_.Add(*index, offset) : offset;
        weight = weight.has_value() ? f_.Mul(*weight, tap.weight) : tap.weight;
        if (!tap.inside.has_value()) continue;
        inside = inside.has_value() ? f_.Op("And", {*inside, *tap.inside}) : *tap.inside;
      }
      ValueId term = f_.Op("GatherND", {table, Known(*index)}, {{"batch_dims", int64_t{1}}});
      if (inside.has_value()) term = f_.Where(*inside, term, f_.Scalar(term, 0));
      if (taps_ > 1) term = f_.Mul(term, f_.Cast(*weight, f_.dtype(term)));
      sum = sum.has_value() ? f_.Add(*sum, term) : term;
    } while (NextIndex(counts, choice));
    return *sum;
  }

  OpContext& op_;
  Formula f_;
  Padding padding_;
  bool align_;
  int taps_;
};

absl::Status ImportGridSample(OpContext& op) {
  const Shape x = op.shape(op.In(0)), grid = op.shape(op.In(1));
  const std::string mode = op.Str("mode", op.version() < 20 ? "bilinear" : "linear");
  const std::string padding = op.Str("padding_mode", "zeros");
  const bool cubic = mode == "cubic" || mode == "bicubic";
  if (!cubic && mode != "linear" && mode != "bilinear" && mode != "nearest")
    return InvalidInput("mode '", mode, "' does not exist");
  if (padding != "zeros" && padding != "border" && padding != "reflection")
    return InvalidInput("padding_mode '", padding, "' does not exist");
  if (x.size() < 3 || grid.size() != x.size() || grid[0] != x[0] ||
      grid.back() != static_cast<int64_t>(x.size()) - 2 || NumElements(x) == 0)
    return InvalidInput("grid ", ShapeString(grid), " does not fit ", ShapeString(x));
  if (x.size() > 5) return Unsupported("grids over more than three dimensions");
  return Sampler(op,
                 padding == "zeros"    ? Padding::kZeros
                 : padding == "border" ? Padding::kBorder
                                       : Padding::kReflection,
                 op.Int("align_corners", 0) != 0, mode == "nearest" ? 1 : (cubic ? 4 : 2))
      .Run();
}

/// The matrices applied to the positions of a regular grid over [-1, 1].
absl::Status ImportAffineGrid(OpContext& op) {
  MENDEL_ASSIGN_OR_RETURN(const Ints size, op.ConstantInts(1, "size"));
  const bool align = op.Int("align_corners", 0) != 0;
  const Shape theta = op.shape(op.In(0));
  if (size.size() < 4 || size.size() > 5 || theta.size() != 3 || theta[0] != size[0] ||
      theta[1] != static_cast<int64_t>(size.size()) - 2 || theta[2] != theta[1] + 1)
    return InvalidInput("matrices ", ShapeString(theta), " do not fit the size");
  const Shape spatial(size.begin() + 2, size.end());
  int64_t places = 1;
  for (int64_t extent : spatial) {
    if (extent < 1 || extent > (1 << 22) || places * extent > (1 << 22))
      return Unsupported("a grid of more than 2^22 positions is not supported");
    places *= extent;
  }
  // Column `place` holds the coordinates, the last dimension first, and 1.
  std::vector<double> values;
  for (size_t row = 0; row <= spatial.size(); ++row) {
    Shape index(spatial.size(), 0);
    do {
      if (row == spatial.size()) {
        values.push_back(1);
        continue;
      }
      const size_t d = spatial.size() - 1 - row;
      const double at = static_cast<double>(index[d]), extent = static_cast<double>(spatial[d]);
      values.push_back(align ? (extent == 1 ? -1 : 2 * at / (extent - 1) - 1)
                             : (2 * at + 1) / extent - 1);
    } while (NextIndex(spatial, index));
  }
  Formula f(op);
  const TensorType type{op.type(op.In(0)).dtype, {theta[2], places}};
  const ValueId grid = f.MatMul(op.In(0), f.Literal(Tensor::FromDoubles(type, values)));
  Shape result = spatial;
  result.insert(result.begin(), size[0]);
  result.push_back(theta[1]);
  f.SetOutput(0, f.Reshape(f.Transpose(grid, {0, 2, 1}), result));
  return f.status();
}

const OpImportRegistrar registrar({
    {"AffineGrid", 2, 2, &ImportAffineGrid},
    {"GridSample", 2, 2, &ImportGridSample},
});

}  // namespace
}  // namespace mendel::lowerings::grid_sample
