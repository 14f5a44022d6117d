// Resize(x): interpolation, separable over the dimensions, with constant coefficients
// (graph/resampling.h). `scales` maps coordinates and `output_sizes` says how many positions there
// are; `roi` (starts, then ends) is for tf_crop_and_resize alone.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <type_traits>
#include <utility>

#include "base/status.h"
#include "graph/element_structure.h"
#include "graph/elementwise.h"
#include "graph/fill.h"
#include "graph/grid.h"
#include "graph/resampling.h"

namespace mendel::ops::resize {
namespace {

struct ResizeMeaning {
  template <class S>
  static void Fill(const Reader<S>& in, const NodeView& node, int, std::span<S> out) {
    Shape shape = in.shape(0);
    std::vector<S> values(static_cast<size_t>(NumElements(shape)));
    for (size_t k = 0; k < values.size(); ++k) values[k] = in.Flat(0, static_cast<int64_t>(k));
    for (size_t d = 0; d < shape.size(); ++d) {
      const std::vector<ResampleTaps> taps = ResampleDimension(node, d);
      if (IsIdentity(taps, shape[d])) continue;
      values = ResizeAlong(in, taps, values, shape, d, node.attrs.Float("extrapolation_value"));
      shape[d] = static_cast<int64_t>(taps.size());
    }
    std::copy(values.begin(), values.end(), out.begin());
  }

  template <class S>
  static S Coefficient(const Reader<S>& in, const ResampleTap& tap) {
    if (tap.denominator == 0 || std::is_same_v<S, double>) return in.Literal(tap.coefficient);
    return in.Divide(in.FromInteger(tap.numerator), in.FromInteger(tap.denominator));
  }

  /// A later dimension's extrapolated positions overwrite; those of an earlier one stay, its shares
  /// summing to one.
  template <class S>
  static std::vector<S> ResizeAlong(const Reader<S>& in, const std::vector<ResampleTaps>& taps,
                                    const std::vector<S>& values, const Shape& shape, size_t d,
                                    double extrapolation) {
    const int64_t inner =
        NumElements(Shape(shape.begin() + static_cast<int64_t>(d) + 1, shape.end()));
    const int64_t outer =
        NumElements(Shape(shape.begin(), shape.begin() + static_cast<int64_t>(d)));
    const int64_t extent = static_cast<int64_t>(taps.size());
    std::vector<std::vector<S>> coefficients(taps.size());
    for (size_t y = 0; y < taps.size(); ++y) {
      for (const ResampleTap& tap : taps[y]) coefficients[y].push_back(Coefficient(in, tap));
    }
    const S outside = in.Literal(extrapolation);
    std::vector<S> result(static_cast<size_t>(outer * extent * inner));
    ForRanges<S>(outer * extent, 2 * inner, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const size_t y = static_cast<size_t>(row % extent);
        S* to = result.data() + row * inner;
        if (taps[y].empty()) std::fill_n(to, inner, outside);
        for (size_t k = 0; k < taps[y].size(); ++k) {
          const S* from = values.data() + (row / extent * shape[d] + taps[y][k].position) * inner;
          for (int64_t j = 0; j < inner; ++j) {
            const S term =
                taps[y][k].coefficient == 1 ? from[j] : Times(from[j], coefficients[y][k]);
            to[j] = k == 0 ? term : Plus(to[j], term);
          }
        }
      }
    });
    return result;
  }
};

TypesOr Infer(std::span<const TensorType> inputs, const Attributes& attrs) {
  MENDEL_RETURN_IF_ERROR(CheckResize(inputs[0], attrs));
  int64_t count = 1;
  for (int64_t extent : attrs.IntList("output_sizes")) {
    if (extent > 0 && count > kMaxElements / extent) return InvalidInput("the output is too large");
    count *= extent;
  }
  return std::vector<TensorType>{{inputs[0].dtype, attrs.IntList("output_sizes")}};
}

