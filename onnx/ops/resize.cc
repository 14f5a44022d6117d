// Resize and Upsample in all their versions: output extents, scales and region become attributes
// over all dimensions.

#include <algorithm>
#include <cmath>

#include "onnx/op_context.h"

namespace mendel::lowerings::resize {
namespace {

struct ResizePlan {
  Ints sizes;
  std::vector<double> scales;
  std::vector<double> roi;
};

absl::StatusOr<std::vector<size_t>> ResizedAxes(OpContext& op) {
  const int64_t rank = op.rank(op.In(0));
  std::vector<size_t> axes;
  const std::optional<Ints> given = op.IntList("axes");
  if (!given.has_value()) {
    for (size_t d = 0; d < static_cast<size_t>(rank); ++d) axes.push_back(d);
    return axes;
  }
  for (int64_t axis : *given) {
    MENDEL_ASSIGN_OR_RETURN(const int64_t normal, op.Axis(axis, rank));
    if (std::count(axes.begin(), axes.end(), static_cast<size_t>(normal)) != 0)
      return InvalidInput("axis ", normal, " is given twice");
    axes.push_back(static_cast<size_t>(normal));
  }
  return axes;
}

absl::Status SetScales(const Shape& shape, const std::vector<size_t>& axes,
                       const std::vector<double>& scales, ResizePlan& plan) {
  if (scales.size() != axes.size())
    return InvalidInput("has ", scales.size(), " scales for ", axes.size(), " dimensions");
  for (size_t k = 0; k < axes.size(); ++k) {
    const double extent = std::floor(static_cast<double>(shape[axes[k]]) * scales[k]);
    if (!(scales[k] > 0) || !(extent <= static_cast<double>(kMaxElements)))
      return InvalidInput("cannot scale by ", scales[k]);
    plan.scales[axes[k]] = scales[k];
    plan.sizes[axes[k]] = static_cast<int64_t>(extent);
  }
  return absl::OkStatus();
}

absl::Status SetSizes(const Shape& shape, const std::vector<size_t>& axes, const Ints& sizes,
                      const std::string& policy, ResizePlan& plan) {
  if (sizes.size() != axes.size())
    return InvalidInput("has ", sizes.size(), " sizes for ", axes.size(), " dimensions");
  double common = policy == "not_larger" ? 1e300 : 0;
  for (size_t k = 0; k < axes.size(); ++k) {
    if (sizes[k] < 1 || sizes[k] > kMaxElements || shape[axes[k]] < 1)
      return InvalidInput("cannot resize to ", sizes[k]);
    const double scale = static_cast<double>(sizes[k]) / static_cast<double>(shape[axes[k]]);
    plan.sizes[axes[k]] = sizes[k];
    plan.scales[axes[k]] = scale;
    common = policy == "not_larger" ? std::min(common, scale) : std::max(common, scale);
  }
  if (policy == "stretch") return absl::OkStatus();
  if (policy != "not_larger" && policy != "not_smaller")
    return InvalidInput("policy '", policy, "' does not exist");
  for (size_t axis : axes) {
    plan.scales[axis] = common;
    plan.sizes[axis] =
        static_cast<int64_t>(std::floor(common * static_cast<double>(shape[axis]) + 0.5));
  }
  return absl::OkStatus();
}

absl::Status SetRoi(OpContext& op, const std::vector<size_t>& axes, ResizePlan& plan) {
  MENDEL_ASSIGN_OR_RETURN(const std::vector<double> given, op.ConstantDoubles(1, "region"));
  if (given.size() != 2 * axes.size())
    return InvalidInput("has a region of ", given.size(), " numbers for ", axes.size(),
                        " dimensions");
  plan.roi.assign(2 * plan.sizes.size(), 0.0);
  std::fill(plan.roi.begin() + static_cast<int64_t>(plan.sizes.size()), plan.roi.end(), 1.0);
  for (size_t k = 0; k < axes.size(); ++k) {
    plan.roi[axes[k]] = given[k];
    plan.roi[plan.sizes.size() + axes[k]] = given[axes.size() + k];
  }
  return absl::OkStatus();
}

/// Keeps every extent; the region is empty, which is the whole.
ResizePlan UnchangedPlan(const Shape& shape) {
  return {shape, std::vector<double>(shape.size(), 1), {}};
}

bool IsEmptyConstant(OpContext& op, int k) {
  return !op.Has(k) || NumElements(op.shape(op.In(k))) == 0;
}

absl::Status ImportResize(OpContext& op) {
  const Shape shape = op.shape(op.In(0));
  const bool first_form = op.version() < 11;  // inputs (x, scales), positions as Upsample
  ResizePlan plan = UnchangedPlan(shape);
  MENDEL_ASSIGN_OR_RETURN(const std::vector<size_t> axes, ResizedAxes(op));
  const std::string policy = op.Str("keep_aspect_ratio_policy", "stretch");
  const std::string transform =
      op.Str("coordinate_transformation_mode", first_form ? "asymmetric" : "half_pixel");
  if (!first_form && !IsEmptyConstant(op, 3)) {
    MENDEL_ASSIGN_OR_RETURN(const Ints sizes, op.ConstantInts(3, "sizes"));
    MENDEL_RETURN_IF_ERROR(SetSizes(shape, axes, sizes, policy, plan));
  } else {
    MENDEL_ASSIGN_OR_RETURN(const std::vector<double> scales,
                            op.ConstantDoubles(first_form ? 1 : 2, "scales"));
    MENDEL_RETURN_IF_ERROR(SetScales(shape, axes, scales, plan));
  }
  for (const size_t axis : axes)
    op.NoteRelation(Cat("size of axis ", axis), plan.sizes[axis], shape[axis]);
  if (!first_form && transform == "tf_crop_and_resize")
    MENDEL_RETURN_IF_ERROR(SetRoi(op, axes, plan));
  std::string nearest = op.Str("nearest_mode", first_form ? "floor" : "round_prefer_floor");
  const std::string mode = op.Str("mode", "nearest");
  const bool shrinks =
      std::any_of(plan.scales.begin(), plan.scales.end(), [](double scale) { return scale < 1; });
  if (first_form && mode == "nearest" && shrinks)
    return Unsupported("opset 10 leaves the sampled positions open when it shrinks");
  const int64_t exclude = op.Int("exclude_outside", 0);
  if (exclude != 0 && mode == "nearest")
    return Unsupported("exclude_outside of mode nearest, which evaluators read in different ways");
  return op.SetOutput(0, op.Emit("Resize", {op.In(0)},
                                 {{"output_sizes", plan.sizes},
                                  {"scales", plan.scales},
                                  {"roi", plan.roi},
                                  {"mode", mode},
                                  {"coordinate_transformation_mode", transform},
                                  {"nearest_mode", nearest},
                                  {"cubic_coeff_a", op.Float("cubic_coeff_a", -0.75)},
                                  {"exclude_outside", exclude},
                                  {"extrapolation_value", op.Float("extrapolation_value", 0)},
                                  {"antialias", op.Int("antialias", 0)}}));
}

absl::Status ImportUpsample(OpContext& op) {
  const Shape shape = op.shape(op.In(0));
  ResizePlan plan = UnchangedPlan(shape);
  std::optional<std::vector<double>> scales = op.FloatList("scales");
  if (op.version() < 7) {  // of images
    if (shape.size() != 4) return InvalidInput("expects images of rank 4");
    scales = {1, 1, op.Float("height_scale", 0), op.Float("width_scale", 0)};
  } else if (!scales.has_value()) {
    MENDEL_ASSIGN_OR_RETURN(scales, op.ConstantDoubles(1, "scales"));
  }
  std::vector<size_t> axes;
  for (size_t d = 0; d < shape.size(); ++d) axes.push_back(d);
  MENDEL_RETURN_IF_ERROR(SetScales(shape, axes, *scales, plan));
  const std::string mode = op.Str("mode", "nearest");
  return op.SetOutput(0, op.Emit("Resize", {op.In(0)},
                                 {{"output_sizes", plan.sizes},
                                  {"scales", plan.scales},
                                  {"roi", plan.roi},
                                  {"mode", mode == "bilinear" ? std::string("linear") : mode},
                                  {"coordinate_transformation_mode", std::string("asymmetric")},
                                  {"nearest_mode", std::string("floor")}}));
}

const OpImportRegistrar registrar({
    {"Resize", 1, 4, &ImportResize},
    {"Upsample", 1, 2, &ImportUpsample},
});

}  // namespace
}  // namespace mendel::lowerings::resize
