// The geometry of sliding windows (convolutions and pools): extents, the input range a range of
// outputs reads, and access.
#ifndef MENDEL_GRAPH_WINDOW_H_
#define MENDEL_GRAPH_WINDOW_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/access.h"
#include "graph/attributes.h"
#include "graph/types.h"

namespace mendel {

/// One spatial dimension: output o reads input positions o * stride - pad_begin + dilation * k for
/// k in [0, kernel), those outside [0, input) being padding.
struct Window {
  int64_t input = 1;
  int64_t kernel = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t pad_begin = 0;
  int64_t pad_end = 0;

  /// Extent of the output rounding down; zero or negative when the window does not fit.
  int64_t OutputExtent() const {
    return (input + pad_begin + pad_end - dilation * (kernel - 1) - 1) / stride + 1;
  }
  /// Extent rounding up, as pools with ceil_mode: the last window may hang over the padding, but
  /// must start inside the input or the padding before it.
  int64_t CeilOutputExtent() const {
    const int64_t extent =
        OutputExtent() +
        ((input + pad_begin + pad_end - dilation * (kernel - 1) - 1) % stride != 0 ? 1 : 0);
    return (extent - 1) * stride >= input + pad_begin ? extent - 1 : extent;
  }
  /// Input position of tap k at output o; may lie in the padding.
  int64_t Position(int64_t output, int64_t tap) const {
    return output * stride - pad_begin + tap * dilation;
  }
};

/// Windows of all spatial dimensions from the attributes strides, dilations and pads (ONNX order:
/// all begins, then all ends). InvalidArgument when their lengths or values are bad or a window
/// does not fit.
absl::StatusOr<std::vector<Window>> MakeWindows(const Shape& input_spatial, const Shape& kernel,
                                                const Attributes& attrs);

/// MakeWindows for attributes that inference has accepted.
std::vector<Window> WindowsOf(const Shape& input_spatial, const Shape& kernel,
                              const Attributes& attrs);

/// Input range that outputs [begin, end) read, cut to the input, and the window whose padding makes
/// up for the cut; nullopt when they read padding only.
struct WindowCut {
  int64_t begin = 0;
  int64_t end = 0;
  Window window;
};
std::optional<WindowCut> CutWindow(const Window& window, int64_t begin, int64_t end);

/// Access along one spatial dimension, output dimension `output_dim` of `output_rank`.
DimAccess WindowAccess(const Window& window, size_t output_dim, size_t output_rank);

}  // namespace mendel

#endif  // MENDEL_GRAPH_WINDOW_H_
