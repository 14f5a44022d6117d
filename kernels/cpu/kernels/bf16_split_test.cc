// Numbers split into two of bf16, and what products of them make of infinities, NaN, very large and
// very small numbers.

#include "kernels/cpu/kernels/bf16_split.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "base/random.h"
#include "graph/graph.h"
#include "gtest/gtest.h"
#include "kernels/cpu/kernels/low_precision.h"
#include "kernels/cpu/testing/test_support.h"
#include "runtime/backend.h"

namespace mendel::cpu {
namespace {

constexpr float kInfinite = std::numeric_limits<float>::infinity();
constexpr float kSmallestNormal = std::numeric_limits<float>::min();

std::vector<float> Specials() {
  std::vector<float> values = {0,         1,
                               1.5F,      0x1.0001p0F,
                               0x1.01p0F, 0x1.FFp0F,
                               0x1p-120F, 0x1.23456p-105F,
                               1e-40F,    kSmallestNormal,
                               1e30F};
  values.insert(values.end(), {kLargestBf16, 0x1.FEFFFEp127F, 0x1.FFp127F, 0x1.FF8p127F,
                               std::numeric_limits<float>::max(), kInfinite});
  const size_t positive = values.size();
  for (size_t k = 0; k < positive; ++k) values.push_back(-values[k]);
  values.push_back(std::numeric_limits<float>::quiet_NaN());
  return values;
}

/// Returns the index of element `channel` of row `row`.
size_t At(const SplitPlan& plan, int64_t row, int64_t channel) {
  const int64_t chunks = (plan.channels + plan.width - 1) / plan.width;
  const int64_t chunk = row / plan.positions * chunks + channel / plan.width;
  return static_cast<size_t>((chunk * plan.positions + row % plan.positions) * plan.width +
                             channel % plan.width);
}

void ExpectParts(float x, uint16_t first, uint16_t second, uint16_t low) {
  SCOPED_TRACE(testing::Message() << "number " << x);
  if (!std::isfinite(x)) {
    EXPECT_TRUE(std::isnan(x) ? std::isnan(BFloat16ToFloat(first)) : BFloat16ToFloat(first) == x);
    EXPECT_EQ(second, 0);
    EXPECT_EQ(low, 0);
    return;
  }
  EXPECT_EQ(first, second);
  const double high = BFloat16ToFloat(first), rest = BFloat16ToFloat(low);
  EXPECT_LE(std::fabs(high), static_cast<double>(kLargestBf16));
  EXPECT_LE(std::fabs(x - high), 0x1p-7 * std::fabs(x) + kSmallestNormal);
  EXPECT_LE(std::fabs(x - high - rest), 0x1p-16 * std::fabs(x) + kSmallestNormal);
  EXPECT_TRUE(std::isfinite(static_cast<float>(high) + static_cast<float>(rest)));
}

TEST(Bf16Split, PartsAddUpInEveryLayout) {
  MENDEL_SKIP_WITHOUT_BF16();
  const std::vector<float> specials = Specials();
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed);
    SplitPlan plan{rng.Between(1, 3), rng.Between(1, 9), rng.Between(1, 70), 1};
    plan.width = rng.Flip() ? plan.channels : int64_t{8} << rng.Between(0, 1);
    const int64_t rows = plan.images * plan.positions;
    // Not aligned, and bits that are any number.
    std::vector<float> from(1 + At(plan, rows - 1, plan.channels - 1) +
                            static_cast<size_t>(plan.width));
    for (float& x : from) {
      x = rng.Flip(0.2) ? specials[rng.Below(specials.size())]
                        : std::bit_cast<float>(static_cast<uint32_t>(rng.Below(1ULL << 32)));
    }
    constexpr uint16_t kUntouched = 0x1234;
    const auto size = static_cast<size_t>(3 * rows * plan.channels);
    std::vector<uint16_t> to(size + 2, kUntouched);
    const int64_t cut = rng.Between(0, rows);
    SplitRows(plan, from.data() + 1, 0, cut, to.data() + 1);
    SplitRows(plan, from.data() + 1, cut, rows, to.data() + 1);
    EXPECT_EQ(to.front(), kUntouched);
    EXPECT_EQ(to.back(), kUntouched);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t c = 0; c < plan.channels; ++c) {
        const uint16_t* parts = &to[static_cast<size_t>(1 + 3 * row * plan.channels + c)];
        ExpectParts(from[1 + At(plan, row, c)], parts[0], parts[plan.channels],
                    parts[2 * plan.channels]);
      }
    }
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Bf16Split, PlansFollowTheLayout) {
  const Shape shape = {2, 20, 3, 5};
  const auto expect = [&](const Layout& layout, const SplitRowsOf& rows,
                          const std::optional<SplitPlan>& wanted) {
    const std::optional<SplitPlan> plan = PlanSplit(layout, shape, rows);
    ASSERT_EQ(plan.has_value(), wanted.has_value());
    if (!plan.has_value()) return;
    EXPECT_EQ(plan->images, wanted->images);
    EXPECT_EQ(plan->positions, wanted->positions);
    EXPECT_EQ(plan->channels, wanted->channels);
    EXPECT_EQ(plan->width, wanted->width);
  };
  expect(ChannelsLastLayout(shape), {1, 1}, SplitPlan{1, 30, 20, 20});
  expect(BlockedLayout(shape, 16), {1, 1}, SplitPlan{2, 15, 20, 16});
  expect(BlockedLayout(shape, 16), {1, 16}, SplitPlan{1, 2, 32 * 15, 32 * 15});
  expect(PlainLayout(shape), {3, 1}, SplitPlan{1, 120, 5, 5});
  expect(PlainLayout(shape), {1, 1}, std::nullopt);
  expect(ChannelsLastLayout(shape), {3, 1}, std::nullopt);
  expect(ChannelsLastLayout(shape), {1, 16}, std::nullopt);
  expect(BlockedLayout(shape, 8), {1, 16}, std::nullopt);
  Layout part_of_concatenation = BlockedLayout(shape, 16);
  part_of_concatenation.strides[0] *= 2;
  expect(part_of_concatenation, {1, 1}, std::nullopt);
}

