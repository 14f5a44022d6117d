// Tests Resize between convolutions, whose layouts it keeps, against double.

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "graph/random_graph.h"
#include "graph/text.h"
#include "gtest/gtest.h"
#include "kernels/cpu/testing/test_support.h"

namespace mendel::cpu {
namespace {

class CaseBuilder {
 public:
  explicit CaseBuilder(uint64_t seed) : rng_(seed) {}

  Graph Build() {
    spatial_ = static_cast<size_t>(rng_.Between(1, 3));
    Shape shape = {rng_.Between(1, 2), rng_.Flip() ? 16 : 20};
    for (size_t d = 0; d < spatial_; ++d) shape.push_back(rng_.Between(1, 7));
    const Shape perm = ChannelsLast(shape.size());
    ValueId x = builder_.Input("x", {DType::kF32, shape});
    // Blocks of channels, channels-last (a transposed input) or row-major.
    if (rng_.Flip(0.7)) {
      x = Conv(x, rng_.Flip() ? 32 : 21);
    } else if (rng_.Flip()) {
      x = builder_.Input("t", {DType::kF32, Permuted(builder_.type(x).shape, perm)});
      x = *builder_.Add("Transpose", {x}, {{"perm", Inverse(perm)}});
    }
    ValueId y = Resize(x);
    if (rng_.Flip()) y = Conv(y, 8);
    builder_.Output("y", y);
    return *builder_.Build();
  }

  Rng& rng() { return rng_; }

 private:
  static Shape ChannelsLast(size_t rank) {
    Shape perm = {0};
    for (size_t d = 2; d < rank; ++d) perm.push_back(static_cast<int64_t>(d));
    perm.push_back(1);
    return perm;
  }
  static Shape Permuted(const Shape& shape, const Shape& perm) {
    Shape result;
    for (const int64_t d : perm) result.push_back(shape[static_cast<size_t>(d)]);
    return result;
  }
  static Shape Inverse(const Shape& perm) {
    Shape result(perm.size());
    for (size_t d = 0; d < perm.size(); ++d)
      result[static_cast<size_t>(perm[d])] = static_cast<int64_t>(d);
    return result;
  }

  ValueId Conv(ValueId x, int64_t channels) {
    Shape shape = {channels, builder_.type(x).shape[1]};
    shape.insert(shape.end(), spatial_, 3);
    std::vector<double> values(static_cast<size_t>(NumElements(shape)));
    for (double& value : values) value = rng_.Uniform(-0.2, 0.2);
    const ValueId w = builder_.Constant(Tensor::FromDoubles({DType::kF32, shape}, values),
                                        "w" + std::to_string(channels));
    const Ints ones(spatial_, 1);
    return *builder_.Add("Conv", {x, w},
                         {{"strides", ones}, {"dilations", ones}, {"pads", Ints(2 * spatial_, 1)}});
  }

  ValueId Resize(ValueId x) {
    const Shape& shape = builder_.type(x).shape;
    constexpr std::string_view kModes[] = {"nearest", "linear", "cubic"};
    const bool crop = rng_.Flip(0.3);
    Ints sizes;
    std::vector<double> scales, roi;
    for (size_t d = 0; d < shape.size(); ++d) {
      const bool resized = d >= 2 ? rng_.Flip(0.8) : rng_.Flip(0.1);
      sizes.push_back(resized ? rng_.Between(1, 12) : shape[d]);
      // Coordinates follow the scale, also where the extent stays.
      const double scale = static_cast<double>(sizes[d]) / static_cast<double>(shape[d]);
      scales.push_back(d == 1 && rng_.Flip(0.2) ? 1.01 * scale : scale);
    }
    for (size_t d = 0; crop && d < 2 * shape.size(); ++d) {
      const bool image = d % shape.size() >= 2;
      roi.push_back(d < shape.size() ? (image ? -0.25 : 0) : (image ? 1.25 : 1));
    }
    return *builder_.Add("Resize", {x},
                         {{"output_sizes", sizes},
                          {"scales", scales},
                          {"roi", roi},
                          {"mode", std::string(kModes[rng_.Below(3)])},
                          {"coordinate_transformation_mode",
                           std::string(crop ? "tf_crop_and_resize" : "half_pixel")},
                          {"extrapolation_value", rng_.Flip() ? 0.0 : 1.5}});
  }

  Rng rng_;
  GraphBuilder builder_;
  size_t spatial_ = 2;
};

TEST(CpuResize, BetweenConvolutionsOfEveryLayout) {
  std::set<std::string> kernels;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    CaseBuilder builder(seed);
    const Graph graph = builder.Build();
    SCOPED_TRACE(testing::Message() << PrintGraph(graph));
    for (const std::string& kernel : ExpectMatches(graph, RandomInputs(builder.rng(), graph),
                                                   {.threads = seed % 2 == 0 ? 2 : 1})) {
      kernels.insert(kernel);
    }
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_EQ(kernels.count("resample"), 1u);
  EXPECT_EQ(kernels.count("definition"), 0u);
}

/// Row-major images about as wide as a few vectors, up and down, with infinities and NaNs in
/// corners and in the middle.
TEST(CpuResize, RowsOfImages) {
  Rng rng(7);
  for (const int64_t width : {1, 5, 7, 8, 9, 20, 33}) {
    for (const double scale : {0.4, 1.5, 2.0, 8.0}) {
      for (const char* mode : {"nearest", "linear", "cubic"}) {
        for (const bool antialias : {false, true}) {
          if (antialias && mode[0] == 'n') continue;
          const Shape shape = {1, 2, 6, width};
          Ints sizes = shape;
          std::vector<double> scales(4, 1.0);
          for (const size_t d : {2, 3}) {
            sizes[d] =
                std::max<int64_t>(1, static_cast<int64_t>(scale * static_cast<double>(shape[d])));
            scales[d] = static_cast<double>(sizes[d]) / static_cast<double>(shape[d]);
          }
          const bool special = rng.Flip();
          CheckOperator("Resize", {{DType::kF32, shape}},
                        {{"output_sizes", sizes},
                         {"scales", scales},
                         {"mode", std::string(mode)},
                         {"coordinate_transformation_mode",
                          std::string(rng.Flip() ? "half_pixel" : "align_corners")},
                         {"antialias", int64_t{antialias}}},
                        {}, [&](std::vector<HostValue>& values) {
                          if (!special) return;
                          values[0].scalars.front() = std::numeric_limits<double>::infinity();
                          values[0].scalars.back() = -std::numeric_limits<double>::infinity();
                          values[0].scalars[values[0].scalars.size() / 2] =
                              std::numeric_limits<double>::quiet_NaN();
                        });
          if (testing::Test::HasFailure()) return;
        }
      }
    }
  }
}

}  // namespace
}  // namespace mendel::cpu
