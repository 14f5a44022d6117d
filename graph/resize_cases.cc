#include <cstdint>
#include <string>
#include <vector>

#include "graph/nn_ops_cases.h"

namespace mendel {
namespace {

/// The attributes in which a case differs from the others.
struct Resized {
  Ints from = {1, 4};
  Ints to = {1, 6};
  std::vector<double> scales = {1.0, 1.5};
  std::string mode;
  std::string transformation = "half_pixel";
  std::string rounding = "round_prefer_floor";
  std::vector<double> roi = {};
  double cubic = -0.75;
  int64_t exclude_outside = 0;
  double extrapolation = 0;
  int64_t antialias = 0;
};

NnOpCase Case(const std::string& name, const Resized& how, const std::vector<double>& expected) {
  return {name,
          "Resize",
          {how.from},
          {{"output_sizes", how.to},
           {"scales", how.scales},
           {"roi", how.roi},
           {"mode", how.mode},
           {"coordinate_transformation_mode", how.transformation},
           {"nearest_mode", how.rounding},
           {"cubic_coeff_a", how.cubic},
           {"exclude_outside", how.exclude_outside},
           {"extrapolation_value", how.extrapolation},
           {"antialias", how.antialias}},
          how.to,
          expected};
}

}  // namespace

std::vector<NnOpCase> ResizeCases() {
  return {
      Case("nearest_half_pixel", {.mode = "nearest"}, {-1, -1, 2.5, 0.5, 0.5, -1.5}),
      Case("nearest_half_pixel_symmetric",
           {.mode = "nearest", .transformation = "half_pixel_symmetric"},
           {-1, -1, 2.5, 0.5, 0.5, -1.5}),
      Case("nearest_pytorch_half_pixel",
           {.mode = "nearest", .transformation = "pytorch_half_pixel"},
           {-1, -1, 2.5, 0.5, 0.5, -1.5}),
      Case("nearest_align_corners", {.mode = "nearest", .transformation = "align_corners"},
           {-1, 2.5, 2.5, 0.5, 0.5, -1.5}),
      Case("nearest_asymmetric", {.mode = "nearest", .transformation = "asymmetric"},
           {-1, 2.5, 2.5, 0.5, -1.5, -1.5}),
      Case("linear_half_pixel", {.mode = "linear"},
           {-1, 0.75, 2.16666667, 0.833333333, -0.5, -1.5}),
      Case("linear_half_pixel_symmetric",
           {.mode = "linear", .transformation = "half_pixel_symmetric"},
           {-1, 0.75, 2.16666667, 0.833333333, -0.5, -1.5}),
      Case("linear_pytorch_half_pixel", {.mode = "linear", .transformation = "pytorch_half_pixel"},
           {-1, 0.75, 2.16666667, 0.833333333, -0.5, -1.5}),
      Case("linear_align_corners", {.mode = "linear", .transformation = "align_corners"},
           {-1, 1.1, 2.1, 0.9, -0.3, -1.5}),
      Case("linear_asymmetric", {.mode = "linear", .transformation = "asymmetric"},
           {-1, 1.33333333, 1.83333333, 0.5, -0.833333333, -1.5}),
      Case("cubic_half_pixel", {.mode = "cubic"},
           {-1.30381995, 0.9375, 2.55150399, 1.02141175, -0.6875, -1.67361179}),
      Case("cubic_half_pixel_symmetric",
           {.mode = "cubic", .transformation = "half_pixel_symmetric"},
           {-1.30381995, 0.9375, 2.55150399, 1.02141175, -0.6875, -1.67361179}),
      Case("cubic_pytorch_half_pixel", {.mode = "cubic", .transformation = "pytorch_half_pixel"},
           {-1.30381995, 0.9375, 2.55150399, 1.02141175, -0.6875, -1.67361179}),
      // Coordinate 0 where one element is left, by the specification.
      Case("cubic_pytorch_half_pixel_to_one",
           {.to = {1, 1},
            .scales = {1.0, 0.25},
            .mode = "cubic",
            .transformation = "pytorch_half_pixel"},
           {-1}),
      Case("cubic_align_corners", {.mode = "cubic", .transformation = "align_corners"},
           {-1, 1.35800034, 2.53199953, 1.1279996, -0.491999656, -1.5}),
      Case("cubic_asymmetric", {.mode = "cubic", .transformation = "asymmetric"},
           {-1, 1.6203706, 2.37037084, 0.5, -0.981482059, -1.72222188}),
      Case("crop",
           {.to = {1, 4},
            .scales = {1.0, 1.0},
            .mode = "linear",
            .transformation = "tf_crop_and_resize",
            .roi = {0.0, 0.25, 1.0, 1.25},
            .extrapolation = 9.0},
           {1.625, 1, -1, 9}),
      Case("nearest_round_prefer_ceil",
           {.to = {1, 8}, .scales = {1.0, 2.0}, .mode = "nearest", .rounding = "round_prefer_ceil"},
           {-1, -1, 2.5, 2.5, 0.5, 0.5, -1.5, -1.5}),
      Case("nearest_floor",
           {.to = {1, 8}, .scales = {1.0, 2.0}, .mode = "nearest", .rounding = "floor"},
           {-1, -1, -1, 2.5, 2.5, 0.5, 0.5, -1.5}),
      Case("nearest_ceil",
           {.to = {1, 8}, .scales = {1.0, 2.0}, .mode = "nearest", .rounding = "ceil"},
           {-1, 2.5, 2.5, 0.5, 0.5, -1.5, -1.5, -1.5}),
      Case("cubic_exclude", {.mode = "cubic", .cubic = -0.5, .exclude_outside = 1},
           {-1.23026222, 0.764705882, 2.48495364, 0.896990633, -0.676470588, -1.63157841}),
      Case("symmetric_shrink",
           {.from = {1, 5},
            .to = {1, 2},
            .scales = {1.0, 0.5},
            .mode = "linear",
            .transformation = "half_pixel_symmetric"},
           {2.5, -1.5}),
      Case("linear_antialias",
           {.from = {1, 5}, .to = {1, 2}, .scales = {1.0, 0.5}, .mode = "linear", .antialias = 1},
           {0.5, 0.1875}),
      Case("cubic_antialias",
           {.from = {1, 5}, .to = {1, 2}, .scales = {1.0, 0.5}, .mode = "cubic", .antialias = 1},
           {0.708007812, 0.0791015625}),
      Case("two_dims", {.from = {2, 2}, .to = {4, 3}, .scales = {2.0, 1.5}, .mode = "linear"},
           {-1, 0.75, 2.5, -0.625, 0.4375, 1.5, 0.125, -0.1875, -0.5, 0.5, -0.5, -1.5}),
  };
}

}  // namespace mendel