TEST(Bf16Split, WeightsHaveTheirPartsAlongTheAxis) {
  const std::vector<float> specials = Specials();
  const auto count = static_cast<int64_t>(specials.size());
  HostValue weights{{DType::kF32, {2, count, 3}}, {}, {}};
  for (int64_t i = 0; i < 6 * count; ++i)
    weights.scalars.push_back(specials[static_cast<size_t>(i / 3 % count)]);
  for (const int64_t extent : {count, count + 5}) {
    const Tensor parts = SplitWeights(weights, 1, extent);
    ASSERT_EQ(parts.type(), (TensorType{DType::kBF16, {2, 3 * extent, 3}}));
    const std::span<const uint16_t> bits = parts.As<uint16_t>();
    for (int64_t i = 0; i < 6 * extent; ++i) {
      const int64_t row = i / (3 * extent), column = i % (3 * extent);
      const auto at = static_cast<size_t>(9 * extent * row + column),
                 step = static_cast<size_t>(3 * extent);
      const float number =
          column < 3 * count ? static_cast<float>(weights.At(3 * count * row + column)) : 0;
      ExpectParts(number, bits[at], bits[at + 2 * step], bits[at + step]);
    }
  }
}

/// x w for every pair of special numbers, as a product of depth one or a pointwise convolution.
Graph OuterProduct(const std::vector<float>& values, bool convolution) {
  const auto count = static_cast<int64_t>(values.size());
  const std::vector<double> doubles(values.begin(), values.end());
  GraphBuilder builder;
  const Shape weights = convolution ? Shape{count, 1, 1} : Shape{1, count};
  const ValueId x =
      builder.Input("x", {DType::kF32, convolution ? Shape{count, 1, 1} : Shape{count, 1}});
  const ValueId w = builder.Constant(Tensor::FromDoubles({DType::kF32, weights}, doubles), "w");
  const Attributes attrs = {
      {"strides", Ints{1}}, {"dilations", Ints{1}}, {"pads", Ints{0, 0}}, {"group", int64_t{1}}};
  builder.Output(
      "y", convolution ? *builder.Add("Conv", {x, w}, attrs) : *builder.Add("MatMul", {x, w}));
  return *builder.Build();
}