uint32_t Linear(const NodeView& node) {
  const bool constant = node.attrs.Str("coordinate_transformation_mode") == "tf_crop_and_resize" &&
                        node.attrs.Float("extrapolation_value") != 0;
  return constant ? 0u : 1u;
}

/// log2 of a common denominator of the coefficients along one dimension: dyadic numbers, and
/// rational ones with small denominators.
double CommonDenominator(const std::vector<ResampleTaps>& dimension,
                         const Arithmetic<Bound>& arithmetic) {
  constexpr int64_t kLargest = int64_t{1} << 40;
  double dyadic = 0;
  double beyond = 0;
  int64_t multiple = 1;
  for (const ResampleTaps& taps : dimension) {
    for (const ResampleTap& tap : taps) {
      if (tap.denominator == 0) {
        dyadic = std::max(dyadic, arithmetic.Literal(tap.coefficient).log2_den);
      } else if (multiple % tap.denominator != 0) {
        multiple = std::lcm(multiple, tap.denominator);
        if (multiple > kLargest)
          beyond += std::log2(static_cast<double>(std::exchange(multiple, 1)));
      }
    }
  }
  return dyadic + beyond + std::log2(static_cast<double>(multiple));
}

/// Terms c_t x_t with c_t a product of one coefficient a dimension. The product of the dimensions'
/// common denominators is a common denominator.
Bound BoundOf(const NodeView& node, std::span<const Bound> inputs, int,
              const Arithmetic<Bound>& arithmetic) {
  double terms = 1;
  Bound factor;
  for (size_t d = 0; d < node.inputs[0].shape.size(); ++d) {
    double count = 1, largest = 1;
    const std::vector<ResampleTaps> dimension = ResampleDimension(node, d);
    const double denominator = CommonDenominator(dimension, arithmetic);
    for (const ResampleTaps& taps : dimension) {
      count = std::max(count, static_cast<double>(taps.size()));
      for (const ResampleTap& tap : taps) largest = std::max(largest, std::abs(tap.coefficient));
    }
    terms *= count;
    factor *= Bound{0, 0, std::log2(largest) + denominator, denominator};
  }
  const bool extrapolates = Linear(node) == 0;
  const Bound term =
      extrapolates ? Either(inputs[0], arithmetic.Literal(node.attrs.Float("extrapolation_value")))
                   : inputs[0];
  return SumOf(terms, term) * factor;
}

/// Cut only where nothing is interpolated (images, channels): elsewhere coordinates depend on the
/// extents.
std::optional<Restriction> Restrict(const NodeView& node, const Box& out) {
  const Shape& x = node.inputs[0].shape;
  Restriction result{{Box::Whole(x)}, node.attrs};
  for (size_t d = 0; d < x.size(); ++d) {
    if (out.begin[d] == 0 && out.end[d] == node.outputs[0].shape[d]) continue;
    const std::vector<double>& roi = node.attrs.FloatList("roi");
    const bool plain = roi.empty() || (roi[d] == 0 && roi[x.size() + d] == 1);
    if (!plain || node.attrs.FloatList("scales")[d] != 1 || x[d] != node.outputs[0].shape[d])
      return std::nullopt;
    result.inputs[0].begin[d] = out.begin[d];
    result.inputs[0].end[d] = out.end[d];
  }
  result.attrs.Set("output_sizes", out.Extents());
  return result;
}

bool SameTaps(const ResampleTaps& a, const ResampleTaps& b, int64_t shift) {
  if (a.size() != b.size() || a.empty()) return false;
  for (size_t k = 0; k < a.size(); ++k) {
    if (a[k].position != b[k].position + shift || a[k].coefficient != b[k].coefficient)
      return false;
  }
  return true;
}

