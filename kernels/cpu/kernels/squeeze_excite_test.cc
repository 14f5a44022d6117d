// Tests of depthwise and pointwise convolutions with a squeeze-and-excitation between them, in
// random forms, against double. They check which parts the convolutions compute, and that an
// obstacle makes those parts separate steps.

#include <algorithm>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "graph/random_graph.h"
#include "gtest/gtest.h"
#include "kernels/cpu/kernels/depthwise.h"
#include "kernels/cpu/kernels/pointwise.h"
#include "kernels/cpu/testing/test_support.h"

namespace mendel::cpu {
namespace {

enum class Obstacle {
  kNone,
  kGatedReadTwice,   ///< the gated value
  kMeanOfOneAxis,    ///< rows are averaged, not positions
  kGateOfPositions,  ///< one factor a position, not a channel
};

class Block {
 public:
  explicit Block(Rng& rng) : rng_(rng), spatial_(rng.Flip(0.8) ? 2 : 1) {}

  Graph Build(Obstacle obstacle) {
    const int64_t channels = rng_.Between(3, rng_.Flip() ? 30 : 90);
    Shape shape = {rng_.Between(1, 3), rng_.Between(1, 30)};
    for (size_t d = 0; d < spatial_; ++d)
      shape.push_back(rng_.Between(4, d + 1 == spatial_ ? 24 : 9));
    const ValueId x = builder_.Input("x", {DType::kF32, shape});
    const ValueId wide = Activated(Conv(x, channels, 1, 1, 1));
    const ValueId deep =
        Activated(Conv(wide, channels, rng_.Flip() ? 3 : 5, rng_.Between(1, 2), channels));
    Ints axes;
    for (size_t d = obstacle == Obstacle::kMeanOfOneAxis ? 1 : 0; d < spatial_; ++d)
      axes.push_back(static_cast<int64_t>(d + 2));
    if (obstacle == Obstacle::kMeanOfOneAxis && axes.empty()) axes = {1};
    const ValueId mean =
        *builder_.Add("ReduceMean", {deep}, {{"axes", axes}, {"keepdims", int64_t{1}}});
    const int64_t gates = axes[0] == 1 ? 1 : channels;
    ValueId gate = Gate(Conv(Activated(Conv(mean, rng_.Between(1, 20), 1, 1, 1)), gates, 1, 1, 1));
    if (obstacle == Obstacle::kGateOfPositions) gate = *builder_.Add("Tanh", {deep});
    const ValueId gated =
        *builder_.Add("Mul", rng_.Flip() ? std::vector{deep, gate} : std::vector{gate, deep});
    ValueId y = Conv(gated, rng_.Between(1, rng_.Flip() ? 20 : 100), 1, rng_.Between(1, 2), 1);
    if (rng_.Flip()) y = *builder_.Add("Add", {y, builder_.Input("r", builder_.type(y))});
    builder_.Output("y", Activated(y));
    if (obstacle == Obstacle::kGatedReadTwice) builder_.Output("z", gated);
    if (obstacle == Obstacle::kNone && rng_.Flip()) builder_.Output("deep", deep);
    if (obstacle == Obstacle::kNone && rng_.Flip()) builder_.Output("mean", mean);
    return *builder_.Build();
  }

 private:
  ValueId Constant(const Shape& shape) {
    std::vector<double> values(static_cast<size_t>(NumElements(shape)));
    for (double& value : values) value = rng_.Uniform(-0.5, 0.5);
    return builder_.Constant(Tensor::FromDoubles({DType::kF32, shape}, values),
                             Cat("w", weights_++));
  }

  ValueId Conv(ValueId x, int64_t out, int64_t kernel, int64_t stride, int64_t group) {
    Shape shape = {out, builder_.type(x).shape[1] / group};
    shape.resize(2 + spatial_, kernel);
    const Attributes attrs = {{"strides", Ints(spatial_, stride)},
                              {"dilations", Ints(spatial_, 1)},
                              {"pads", Ints(2 * spatial_, kernel / 2)},
                              {"group", group}};
    return *builder_.Add("Conv", {x, Constant(shape), Constant({out})}, attrs);
  }

