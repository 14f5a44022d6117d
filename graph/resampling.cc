#include "graph/resampling.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/status.h"
#include "graph/integers.h"

namespace mendel {
namespace {

/// One dimension's extents and scale. `scaled` is the output extent before rounding.
struct Axis {
  double input, output, scale, scaled;
  double roi_begin = 0, roi_end = 1;
};

/// Input coordinate of output `y`; nullopt outside the region that tf_crop_and_resize extrapolates.
std::optional<double> Coordinate(const Axis& axis, std::string_view mode, double y) {
  if (mode == "align_corners")
    return axis.scaled == 1 ? 0 : y * (axis.input - 1) / (axis.scaled - 1);
  if (mode == "asymmetric") return y / axis.scale;
  if (mode == "tf_half_pixel_for_nn") return (y + 0.5) / axis.scale;
  if (mode == "tf_crop_and_resize") {
    const double span = axis.roi_end - axis.roi_begin;
    const double x = axis.roi_begin * (axis.input - 1) +
                     (axis.scaled == 1 ? span * (axis.input - 1) / 2
                                       : y * span * (axis.input - 1) / (axis.scaled - 1));
    return x < 0 || x > axis.input - 1 ? std::nullopt : std::optional(x);
  }
  if (mode == "pytorch_half_pixel" && axis.scaled == 1) return 0;
  const double half_pixel = (y + 0.5) / axis.scale - 0.5;
  if (mode != "half_pixel_symmetric") return half_pixel;
  return axis.input / 2 * (1 - axis.output / axis.scaled) +
         half_pixel;  // the centers of both images coincide
}

/// Shares of the neighbors base + first, base + first + 1, ... of base + ratio, ratio in (0, 1].
struct Kernel {
  int64_t first = 0;
  std::vector<double> shares;
};

Kernel NearestKernel(double ratio, std::string_view rounding) {
  bool right = ratio == 1 || rounding == "ceil";
  if (rounding == "round_prefer_floor") right = ratio > 0.5;
  if (rounding == "round_prefer_ceil") right = ratio >= 0.5;
  return {right ? 1 : 0, {1.0}};
}

double Cubic(double x, double a) {
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/// Linear (reach 1) or cubic (reach 2) interpolation; a scale below one stretches the kernel, which
/// is what antialias means.
Kernel SmoothKernel(double ratio, double scale, int64_t reach, double a) {
  scale = std::min(scale, 1.0);
  Kernel kernel;
  kernel.first = static_cast<int64_t>(std::floor(static_cast<double>(-reach) / scale)) + 1;
  double total = 0;
  for (int64_t i = kernel.first; i <= 1 - kernel.first; ++i) {
    const double x = (static_cast<double>(i) - ratio) * scale;
    kernel.shares.push_back(reach == 1 ? std::max(0.0, 1 - std::abs(x)) : Cubic(x, a));
    total += kernel.shares.back();
  }
  if (scale < 1) {
    for (double& share : kernel.shares) share /= total;
  }
  return kernel;
}

/// The rational number with a small denominator that lies within the rounding of the formulas.
/// Continued fractions; source: Hardy and Wright, theorem 184 (best approximations are
/// convergents).
void FindRational(ResampleTap& tap) {
  constexpr int64_t kLargestDenominator = 1 << 16;
  constexpr double kRounding = 0x1p-44;
  const double target = tap.coefficient;
  int64_t p = 1, q = 0, previous_p = 0, previous_q = 1;
  double rest = target;
  while (std::abs(rest) < static_cast<double>(kLargestDenominator)) {
    const double whole = std::floor(rest);
    const int64_t digit = static_cast<int64_t>(whole);
    previous_p = std::exchange(p, digit * p + previous_p);
    previous_q = std::exchange(q, digit * q + previous_q);
    if (q > kLargestDenominator) return;
    const double value = static_cast<double>(p) / static_cast<double>(q);
    if (std::abs(value - target) <= kRounding) {
      tap = {tap.position, value, p, q};
      return;
    }
    if (rest == whole) return;
    rest = 1 / (rest - whole);
  }
}

/// Neighbors beyond the border repeat the border element, or are left out and the others scaled
/// up.
ResampleTaps PlaceKernel(const Kernel& kernel, int64_t base, int64_t input, bool exclude_outside) {
  ResampleTaps taps;
  double total = 0;
  for (size_t k = 0; k < kernel.shares.size(); ++k) {
    const int64_t at = base + kernel.first + static_cast<int64_t>(k);
    if (exclude_outside && (at < 0 || at >= input)) continue;
    total += kernel.shares[k];
    if (kernel.shares[k] == 0) continue;
    const int64_t position = std::clamp<int64_t>(at, 0, input - 1);
    if (!taps.empty() && taps.back().position == position) {
      taps.back().coefficient += kernel.shares[k];
    } else {
      taps.push_back({position, kernel.shares[k]});
    }
  }
  for (ResampleTap& tap : taps) {
    tap.coefficient /= exclude_outside && total != 0 ? total : 1;
    FindRational(tap);
  }
  return taps;
}

bool OneOf(std::string_view value, std::initializer_list<std::string_view> known) {
  return std::find(known.begin(), known.end(), value) != known.end();
}

}  // namespace

std::vector<ResampleTaps> ResampleDimension(const NodeView& node, size_t dim) {
  const Attributes& attrs = node.attrs;
  const int64_t input = node.inputs[0].shape[dim];
  const int64_t output = node.outputs[0].shape[dim];
  const size_t rank = node.inputs[0].shape.size();
  const std::vector<double>& roi = attrs.FloatList("roi");
  Axis axis{static_cast<double>(input), static_cast<double>(output), attrs.FloatList("scales")[dim],
            0};
  axis.scaled = axis.scale * axis.input;
  if (!roi.empty()) {
    axis.roi_begin = roi[dim];
    axis.roi_end = roi[rank + dim];
  }
  std::vector<ResampleTaps> taps;
  for (int64_t y = 0; y < output; ++y) {
    const bool identity = std::abs(axis.scale - 1) <= 1e-9 && input == output &&
                          axis.roi_begin == 0 && axis.roi_end == 1;
    if (identity) {
      taps.push_back({{y, 1.0, 1, 1}});
      continue;
    }
    const std::optional<double> x =
        Coordinate(axis, attrs.Str("coordinate_transformation_mode"), static_cast<double>(y));
    if (!x.has_value()) {
      taps.emplace_back();
      continue;
    }
    const int64_t base = static_cast<int64_t>(std::ceil(*x)) - 1;
    const double ratio = *x - static_cast<double>(base);
    const double stretch = attrs.Int("antialias") != 0 ? axis.scale : 1.0;
    const std::string& mode = attrs.Str("mode");
    const Kernel kernel = mode == "nearest" ? NearestKernel(ratio, attrs.Str("nearest_mode"))
                                            : SmoothKernel(ratio, stretch, mode == "linear" ? 1 : 2,
                                                           attrs.Float("cubic_coeff_a"));
    taps.push_back(
        PlaceKernel(kernel, base, input, attrs.Int("exclude_outside") != 0 && mode != "nearest"));
  }
  return taps;
}

bool IsIdentity(const std::vector<ResampleTaps>& taps, int64_t input) {
  if (static_cast<int64_t>(taps.size()) != input) return false;
  for (size_t y = 0; y < taps.size(); ++y) {
    if (taps[y].size() != 1 || taps[y][0].position != static_cast<int64_t>(y) ||
        taps[y][0].coefficient != 1)
      return false;
  }
  return true;
}

absl::Status CheckResize(const TensorType& input, const Attributes& attrs) {
  const size_t rank = input.shape.size();
  const Ints& sizes = attrs.IntList("output_sizes");
  const std::vector<double>& scales = attrs.FloatList("scales");
  const std::vector<double>& roi = attrs.FloatList("roi");
  const std::string& mode = attrs.Str("mode");
  const std::string& coordinates = attrs.Str("coordinate_transformation_mode");
  if (sizes.size() != rank || scales.size() != rank)
    return InvalidInput("output_sizes and scales must have length ", rank);
  for (size_t d = 0; d < rank; ++d) {
    if (!(scales[d] > 1e-6) || scales[d] > 1e6)
      return InvalidInput("scale ", scales[d], " is not between 1e-6 and 1e6");
    if (sizes[d] < 0 || (input.shape[d] == 0 && sizes[d] != 0))
      return InvalidInput("bad size ", sizes[d], " in dimension ", d);
  }
  if (!OneOf(mode, {"nearest", "linear", "cubic"}))
    return InvalidInput("unknown mode '", mode, "'");
  if (!OneOf(coordinates,
             {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
              "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"})) {
    return InvalidInput("unknown coordinate_transformation_mode '", coordinates, "'");
  }
  if (!OneOf(attrs.Str("nearest_mode"),
             {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"})) {
    return InvalidInput("unknown nearest_mode '", attrs.Str("nearest_mode"), "'");
  }
  if (roi.size() != (coordinates == "tf_crop_and_resize" ? 2 * rank : 0)) {
    return InvalidInput("roi must have length ", 2 * rank,
                        " with tf_crop_and_resize and be empty otherwise");
  }
  for (double bound : roi) {
    if (!(std::abs(bound) < 1e6)) return InvalidInput("roi bound ", bound, " is too large");
  }
  if (mode != "nearest" && !IsFloat(input.dtype))
    return InvalidInput("mode ", mode, " needs floats, not ", TypeString(input));
  const double beyond = attrs.Float("extrapolation_value");
  if (coordinates == "tf_crop_and_resize" && IsIntegral(input.dtype) &&
      !IsIntegerOf(input.dtype, beyond))
    return InvalidInput("extrapolation_value ", beyond, " is no ", DTypeName(input.dtype));
  if (mode == "nearest" && attrs.Int("antialias") != 0)
    return InvalidInput("antialias needs mode linear or cubic");
  return absl::OkStatus();
}

}  // namespace mendel
