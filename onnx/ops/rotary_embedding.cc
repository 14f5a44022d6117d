// RotaryEmbedding, of ONNX (opset 23) and of ONNX Runtime: pairs of columns turned by an angle of
// their position.

#include "onnx/formula.h"

namespace mendel::lowerings::rotary_embedding {
namespace {

struct Rotation {
  ValueId cos, sin;  ///< a row of angles for each position
  std::optional<ValueId> positions = std::nullopt;
  int64_t heads = 0;
  int64_t columns = 0;  ///< columns of a head that turn; 0: all
  bool interleaved = false;
};

/// Rows of the cache for each position, [N or 1, length, 1, columns / 2].
ValueId Angles(Formula& f, const Rotation& rotation, ValueId cache, int64_t length) {
  if (rotation.positions.has_value())
    cache = f.Op("Gather", {cache, *rotation.positions}, {{"axis", int64_t{0}}});
  const Shape shape = f.shape(cache);
  if (shape.size() != 3) {
    f.Fail(InvalidInput("expects angles for each image and position, not ", ShapeString(shape)));
    return cache;
  }
  if (shape[1] != length && shape[1] != 1)
    f.Fail(InvalidInput("has angles for ", shape[1], " positions of ", length));
  return f.Reshape(cache, {shape[0], shape[1], 1, shape[2]});
}

/// `x` [N, length, heads, columns] with its columns turned.
ValueId Rotated(Formula& f, const Rotation& rotation, ValueId x) {
  const Shape shape = f.shape(x);
  const int64_t half = shape[3] / 2;
  const ValueId cos = Angles(f, rotation, rotation.cos, shape[1]);
  const ValueId sin = Angles(f, rotation, rotation.sin, shape[1]);
  const Shape narrow = {shape[0], shape[1], shape[2], half};
  ValueId first, second;
  if (rotation.interleaved) {
    const ValueId pairs = f.Reshape(x, {shape[0], shape[1], shape[2], half, 2});
    first = f.Reshape(f.Slice(pairs, 4, 0, 1), narrow);
    second = f.Reshape(f.Slice(pairs, 4, 1, 2), narrow);
  } else {
    first = f.Slice(x, 3, 0, half);
    second = f.Slice(x, 3, half, shape[3]);
  }
  const ValueId real = f.Sub(f.Mul(cos, first), f.Mul(sin, second));
  const ValueId imaginary = f.Add(f.Mul(sin, first), f.Mul(cos, second));
  if (!rotation.interleaved) return f.Concat({real, imaginary}, 3);
  const Shape column = {shape[0], shape[1], shape[2], half, 1};
  return f.Reshape(f.Concat({f.Reshape(real, column), f.Reshape(imaginary, column)}, 4), shape);
}

absl::Status Emit(OpContext& op, Rotation rotation) {
  Formula f(op);
  ValueId x = op.In(0);
  const Shape given = op.shape(x);
  if (given.size() != 3 && given.size() != 4) return InvalidInput("expects rank 3 or 4");
  for (const ValueId cache : {rotation.cos, rotation.sin}) {
    const size_t rank = op.shape(cache).size();
    if (rank != 2 && rank != 3) return InvalidInput("expects angles of rank 2 or 3, not ", rank);
  }
  if (given.size() == 4) {
    x = f.Transpose(x, {0, 2, 1, 3});
  } else {
    // ONNX Runtime states the heads by the width of a head, which the angles give.
    const int64_t width = 2 * op.shape(rotation.cos).back();
    if (rotation.heads == 0 && width > 0) rotation.heads = given[2] / width;
    if (rotation.heads < 1 || given[2] % rotation.heads != 0)
      return InvalidInput("cannot cut ", given[2], " columns into ", rotation.heads, " heads");
    x = f.Reshape(x, {given[0], given[1], rotation.heads, given[2] / rotation.heads});
  }
  if (!f.ok()) return f.status();
  const int64_t size = f.shape(x).back();
  const int64_t columns = rotation.columns == 0 ? size : rotation.columns;
  if (columns < 2 || columns > size || columns % 2 != 0)
    return InvalidInput("cannot turn ", columns, " of ", size, " columns");
  ValueId y = Rotated(f, rotation, f.Slice(x, 3, 0, columns));
  if (columns < size) y = f.Concat({y, f.Slice(x, 3, columns, size)}, 3);
  f.SetOutput(0, given.size() == 4 ? f.Transpose(y, {0, 2, 1, 3}) : f.Reshape(y, given));
  return f.status();
}

absl::Status ImportRotaryEmbedding(OpContext& op) {
  Rotation rotation{op.In(1), op.In(2)};
  if (op.Has(3)) rotation.positions = op.In(3);
  rotation.heads = op.Int("num_heads", 0);
  rotation.columns = op.Int("rotary_embedding_dim", 0);
  rotation.interleaved = op.Int("interleaved", 0) != 0;
  return Emit(op, rotation);
}

/// ONNX Runtime's has the positions as input 1: of each token, or of the first one.
absl::Status ImportMicrosoft(OpContext& op) {
  op.Ignore("is_packed_batching");
  if (op.Int("is_packed_batching", 0) != 0) return Unsupported("packed batches are not supported");
  if (op.Float("scale", 1) != 1) return Unsupported("a scale is not supported");
  Formula f(op);
  Rotation rotation{op.In(2), op.In(3)};
  ValueId positions = op.In(1);
  const Shape shape = op.shape(op.In(0));
  const int64_t length = shape.size() == 4 ? shape[2] : shape.size() == 3 ? shape[1] : 0;
  if (NumElements(op.shape(positions)) == 1) {
    std::vector<int64_t> steps;
    for (int64_t k = 0; k < length; ++k) steps.push_back(k);
    positions = f.Add(f.Reshape(f.Cast(positions, DType::kI64), {1, 1}),
                      f.Literal(Tensor::FromInts({DType::kI64, {1, length}}, steps)));
  }
  MENDEL_RETURN_IF_ERROR(f.status());
  rotation.positions = positions;
  rotation.heads = op.Int("num_heads", 0);
  rotation.columns = op.Int("rotary_embedding_dim", 0);
  rotation.interleaved = op.Int("interleaved", 0) != 0;
  return Emit(op, rotation);
}

const OpImportRegistrar registrar({
    {"RotaryEmbedding", 3, 4, &ImportRotaryEmbedding},
    {"com.microsoft.RotaryEmbedding", 4, 4, &ImportMicrosoft},
});

}  // namespace
}  // namespace mendel::lowerings::rotary_embedding