  ValueId Activated(ValueId x) {
    switch (rng_.Below(4)) {
      case 0:
        return *builder_.Add("Relu", {x});
      case 1:
        return *builder_.Add("Mul", {x, *builder_.Add("Sigmoid", {x})});
      case 2:
        return *builder_.Add("HardSwish", {x});
      default:
        return x;
    }
  }

  ValueId Gate(ValueId x) {
    return rng_.Flip() ? *builder_.Add("Sigmoid", {x})
                       : *builder_.Add("HardSigmoid", {x}, {{"alpha", 1.0 / 6}, {"beta", 0.5}});
  }

  Rng& rng_;
  size_t spatial_;
  GraphBuilder builder_;
  int weights_ = 0;
};

/// Kernels of the program by native kernels, in which depthwise convolutions have this algorithm.
std::vector<std::string> NativeKernels(const Graph& graph, std::string_view depthwise, Rng& rng) {
  CompileOptions options;
  options.threads = static_cast<int>(rng.Between(1, 3));
  for (int32_t id = 0; id < static_cast<int32_t>(graph.nodes().size()); ++id) {
    for (const std::string& name : FindBackend("cpu")->Algorithms(graph, id, Numerics::kStrict)) {
      if (name == depthwise || name == kNativePointwise) options.algorithms[id] = name;
    }
  }
  return ExpectMatches(graph, RandomInputs(rng, graph), options);
}

TEST(SqueezeExcite, IsPartOfTheConvolutions) {
  if (DirectIsaHere() == nullptr) GTEST_SKIP() << "this machine has neither AVX2 nor AVX-512";
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed);
    const Graph graph = Block(rng).Build(Obstacle::kNone);
    for (const std::string_view depthwise : {kNativeDepthwise, kNativeExpandedDepthwise}) {
      const std::vector<std::string> kernels = NativeKernels(graph, depthwise, rng);
      const int64_t pointwise = depthwise == kNativeDepthwise ? 4 : 3;
      EXPECT_EQ(CountOf(kernels, kNativePointwise), pointwise) << testing::PrintToString(kernels);
      EXPECT_EQ(CountOf(kernels, kNativeDepthwise), 1) << testing::PrintToString(kernels);
      EXPECT_EQ(CountOf(kernels, "reduce"), 0) << testing::PrintToString(kernels);
      // A hard sigmoid is an elementwise step of its own.
      EXPECT_EQ(CountOf(kernels, "tile Mul"), 0) << testing::PrintToString(kernels);
    }
    if (testing::Test::HasFailure()) return;
  }
}

TEST(SqueezeExcite, LeavesWhatOthersRead) {
  if (DirectIsaHere() == nullptr) GTEST_SKIP() << "this machine has neither AVX2 nor AVX-512";
  for (const Obstacle obstacle :
       {Obstacle::kGatedReadTwice, Obstacle::kMeanOfOneAxis, Obstacle::kGateOfPositions}) {
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      SCOPED_TRACE(testing::Message()
                   << "obstacle " << static_cast<int>(obstacle) << " seed " << seed);
      Rng rng(seed);
      const Graph graph = Block(rng).Build(obstacle);
      const std::vector<std::string> kernels = NativeKernels(graph, kNativeExpandedDepthwise, rng);
      // A partly used last block of channels makes two steps: whole blocks and the rest.
      EXPECT_EQ(CountOf(kernels, "reduce") > 0, obstacle == Obstacle::kMeanOfOneAxis)
          << testing::PrintToString(kernels);
      EXPECT_GE(CountOf(kernels, "tile"), 1) << testing::PrintToString(kernels);
    }
  }
}

}  // namespace
}  // namespace mendel::cpu