/// The part [begin, end) of dimension d resized by itself: output `offset` + o of the whole is
/// output o of the part, where both read alike; kAbsent elsewhere.
std::optional<Positions> ResizedPart(const NodeView& node, size_t d,
                                     const std::vector<ResampleTaps>& whole, int64_t begin,
                                     int64_t end) {
  const double scale = node.attrs.FloatList("scales")[d];
  const double exact = static_cast<double>(begin) * scale;
  const int64_t offset = static_cast<int64_t>(std::llround(exact));
  if (std::abs(exact - static_cast<double>(offset)) > 1e-9) return std::nullopt;
  std::vector<TensorType> inputs(node.inputs.begin(), node.inputs.end());
  std::vector<TensorType> outputs(node.outputs.begin(), node.outputs.end());
  inputs[0].shape[d] = end - begin;
  const int64_t fits =
      static_cast<int64_t>(std::floor(static_cast<double>(end - begin) * scale + 1e-9));
  const int64_t size = std::min(fits, static_cast<int64_t>(whole.size()) - offset);
  if (size < 1) return std::nullopt;
  outputs[0].shape[d] = size;
  const std::vector<ResampleTaps> part = ResampleDimension({inputs, node.attrs, outputs}, d);
  std::vector<int64_t> computed;
  for (int64_t o = 0; o < size; ++o) {
    const size_t at = static_cast<size_t>(offset + o);
    computed.push_back(SameTaps(whole[at], part[static_cast<size_t>(o)], begin)
                           ? static_cast<int64_t>(at)
                           : kAbsent);
  }
  return Positions::List(std::move(computed));
}

/// Interpolation of a part of the input, with as much around it as it takes.
bool RestrictDim(const GridRequest& request, size_t d, GridRestriction& result) {
  const std::vector<ResampleTaps> taps = ResampleDimension(request.node, d);
  const int64_t extent = request.node.inputs[0].shape[d];
  if (IsIdentity(taps, extent)) {
    result.computed[d] = result.inputs[0][d] = request.wanted[d];
    return true;
  }
  const std::vector<int64_t> wanted = request.wanted[d].ToList();
  int64_t first = extent, last = -1;
  for (int64_t o : wanted) {
    for (const ResampleTap& tap : taps[static_cast<size_t>(o)]) {
      first = std::min(first, tap.position);
      last = std::max(last, tap.position);
    }
  }
  for (int64_t around = 0; around < 16 && last - first + 1 + around < extent; ++around) {
    const int64_t begin = std::max<int64_t>(0, first - around);
    for (int64_t end : {last + 1, last + 2, last + 3}) {
      const auto part = ResizedPart(request.node, d, taps, begin, std::min(extent, end));
      if (!part.has_value()) continue;
      const std::vector<int64_t> list = part->ToList();
      const std::set<int64_t> computed(list.begin(), list.end());
      if (!std::all_of(wanted.begin(), wanted.end(),
                       [&](int64_t o) { return computed.count(o) > 0; }))
        continue;
      result.computed[d] = *part;
      result.inputs[0][d] = Positions::Range(begin, std::min(extent, end) - begin);
      return true;
    }
  }
  return false;
}

/// A dimension that is only copied needs the positions that it copies; one that is interpolated is
/// cut where the part's coordinates are the whole's.
std::optional<GridRestriction> RestrictGrid(const GridRequest& request) {
  GridRestriction result = WholeRestriction(request.node, 0);
  if (!request.node.attrs.FloatList("roi").empty()) return std::nullopt;
  bool nearest = true;
  for (size_t d = 0; d < request.wanted.size(); ++d) {
    for (const ResampleTaps& taps : ResampleDimension(request.node, d))
      nearest = nearest && taps.size() == 1 && taps[0].coefficient == 1;
  }
  if (nearest) return std::nullopt;  // the element structure's taps are single
  for (size_t d = 0; d < request.wanted.size(); ++d) {
    if (!request.wanted[d].IsWhole(request.node.outputs[0].shape[d]))
      RestrictDim(request, d, result);
  }
  result.attrs.Set("output_sizes", ExtentsOf(result.computed));
  return result;
}

