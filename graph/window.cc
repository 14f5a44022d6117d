#include "graph/window.h"

#include <algorithm>

#include "base/check.h"
#include "base/status.h"

namespace mendel {
namespace {

constexpr int64_t kMaxWindow = int64_t{1} << 31;  // keeps Position() far from overflow

}  // namespace

absl::StatusOr<std::vector<Window>> MakeWindows(const Shape& input_spatial, const Shape& kernel,
                                                const Attributes& attrs) {
  const size_t rank = input_spatial.size();
  const Ints& strides = attrs.IntList("strides");
  const Ints& dilations = attrs.IntList("dilations");
  const Ints& pads = attrs.IntList("pads");
  if (kernel.size() != rank || strides.size() != rank || dilations.size() != rank ||
      pads.size() != 2 * rank) {
    return InvalidInput("kernel, strides, dilations and pads must have lengths ", rank, ", ", rank,
                        ", ", rank, " and ", 2 * rank);
  }
  std::vector<Window> windows;
  for (size_t d = 0; d < rank; ++d) {
    const Window window{input_spatial[d], kernel[d], strides[d],
                        dilations[d],     pads[d],   pads[rank + d]};
    const bool in_range = window.kernel >= 1 && window.stride >= 1 && window.dilation >= 1 &&
                          window.pad_begin >= 0 && window.pad_end >= 0 &&
                          window.kernel < kMaxWindow && window.stride < kMaxWindow &&
                          window.dilation < kMaxWindow && window.pad_begin < kMaxWindow &&
                          window.pad_end < kMaxWindow;
    if (!in_range) return InvalidInput("bad kernel, stride, dilation or padding in dimension ", d);
    const int64_t padded = window.input + window.pad_begin + window.pad_end;
    if (padded < window.dilation * (window.kernel - 1) + 1) {
      return InvalidInput("the window of dimension ", d, " is larger than the padded input of ",
                          padded);
    }
    windows.push_back(window);
  }
  return windows;
}

std::vector<Window> WindowsOf(const Shape& input_spatial, const Shape& kernel,
                              const Attributes& attrs) {
  auto windows = MakeWindows(input_spatial, kernel, attrs);
  MENDEL_CHECK(windows.ok());
  return *std::move(windows);
}

std::optional<WindowCut> CutWindow(const Window& window, int64_t begin, int64_t end) {
  const int64_t first = window.Position(begin, 0);
  const int64_t last = window.Position(end - 1, window.kernel - 1) + 1;
  WindowCut cut{std::max<int64_t>(0, first), std::min(window.input, last), window};
  if (cut.begin >= cut.end) return std::nullopt;
  cut.window.input = cut.end - cut.begin;
  cut.window.pad_begin = cut.begin - first;
  cut.window.pad_end = last - cut.end;
  return cut;
}

DimAccess WindowAccess(const Window& window, size_t output_dim, size_t output_rank) {
  DimAccess access;
  access.coefficients.assign(output_rank, 0);
  access.coefficients[output_dim] = window.stride;
  access.offset = -window.pad_begin;
  access.step = window.dilation;
  access.count = window.kernel;
  return access;
}

}  // namespace mendel
