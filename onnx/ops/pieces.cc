// Concat, Split, Slice, Pad: positions become non-negative attributes over all dimensions.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "graph/integers.h"
#include "onnx/op_context.h"
#include "onnx/tensor_decode.h"

namespace mendel {
namespace {

absl::Status ImportConcat(OpContext& op) {
  MENDEL_ASSIGN_OR_RETURN(std::vector<ValueId> inputs, op.AllInputs());
  MENDEL_ASSIGN_OR_RETURN(const int64_t axis, op.Axis(op.Int("axis", 1), op.rank(inputs[0])));
  if (inputs.size() == 1) return op.SetOutput(0, inputs[0]);
  return op.SetOutput(0, op.Emit("Concat", std::move(inputs), {{"axis", axis}}));
}

absl::Status ImportSplit(OpContext& op) {
  MENDEL_ASSIGN_OR_RETURN(const int64_t axis, op.Axis(op.Int("axis", 0), op.rank(op.In(0))));
  MENDEL_ASSIGN_OR_RETURN(std::optional<Ints> sizes, op.AttributeOrInput("split", 1));
  const int64_t extent = op.shape(op.In(0))[static_cast<size_t>(axis)];
  const int64_t parts = op.Int("num_outputs", op.node().output_size());
  if (!sizes.has_value()) {
    if (parts < 1 || parts != op.node().output_size())
      return InvalidInput("cannot split into ", parts, " parts");
    if (extent % parts != 0 && op.version() < 18)
      return InvalidInput("cannot split ", extent, " into ", parts, " equal parts");
    const int64_t size = (extent + parts - 1) / parts;
    sizes.emplace();
    for (int64_t k = 0; k < parts; ++k)
      sizes->push_back(std::clamp<int64_t>(extent - k * size, 0, size));
  }
  int64_t sum = 0;
  for (int64_t size : *sizes) {
    if (size < 0 || size > extent - sum) return InvalidInput("the parts do not add up to ", extent);
    sum += size;
  }
  if (sum != extent || static_cast<int>(sizes->size()) < op.node().output_size()) {
    return InvalidInput("the parts do not add up to ", extent);
  }
  if (sizes->size() == 1) return op.SetOutput(0, op.In(0));
  return op.SetOutputs(op.EmitAll("Split", {op.In(0)}, {{"axis", axis}, {"sizes", *sizes}}));
}

struct Ranges {
  Ints starts;
  Ints ends;
  Ints steps;
};

/// One dimension's range with ONNX's clamping; empty ranges become start = end.
absl::Status AddRange(int64_t extent, int64_t start, int64_t end, int64_t step, size_t axis,
                      Ranges& ranges) {
  if (step == 0) return InvalidInput("a step is zero");
  step = std::clamp<int64_t>(step, -kMaxElements, kMaxElements);
  const auto from_end = [extent](int64_t at) { return at < 0 ? at + extent : at; };
  if (step > 0) {
    start = std::clamp<int64_t>(from_end(start), 0, extent);
    end = std::max(start, std::clamp<int64_t>(from_end(end), 0, extent));
  } else {
    // A start before the axis is its first position; numpy takes nothing there.
    start = extent == 0 ? -1 : std::clamp<int64_t>(from_end(start), 0, extent - 1);
    end = std::min(start, std::clamp<int64_t>(from_end(end), -1, extent - 1));
  }
  if (start == end) start = end = 0, step = 1;
  ranges.starts[axis] = start;
  ranges.ends[axis] = end;
  ranges.steps[axis] = step;
  return absl::OkStatus();
}

absl::Status ImportSlice(OpContext& op) {
  const Shape& shape = op.shape(op.In(0));
  MENDEL_ASSIGN_OR_RETURN(const std::optional<Ints> starts, op.AttributeOrInput("starts", 1));
  MENDEL_ASSIGN_OR_RETURN(const std::optional<Ints> ends, op.AttributeOrInput("ends", 2));
  MENDEL_ASSIGN_OR_RETURN(std::optional<Ints> axes, op.AttributeOrInput("axes", 3));
  MENDEL_ASSIGN_OR_RETURN(const std::optional<Ints> steps, op.AttributeOrInput("steps", 4));
  if (!starts.has_value() || !ends.has_value()) return InvalidInput("has no starts or ends");
  const size_t count = starts->size();
  if (!axes.has_value()) {
    axes.emplace();
    for (size_t k = 0; k < count; ++k) axes->push_back(static_cast<int64_t>(k));
  }
  if (ends->size() != count || axes->size() != count ||
      (steps.has_value() && steps->size() != count)) {
    return InvalidInput("starts, ends, axes and steps differ in length");
  }
  Ranges ranges{Ints(shape.size(), 0), shape, Ints(shape.size(), 1)};
  for (size_t k = 0; k < count; ++k) {
    MENDEL_ASSIGN_OR_RETURN(const int64_t axis,
                            op.Axis((*axes)[k], static_cast<int64_t>(shape.size())));
    const size_t d = static_cast<size_t>(axis);
    constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
    for (const int64_t bound : {(*starts)[k], (*ends)[k]})
      op.NoteRelation(Cat("bound of axis ", axis), std::abs(std::max(bound, kLowest + 1)),
                      shape[d]);
    if (steps.has_value())
      op.NoteRelation(Cat("step of axis ", axis), std::abs(std::max((*steps)[k], kLowest + 1)),
                      shape[d]);
    MENDEL_RETURN_IF_ERROR(AddRange(shape[d], (*starts)[k], (*ends)[k],
                                    steps.has_value() ? (*steps)[k] : 1, d, ranges));
  }
  if (ranges.starts == Ints(shape.size(), 0) && ranges.ends == shape &&
      ranges.steps == Ints(shape.size(), 1)) {
    return op.SetOutput(0, op.In(0));
  }
  return op.SetOutput(
      0, op.Emit("Slice", {op.In(0)},
                 {{"starts", ranges.starts}, {"ends", ranges.ends}, {"steps", ranges.steps}}));
}

/// Pads of all dimensions, begins first, from `given` for `axes`.
absl::StatusOr<Ints> FullPads(OpContext& op, const Ints& given, const Ints& axes) {
  const size_t rank = op.shape(op.In(0)).size();
  if (given.size() != 2 * axes.size())
    return InvalidInput("has ", given.size(), " pads for ", axes.size(), " dimensions");
  Ints pads(2 * rank, 0);
  for (size_t k = 0; k < axes.size(); ++k) {
    MENDEL_ASSIGN_OR_RETURN(const int64_t axis, op.Axis(axes[k], static_cast<int64_t>(rank)));
    for (size_t side = 0; side < 2; ++side) {
      const int64_t pad = given[side * axes.size() + k];
      if (pad > kMaxElements || pad < -kMaxElements) return InvalidInput("cannot pad by ", pad);
      pads[side * rank + static_cast<size_t>(axis)] = pad;
    }
  }
  return pads;
}

/// The padded dimensions: all, or those of input 3.
absl::StatusOr<Ints> PaddedAxes(OpContext& op) {
  if (op.Has(3)) return op.ConstantInts(3, "axes");
  Ints axes;
  for (int64_t d = 0; d < op.rank(op.In(0)); ++d) axes.push_back(d);
  return axes;
}

/// Negative pads cut, in every mode before the others add: they become a Slice, and zero.
absl::StatusOr<ValueId> CutNegativePads(OpContext& op, ValueId x, Ints& pads) {
  const Shape shape = op.shape(x);
  const size_t rank = shape.size();
  Ints starts(rank, 0), ends = shape;
  for (size_t d = 0; d < rank; ++d) {
    starts[d] = std::max<int64_t>(0, -pads[d]);
    ends[d] = shape[d] - std::max<int64_t>(0, -pads[rank + d]);
    if (starts[d] > ends[d]) return InvalidInput("negative pads exceed dimension ", d);
    pads[d] = std::max<int64_t>(0, pads[d]);
    pads[rank + d] = std::max<int64_t>(0, pads[rank + d]);
  }
  if (std::all_of(starts.begin(), starts.end(), [](int64_t start) { return start == 0; }) &&
      ends == shape)
    return x;
  return op.Emit("Slice", {x}, {{"starts", starts}, {"ends", ends}, {"steps", Ints(rank, 1)}});
}

/// A constant around each dimension, of any value: Pad takes what a double holds.
absl::StatusOr<ValueId> JoinPads(OpContext& op, ValueId x, const Ints& pads, Tensor value) {
  const size_t rank = op.shape(x).size();
  for (size_t d = 0; d < rank; ++d) {
    std::vector<ValueId> pieces = {x};
    for (const size_t side : {0, 1}) {
      Shape shape = op.shape(x);
      shape[d] = pads[side * rank + d];
      if (shape[d] == 0) continue;
      MENDEL_ASSIGN_OR_RETURN(const ValueId piece, op.Filled(value, std::move(shape)));
      pieces.insert(side == 0 ? pieces.begin() : pieces.end(), piece);
    }
    if (pieces.size() == 1) continue;
    MENDEL_ASSIGN_OR_RETURN(
        x, op.Emit("Concat", std::move(pieces), {{"axis", static_cast<int64_t>(d)}}));
  }
  return x;
}

absl::Status ImportPad(OpContext& op) {
  MENDEL_ASSIGN_OR_RETURN(const std::optional<Ints> given,
                          op.AttributeOrInput(op.version() < 2 ? "paddings" : "pads", 1));
  if (!given.has_value()) return InvalidInput("has no pads");
  MENDEL_ASSIGN_OR_RETURN(const Ints axes, PaddedAxes(op));
  MENDEL_ASSIGN_OR_RETURN(Ints pads, FullPads(op, *given, axes));
  const std::string mode = op.Str("mode", "constant");
  double value = op.Float("value", 0);
  if (op.Has(2)) {
    MENDEL_ASSIGN_OR_RETURN(const std::vector<double> values,
                            op.ConstantDoubles(2, "padding value"));
    if (values.size() != 1) return InvalidInput("the padding value must be one element");
    value = values[0];
  }
  MENDEL_ASSIGN_OR_RETURN(const ValueId x, CutNegativePads(op, op.In(0), pads));
  if (std::all_of(pads.begin(), pads.end(), [](int64_t pad) { return pad == 0; }))
    return op.SetOutput(0, x);
  if (const Tensor* fill = op.Has(2) ? op.ConstantOf(op.In(2)) : nullptr;
      mode == "constant" && fill != nullptr && IsIntegral(fill->dtype()) &&
      !IsExactAsDouble(fill->IntAt(0)))
    return op.SetOutput(0, JoinPads(op, x, pads, *fill));
  return op.SetOutput(0, op.Emit("Pad", {x}, {{"pads", pads}, {"mode", mode}, {"value", value}}));
}

const OpImportRegistrar registrar({
    {"Concat", 1, kVariadic, &ImportConcat},
    {"Pad", 1, 4, &ImportPad},
    {"Slice", 1, 5, &ImportSlice},
    {"Split", 1, 2, &ImportSplit},
});

}  // namespace
}  // namespace mendel