template <size_t N>
std::string Pick(Rng& rng, const std::string_view (&values)[N]) {
  return std::string(values[rng.Below(N)]);
}

OpSample Sample(Rng& rng) {
  constexpr std::string_view kModes[] = {"nearest", "linear", "cubic"};
  constexpr std::string_view kCoordinates[] = {
      "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
      "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"};
  constexpr std::string_view kRounding[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                            "ceil"};
  const Shape x = SampleShape(rng, 1, 4, 5);
  const std::string mode = Pick(rng, kModes);
  const std::string coordinates = Pick(rng, kCoordinates);
  Ints sizes;
  std::vector<double> scales, roi;
  for (int64_t extent : x) {
    const double scale = rng.Flip(0.3) ? 1.0 : static_cast<double>(rng.Between(3, 20)) / 8;
    sizes.push_back(
        std::max<int64_t>(1, static_cast<int64_t>(scale * static_cast<double>(extent))));
    scales.push_back(rng.Flip() ? static_cast<double>(sizes.back()) / static_cast<double>(extent)
                                : scale);
  }
  for (size_t k = 0; coordinates == "tf_crop_and_resize" && k < 2 * x.size(); ++k) {
    roi.push_back(static_cast<double>(rng.Between(-2, 6)) / 8 + (k < x.size() ? 0 : 0.5));
  }
  const bool smooth = mode != "nearest";
  return {{{DType::kF32, x}},
          {{"output_sizes", sizes},
           {"scales", scales},
           {"roi", roi},
           {"mode", mode},
           {"coordinate_transformation_mode", coordinates},
           {"nearest_mode", Pick(rng, kRounding)},
           {"cubic_coeff_a", rng.Flip() ? -0.75 : -0.5},
           {"exclude_outside", smooth ? rng.Between(0, 1) : 0},
           {"extrapolation_value", rng.Flip() ? 0.0 : 1.5},
           {"antialias", smooth ? rng.Between(0, 1) : 0}},
          {}};
}

OpDefinition Make() {
  OpDefinition op;
  op.name = "Resize";
  op.min_inputs = op.max_inputs = 1;
  op.attributes = {{"output_sizes", Ints(), true},
                   {"scales", std::vector<double>(), true},
                   {"roi", std::vector<double>()},
                   {"mode", std::string("nearest")},
                   {"coordinate_transformation_mode", std::string("half_pixel")},
                   {"nearest_mode", std::string("round_prefer_floor")},
                   {"cubic_coeff_a", -0.75},
                   {"exclude_outside", int64_t{0}},
                   {"extrapolation_value", 0.0},
                   {"antialias", int64_t{0}}};
  op.infer = &Infer;
  op.meaning = MeaningOf<ResizeMeaning>();
  op.linear_inputs = &Linear;
  op.bound = &BoundOf;
  op.restrict = &Restrict;
  op.sample = &Sample;
  return op;
}

std::optional<SeparableTaps> Taps(const NodeView& node, std::span<const Tensor* const>, int) {
  SeparableTaps result;
  for (size_t d = 0; d < node.inputs[0].shape.size(); ++d) {
    SeparableTaps::Dim& dim = result.dims.emplace_back();
    dim.input_dim = static_cast<int>(d);
    for (const ResampleTaps& taps : ResampleDimension(node, d)) {
      std::vector<Tap>& list = dim.taps.emplace_back();
      for (const ResampleTap& tap : taps) list.push_back({tap.position, tap.coefficient});
    }
  }
  return result;
}

MENDEL_REGISTER_OP(&Make);
MENDEL_REGISTER_GRID_STRUCTURE({.op = "Resize", .restrict = &RestrictGrid});
MENDEL_REGISTER_ELEMENT_STRUCTURE({.op = "Resize", .taps = &Taps});

}  // namespace
}  // namespace mendel::ops::resize
