// Attributes that convolutions and pools share, with auto_pad resolved.
#ifndef MENDEL_ONNX_OPS_WINDOWS_H_
#define MENDEL_ONNX_OPS_WINDOWS_H_

#include "onnx/op_context.h"

namespace mendel {

/// One entry a spatial dimension; `pads` contains all begins, then all ends.
struct WindowAttributes {
  Ints kernel;
  Ints strides;
  Ints dilations;
  Ints pads;
  std::string auto_pad;
};

/// Reads kernel_shape, strides, dilations, pads and auto_pad. `kernel` empty: kernel_shape is
/// required. InvalidArgument unless every list has one entry (pads: two) a dimension, kernels,
/// strides and dilations are positive and all are below 2^31.
absl::StatusOr<WindowAttributes> ReadWindows(OpContext& op, const Shape& spatial,
                                             const Shape& kernel);

/// Pads for auto_pad SAME_UPPER or SAME_LOWER (output extent ceil(input / stride)) or VALID; leaves
/// explicit pads alone.
absl::Status ResolveAutoPad(const Shape& spatial, WindowAttributes& windows);

}  // namespace mendel

#endif  // MENDEL_ONNX_OPS_WINDOWS_H_
