// Reshape and its relatives, Transpose, Expand, Tile.

#include <algorithm>
#include <cmath>

#include "onnx/op_context.h"
#include "onnx/tensor_decode.h"

namespace mendel::lowerings::views {
namespace {

absl::Status ImportReshape(OpContext& op) {
  MENDEL_ASSIGN_OR_RETURN(const std::optional<Ints> given, op.AttributeOrInput("shape", 1));
  if (!given.has_value()) return InvalidInput("has no shape");
  const Shape& from = op.shape(op.In(0));
  Shape shape = *given;
  const bool allow_zero = op.Int("allowzero", 0) != 0;
  int64_t unknown = -1;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0 && !allow_zero) {
      if (d >= from.size())
        return InvalidInput("extent 0 of the new shape copies dimension ", d,
                            ", which the input lacks");
      shape[d] = from[d];
    } else if (shape[d] == -1) {
      if (unknown >= 0) return InvalidInput("the new shape leaves two extents open");
      unknown = static_cast<int64_t>(d);
    }
  }
  if (unknown >= 0) {
    shape[static_cast<size_t>(unknown)] = 1;
    MENDEL_RETURN_IF_ERROR(CheckShape(shape));
    const int64_t rest = NumElements(shape);
    const int64_t count = NumElements(from);
    if (rest == 0 || count % rest != 0)
      return InvalidInput("cannot reshape ", ShapeString(from), " to ", ShapeString(*given));
    shape[static_cast<size_t>(unknown)] = count / rest;
  }
  return op.SetOutput(0, op.Reshape(op.In(0), shape));
}

absl::Status ImportFlatten(OpContext& op) {
  const Shape& from = op.shape(op.In(0));
  const int64_t rank = op.rank(op.In(0));
  int64_t axis = op.Int("axis", 1);
  if (axis < -rank || axis > rank)
    return InvalidInput("axis ", axis, " is outside the rank ", rank);
  if (axis < 0) axis += rank;
  const Shape outer(from.begin(), from.begin() + axis);
  const Shape inner(from.begin() + axis, from.end());
  return op.SetOutput(0, op.Reshape(op.In(0), {NumElements(outer), NumElements(inner)}));
}

absl::Status ImportSqueeze(OpContext& op) {
  const Shape& from = op.shape(op.In(0));
  MENDEL_ASSIGN_OR_RETURN(const std::optional<Ints> axes, op.AttributeOrInput("axes", 1));
  std::vector<bool> dropped(from.size(), false);
  if (!axes.has_value()) {
    for (size_t d = 0; d < from.size(); ++d) dropped[d] = from[d] == 1;
  } else {
    for (int64_t given : *axes) {
      MENDEL_ASSIGN_OR_RETURN(const int64_t axis, op.Axis(given, op.rank(op.In(0))));
      if (from[static_cast<size_t>(axis)] != 1)
        return InvalidInput("cannot squeeze dimension ", axis, " of ", ShapeString(from));
      dropped[static_cast<size_t>(axis)] = true;
    }
  }
  Shape shape;
  for (size_t d = 0; d < from.size(); ++d) {
    if (!dropped[d]) shape.push_back(from[d]);
  }
  return op.SetOutput(0, op.Reshape(op.In(0), shape));
}

absl::Status ImportUnsqueeze(OpContext& op) {
  MENDEL_ASSIGN_OR_RETURN(const std::optional<Ints> axes, op.AttributeOrInput("axes", 1));
  if (!axes.has_value()) return InvalidInput("has no axes");
  const Shape& from = op.shape(op.In(0));
  const int64_t rank = static_cast<int64_t>(from.size() + axes->size());
  if (rank > kMaxRank) return Unsupported("rank ", rank, " exceeds the limit of ", kMaxRank);
  std::vector<bool> added(static_cast<size_t>(rank), false);
  for (int64_t given : *axes) {
    MENDEL_ASSIGN_OR_RETURN(const int64_t axis, op.Axis(given, rank));
    if (added[static_cast<size_t>(axis)]) return InvalidInput("axis ", axis, " is given twice");
    added[static_cast<size_t>(axis)] = true;
  }
  Shape shape;
  size_t next = 0;
  for (bool one : added) shape.push_back(one ? 1 : from[next++]);
  return op.SetOutput(0, op.Reshape(op.In(0), shape));
}

