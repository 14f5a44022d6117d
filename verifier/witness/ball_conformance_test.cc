// Every operator's meaning in balls: enclosures at two precisions meet, are tight, and hold what
// doubles compute.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "base/status.h"
#include "graph/sample_node.h"
#include "verifier/witness/ball_evaluator.h"

namespace mendel {
namespace {

constexpr uint64_t kSeeds = 30;

class BallConformance : public testing::TestWithParam<const OpDefinition*> {};

/// `as_balls`: numbers come as balls, as they do from other operators.
absl::StatusOr<BallValue> At(int precision, const SampledNode& node,
                             const std::vector<HostValue>& inputs, int output,
                             bool as_balls = false) {
  const BallContext context(precision);
  const BallScope scope(context);
  std::vector<BallValue> values;
  for (const HostValue& input : inputs) {
    BallValue& value = values.emplace_back(BallValue::FromHost(input));
    if (!as_balls || IsIntegral(input.type.dtype)) continue;
    for (double number : input.scalars) value.balls.push_back(Ball::FromDouble(number));
    value.numbers.clear();
  }
  std::vector<const BallValue*> operands;
  for (const BallValue& value : values) operands.push_back(&value);
  return EvaluateNodeInBalls(*node.op, node.view(), operands, output);
}

/// One output of one sample: 128 bits against 256 bits and against doubles.
void Check(const SampledNode& node, const std::vector<HostValue>& inputs, const HostValue& real,
           int output, bool as_balls) {
  const auto coarse = At(128, node, inputs, output, as_balls);
  const auto fine = At(256, node, inputs, output, as_balls);
  // Values that do not fit the dtype are not enclosed.
  const bool integers =
      IsIntegral(real.type.dtype) && (node.op->name == "Cast" || node.op->name == "Pow");
  if (integers && coarse.status().code() == absl::StatusCode::kAborted) return;
  ASSERT_TRUE(coarse.ok()) << coarse.status();
  ASSERT_TRUE(fine.ok()) << fine.status();
  for (int64_t i = 0; i < NumElements(real.type); ++i) {
    const Ball a = coarse->At(i);
    const Ball b = fine->At(i);
    EXPECT_TRUE(MayBeEqual(a, b)) << "element " << i;
    EXPECT_LE(b.Log2Radius(), a.Log2Radius());
    const double value = real.At(i);
    if (!std::isfinite(value)) {
      EXPECT_FALSE(a.IsFinite()) << "element " << i << " is " << value << " in doubles, "
                                 << a.Middle() << " in balls";
      continue;
    }
    ASSERT_TRUE(a.IsFinite()) << "element " << i << " is " << value << " in doubles";
    EXPECT_LE(a.Log2Radius(), -90 + std::log2(std::max(1.0, std::abs(value)))) << "element " << i;
    EXPECT_NEAR(a.Middle(), value, 1e-11 * std::max(1.0, std::abs(value))) << "element " << i;
  }
}

TEST_P(BallConformance, EnclosesWhatDoublesCompute) {
  const OpDefinition& op = *GetParam();
  if (op.sample == nullptr) GTEST_SKIP() << op.name << " has no sampler";
  for (uint64_t seed = 1; seed <= kSeeds && !HasFailure(); ++seed) {
    Rng rng(seed);
    const absl::StatusOr<SampledNode> node = SampleNode(op, rng);
    ASSERT_TRUE(node.ok()) << node.status();
    SCOPED_TRACE(Cat("seed ", seed, ": ", DescribeNode(*node)));
    const std::vector<HostValue> inputs = SampleInputs(*node, rng);
    std::vector<const HostValue*> operands;
    for (const HostValue& input : inputs) operands.push_back(&input);
    const std::vector<HostValue> real = EvaluateNode(op, node->view(), operands);
    for (size_t k = 0; k < real.size(); ++k)
      Check(*node, inputs, real[k], static_cast<int>(k), seed % 2 == 0);
  }
}

/// One number of each input a number of the output: doubles then neither cancel nor overflow on the
/// way.
bool IsElementwise(const SampledNode& node) {
  const std::optional<AccessPattern> pattern =
      node.op->access == nullptr ? std::nullopt : node.op->access(node.view());
  if (!pattern.has_value()) return false;
  for (const InputAccess& input : pattern->inputs) {
    for (const DimAccess& dim : input.dims) {
      if (dim.whole || dim.count != 1) return false;
    }
  }
  return true;
}

/// Numbers far from the samplers' own: nothing may hang, abort or be distinguished from what it is.
TEST_P(BallConformance, HoldsAtExtremes) {
  const OpDefinition& op = *GetParam();
  if (op.sample == nullptr) GTEST_SKIP() << op.name << " has no sampler";
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr std::array<double, 14> kExtremes = {0,      -0.0,      1,         -1,        1e10,
                                                -1e10,  3e38,      -3e38,     1e-38,     1e-300,
                                                -1e300, 88.722839, kInfinity, -kInfinity};
  for (uint64_t seed = 1; seed <= kSeeds && !HasFailure(); ++seed) {
    Rng rng(seed);
    const absl::StatusOr<SampledNode> node = SampleNode(op, rng);
    ASSERT_TRUE(node.ok()) << node.status();
    SCOPED_TRACE(Cat("seed ", seed, ": ", DescribeNode(*node)));
    std::vector<HostValue> inputs = SampleInputs(*node, rng);
    std::vector<const HostValue*> operands;
    for (HostValue& input : inputs) {
      for (double& element : input.scalars) {
        if (rng.Flip(0.7)) element = kExtremes[rng.Below(kExtremes.size())];
      }
      operands.push_back(&input);
    }
    const std::vector<HostValue> real = EvaluateNode(op, node->view(), operands);
    for (size_t k = 0; k < real.size(); ++k) {
      const auto coarse = At(192, *node, inputs, static_cast<int>(k));
      const auto fine = At(768, *node, inputs, static_cast<int>(k));
      if (!coarse.ok() || !fine.ok()) continue;
      for (int64_t i = 0; i < NumElements(real[k].type); ++i) {
        const Ball ball = coarse->At(i);
        EXPECT_TRUE(MayBeEqual(ball, fine->At(i))) << "element " << i;
        const double value = real[k].At(i);
        if (!IsElementwise(*node) || !ball.IsFinite() || !std::isfinite(value) ||
            std::abs(value) < 1e-290)
          continue;
        EXPECT_LE(std::abs(ball.Middle() - value), 1e-7 * std::abs(value) + ball.ErrorOfMiddle())
            << "element " << i;
      }
    }
  }
}

/// Wide enough for products in slices, which the samples are not: groups, strides, padding, and an
/// input that is rounded already.
TEST(BallConvolution, EnclosesWhatDoublesCompute) {
  Rng rng(21);
  RecordProperty("seed", 21);
  for (const int64_t groups : {1, 2, 3}) {
    for (const bool rounded : {false, true}) {
      GraphBuilder builder;
      const auto draw = [&](Shape shape) {
        std::vector<double> values;
        for (int64_t i = NumElements(shape); i > 0; --i)
          values.push_back(static_cast<float>(rng.Normal()));
        return Tensor::FromDoubles({DType::kF32, std::move(shape)}, values);
      };
      const Tensor image = draw({2, 3 * groups, 9, 7});
      ValueId x = builder.Input("x", image.type());
      if (rounded) x = *builder.Add("Tanh", {x});
      const ValueId y = *builder.Add(
          "Conv",
          {x, builder.Constant(draw({5 * groups, 3, 3, 2})), builder.Constant(draw({5 * groups}))},
          {{"strides", Ints{2, 1}},
           {"dilations", Ints{1, 2}},
           {"pads", Ints{1, 1, 0, 2}},
           {"group", groups}});
      builder.Output("y", y);
      const Graph graph = *builder.Build();
      const std::vector<HostValue> inputs = {HostValue::FromTensor(image)};
      const auto real = Evaluate(graph, inputs);
      ASSERT_TRUE(real.ok()) << real.status();
      for (const int precision : {64, 128, 300}) {
        const BallContext context(precision);
        const auto balls = EvaluateInBalls(graph, inputs, context, Deadline::Never());
        ASSERT_TRUE(balls.ok()) << balls.status();
        for (int64_t i = 0; i < NumElements((*real)[0].type); ++i) {
          const Ball ball = (*balls)[0].At(i);
          ASSERT_NEAR(ball.Middle(), (*real)[0].At(i), 1e-12)
              << "element " << i << " of " << groups << " groups at " << precision;
          ASSERT_LE(ball.Log2Radius(), 12 - precision);
        }
      }
    }
  }
}

std::string NameOf(const testing::TestParamInfo<const OpDefinition*>& info) {
  return std::string(info.param->name);
}
INSTANTIATE_TEST_SUITE_P(All, BallConformance, testing::ValuesIn(AllOps().begin(), AllOps().end()),
                         NameOf);

}  // namespace
}  // namespace mendel
