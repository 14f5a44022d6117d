#include "onnx/ops/windows.h"

#include <algorithm>

namespace mendel {
namespace {

absl::Status CheckList(std::string_view name, const Ints& values, size_t count, int64_t least) {
  if (values.size() != count)
    return InvalidInput(name, " has ", values.size(), " entries, not ", count);
  for (int64_t value : values) {
    if (value < least || value >= (int64_t{1} << 31))
      return InvalidInput(name, " holds ", value, ", outside its range");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<WindowAttributes> ReadWindows(OpContext& op, const Shape& spatial,
                                             const Shape& kernel) {
  WindowAttributes windows;
  const size_t rank = spatial.size();
  windows.kernel = op.IntList("kernel_shape").value_or(kernel);
  if (!kernel.empty() && windows.kernel != kernel) {
    return InvalidInput("kernel_shape is ", ShapeString(windows.kernel), ", the weight has ",
                        ShapeString(kernel));
  }
  windows.strides = op.IntList("strides").value_or(Ints(rank, 1));
  windows.dilations = op.IntList("dilations").value_or(Ints(rank, 1));
  windows.pads = op.IntList("pads").value_or(Ints(2 * rank, 0));
  windows.auto_pad = op.Str("auto_pad", "NOTSET");
  MENDEL_RETURN_IF_ERROR(CheckList("kernel_shape", windows.kernel, rank, 1));
  MENDEL_RETURN_IF_ERROR(CheckList("strides", windows.strides, rank, 1));
  MENDEL_RETURN_IF_ERROR(CheckList("dilations", windows.dilations, rank, 1));
  MENDEL_RETURN_IF_ERROR(CheckList("pads", windows.pads, 2 * rank, 0));
  return windows;
}

absl::Status ResolveAutoPad(const Shape& spatial, WindowAttributes& windows) {
  if (windows.auto_pad == "NOTSET") return absl::OkStatus();
  const size_t rank = spatial.size();
  windows.pads.assign(2 * rank, 0);
  if (windows.auto_pad == "VALID") return absl::OkStatus();
  if (windows.auto_pad != "SAME_UPPER" && windows.auto_pad != "SAME_LOWER") {
    return InvalidInput("auto_pad is '", windows.auto_pad, "', which does not exist");
  }
  for (size_t d = 0; d < rank; ++d) {
    const int64_t outputs = (spatial[d] + windows.strides[d] - 1) / windows.strides[d];
    const int64_t reach = (windows.kernel[d] - 1) * windows.dilations[d] + 1;
    const int64_t total =
        std::max<int64_t>(0, (outputs - 1) * windows.strides[d] + reach - spatial[d]);
    const int64_t smaller = total / 2;
    windows.pads[d] = windows.auto_pad == "SAME_UPPER" ? smaller : total - smaller;
    windows.pads[rank + d] = total - windows.pads[d];
  }
  return absl::OkStatus();
}

}  // namespace mendel