void ExpectProduct(float x, float w, double result) {
  SCOPED_TRACE(testing::Message() << x << " times " << w << " is " << result);
  const double exact = static_cast<double>(x) * static_cast<double>(w);
  if (!std::isfinite(x) || !std::isfinite(w)) {
    // A processor that takes denormal numbers as zero makes infinity times one of them NaN.
    const bool denormal =
        std::fabs(exact) == kInfinite && std::min(std::fabs(x), std::fabs(w)) < kSmallestNormal;
    EXPECT_TRUE(denormal || (std::isnan(exact) ? std::isnan(result) : result == exact));
    return;
  }
  if (std::fabs(exact) > 0x1.FCp127) {  // terms may overflow, with unlike signs even
    EXPECT_FALSE(std::fabs(result) < 0x1.FBp127);
    return;
  }
  EXPECT_LE(std::fabs(result - exact),
            0x1p-14 * std::fabs(exact) + 2 * kSmallestNormal * (1 + std::fabs(x) + std::fabs(w)));
}

TEST(Bf16Split, ProductsOfSpecialNumbersAreThoseOfF32) {
  MENDEL_SKIP_WITHOUT_BF16();
  std::vector<float> values = Specials();
  for (const bool convolution : {false, true}) {
    SCOPED_TRACE(convolution ? "Conv" : "MatMul");
    const Graph graph = OuterProduct(values, convolution);
    CompileOptions options;
    options.numerics = Numerics::kHigh;
    options.algorithms[graph.outputs()[0].value.node] = kBf16x3Algorithm;
    const auto executable = FindBackend("cpu")->Compile(graph, options);
    ASSERT_TRUE(executable.ok()) << executable.status();
    const std::vector<double> doubles(values.begin(), values.end());
    const Tensor x = Tensor::FromDoubles(graph.type({graph.inputs()[0], 0}), doubles);
    const auto results = RunOnTensors(**executable, graph, {{x}});
    ASSERT_TRUE(results.ok()) << results.status();
    for (size_t i = 0; i < values.size(); ++i) {
      for (size_t k = 0; k < values.size(); ++k) {
        ExpectProduct(values[i], values[k],
                      (*results)[0].DoubleAt(static_cast<int64_t>(i * values.size() + k)));
      }
    }
  }
}

TEST(Bf16Split, ReadersShareOneSplit) {
  MENDEL_SKIP_WITHOUT_BF16();
  GraphBuilder builder;
  const ValueId x = builder.Input("x", {DType::kF32, {6, 40}});
  CompileOptions options;
  options.numerics = Numerics::kHigh;
  for (const double value : {0.25, 0.75}) {
    const ValueId w =
        builder.Constant(Tensor::Filled({DType::kF32, {40, 24}}, value), value < 0.5 ? "w" : "v");
    const ValueId y = *builder.Add("MatMul", {x, w});
    options.algorithms[y.node] = kBf16x3Algorithm;
    builder.Output(value < 0.5 ? "y" : "z", y);
  }
  const auto executable = FindBackend("cpu")->Compile(*builder.Build(), options);
  ASSERT_TRUE(executable.ok()) << executable.status();
  int splits = 0;
  for (const Step& step : (*executable)->steps()) splits += step.kernel == "split into bf16";
  EXPECT_EQ(splits, 1);
  EXPECT_EQ((*executable)->steps().size(), 3u);
}

}  // namespace
}  // namespace mendel::cpu
