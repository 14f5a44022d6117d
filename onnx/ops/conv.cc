// Conv and ConvTranspose.

#include <algorithm>

#include "onnx/ops/normalized.h"
#include "onnx/ops/windows.h"

namespace mendel::lowerings::conv {
namespace {

Shape Spatial(const Shape& shape) { return Shape(shape.begin() + 2, shape.end()); }

absl::Status CheckRanks(OpContext& op, ValueId x, ValueId w) {
  const int64_t rank = op.rank(x);
  if (rank < 3 || op.rank(w) != rank) {
    return InvalidInput("cannot convolve ", ShapeString(op.shape(x)), " with ",
                        ShapeString(op.shape(w)));
  }
  return absl::OkStatus();
}

absl::Status ImportConv(OpContext& op) {
  return op.SetOutput(
      0, EmitConv(op, op.In(0), op.In(1), op.Has(2) ? std::optional(op.In(2)) : std::nullopt));
}

/// Sets pads and output padding so that the output gets the extents `wanted` (ONNX's formula for
/// output_shape; a shortage that pads cannot express becomes output padding).
void FitOutput(const Shape& spatial, const Ints& wanted, WindowAttributes& windows,
               Ints& output_padding) {
  const size_t rank = spatial.size();
  for (size_t d = 0; d < rank; ++d) {
    const int64_t reach = (windows.kernel[d] - 1) * windows.dilations[d] + 1;
    const int64_t total =
        windows.strides[d] * (spatial[d] - 1) + output_padding[d] + reach - wanted[d];
    if (total < 0) output_padding[d] -= total;
    const int64_t pad = std::max<int64_t>(0, total);
    windows.pads[d] = windows.auto_pad == "SAME_UPPER" ? pad / 2 : pad - pad / 2;
    windows.pads[rank + d] = pad - windows.pads[d];
  }
}

absl::Status ImportConvTranspose(OpContext& op) {
  MENDEL_RETURN_IF_ERROR(CheckRanks(op, op.In(0), op.In(1)));
  const Shape spatial = Spatial(op.shape(op.In(0)));
  MENDEL_ASSIGN_OR_RETURN(WindowAttributes windows,
                          ReadWindows(op, spatial, Spatial(op.shape(op.In(1)))));
  Ints output_padding = op.IntList("output_padding").value_or(Ints(spatial.size(), 0));
  if (output_padding.size() != spatial.size())
    return InvalidInput("output_padding has ", output_padding.size(), " entries");
  for (int64_t padding : output_padding) {
    if (padding < 0 || padding >= (int64_t{1} << 31))
      return InvalidInput("output_padding holds ", padding, ", outside its range");
  }
  std::optional<Ints> wanted = op.IntList("output_shape");
  const bool same = windows.auto_pad == "SAME_UPPER" || windows.auto_pad == "SAME_LOWER";
  if (!wanted.has_value() && same) {
    wanted.emplace();
    for (size_t d = 0; d < spatial.size(); ++d) wanted->push_back(spatial[d] * windows.strides[d]);
  }
  if (wanted.has_value()) {
    // Some exporters write the whole shape, not only the spatial part.
    if (wanted->size() == spatial.size() + 2) wanted->erase(wanted->begin(), wanted->begin() + 2);
    if (wanted->size() != spatial.size())
      return InvalidInput("output_shape has ", wanted->size(), " entries");
    for (int64_t extent : *wanted) {
      if (extent < 1 || extent >= (int64_t{1} << 31))
        return InvalidInput("output_shape holds ", extent, ", outside its range");
    }
    FitOutput(spatial, *wanted, windows, output_padding);
  } else if (windows.auto_pad == "VALID") {
    windows.pads.assign(2 * spatial.size(), 0);
  } else if (windows.auto_pad != "NOTSET") {
    return InvalidInput("auto_pad is '", windows.auto_pad, "', which does not exist");
  }
  MENDEL_ASSIGN_OR_RETURN(std::vector<ValueId> inputs, op.AllInputs());
  return op.SetOutput(0, op.Emit("ConvTranspose", std::move(inputs),
                                 {{"strides", windows.strides},
                                  {"dilations", windows.dilations},
                                  {"pads", windows.pads},
                                  {"output_padding", output_padding},
                                  {"group", op.Int("group", 1)}}));
}

const OpImportRegistrar registrar({
    {"Conv", 2, 3, &ImportConv},
    {"ConvTranspose", 2, 3, &ImportConvTranspose},
});

}  // namespace
}  // namespace mendel::lowerings::conv

namespace mendel {

absl::StatusOr<ValueId> EmitConv(OpContext& op, ValueId x, ValueId w, std::optional<ValueId> bias) {
  MENDEL_RETURN_IF_ERROR(lowerings::conv::CheckRanks(op, x, w));
  const Shape spatial = lowerings::conv::Spatial(op.shape(x));
  MENDEL_ASSIGN_OR_RETURN(WindowAttributes windows,
                          ReadWindows(op, spatial, lowerings::conv::Spatial(op.shape(w))));
  MENDEL_RETURN_IF_ERROR(ResolveAutoPad(spatial, windows));
  std::vector<ValueId> inputs = {x, w};
  if (bias.has_value()) inputs.push_back(*bias);
  return op.Emit("Conv", std::move(inputs),
                 {{"strides", windows.strides},
                  {"dilations", windows.dilations},
                  {"pads", windows.pads},
                  {"group", op.Int("group", 1)}});
}

}  // namespace mendel