absl::Status ImportTranspose(OpContext& op) {
  Ints reversed;
  for (int64_t d = op.rank(op.In(0)); d-- > 0;) reversed.push_back(d);
  return op.SetOutput(0, op.Transpose(op.In(0), op.IntList("perm").value_or(reversed)));
}

absl::Status ImportExpand(OpContext& op) {
  MENDEL_ASSIGN_OR_RETURN(const Ints wanted, op.ConstantInts(1, "shape"));
  MENDEL_RETURN_IF_ERROR(CheckShape(wanted));
  const std::optional<Shape> shape = BroadcastShapes(op.shape(op.In(0)), wanted);
  if (!shape.has_value()) {
    return InvalidInput("cannot expand ", ShapeString(op.shape(op.In(0))), " to ",
                        ShapeString(wanted));
  }
  if (*shape == op.shape(op.In(0))) return op.SetOutput(0, op.In(0));
  return op.SetOutput(0, op.Emit("Expand", {op.In(0)}, {{"shape", *shape}}));
}

/// Repetitions of each dimension; opset 1 names one dimension by inputs.
absl::StatusOr<Ints> Repeats(OpContext& op) {
  if (op.version() >= 6) {
    if (op.Has(2)) return InvalidInput("has an input too many");
    return op.ConstantInts(1, "repeats");
  }
  MENDEL_ASSIGN_OR_RETURN(const std::vector<double> tiles, op.ConstantDoubles(1, "tiles"));
  MENDEL_ASSIGN_OR_RETURN(const std::vector<double> given, op.ConstantDoubles(2, "axis"));
  if (tiles.size() != 1 || given.size() != 1) return InvalidInput("tiles and axis must be numbers");
  Ints repeats(op.shape(op.In(0)).size(), 1);
  if (!(std::abs(given[0]) < 1e9 && std::abs(tiles[0]) < 1e15))
    return InvalidInput("cannot repeat ", tiles[0], " times");
  MENDEL_ASSIGN_OR_RETURN(const int64_t axis,
                          op.Axis(static_cast<int64_t>(given[0]), op.rank(op.In(0))));
  repeats[static_cast<size_t>(axis)] = static_cast<int64_t>(tiles[0]);
  return repeats;
}

absl::Status ImportTile(OpContext& op) {
  MENDEL_ASSIGN_OR_RETURN(const Ints repeats, Repeats(op));
  const Shape& from = op.shape(op.In(0));
  if (repeats.size() != from.size())
    return InvalidInput("has ", repeats.size(), " repeats for rank ", from.size());
  Shape to = from;
  for (size_t d = 0; d < from.size(); ++d) {
    if (repeats[d] < 0 || repeats[d] > kMaxElements)
      return InvalidInput("cannot repeat ", repeats[d], " times");
    if (from[d] > 0 && repeats[d] > kMaxElements / from[d])
      return InvalidInput("the result has more than 2^40 elements");
    to[d] = from[d] * repeats[d];
  }
  MENDEL_RETURN_IF_ERROR(CheckShape(to));
  if (to == from) return op.SetOutput(0, op.In(0));
  return op.SetOutput(0, op.Emit("Tile", {op.In(0)}, {{"repeats", repeats}}));
}

const OpImportRegistrar registrar({
    {"Expand", 2, 2, &ImportExpand},
    {"Flatten", 1, 1, &ImportFlatten},
    {"Reshape", 1, 2, &ImportReshape},
    {"Squeeze", 1, 2, &ImportSqueeze},
    {"Tile", 2, 3, &ImportTile},
    {"Transpose", 1, 1, &ImportTranspose},
    {"Unsqueeze", 1, 2, &ImportUnsqueeze},
});

}  // namespace
}  // namespace mendel::lowerings::views
