// Depthwise convolutions with and without the pointwise convolution before them: the kernels of
// every instruction set against sums in double, then which nodes of a graph become one step.

#include "kernels/cpu/kernels/depthwise.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "graph/random_graph.h"
#include "gtest/gtest.h"
#include "kernels/cpu/testing/direct_case.h"
#include "kernels/cpu/testing/test_support.h"

namespace mendel::cpu {
namespace {

class DepthwiseCase : public Case {
 public:
  DepthwiseCase(const DirectIsa& isa, Rng& rng) : Case(isa, rng) {
    plan_.isa = &isa;
    plan_.batch = rng.Between(1, 3);
    plan_.channels = rng.Between(1, rng.Flip() ? 40 : 200);
    if (rng.Flip()) plan_.inputs = rng.Between(1, 40);
    for (size_t d = 0; d < 2; ++d)
      ChooseWindow(plan_, d, {1, 2, 3, 3, 5, 7}, 0.4, d == 1 ? 40 : 12);
    const int64_t in[] = {1, plan_.in[0], plan_.in[1]}, out[] = {1, plan_.out[0], plan_.out[1]};
    plan_.src_padded = rng.Flip();
    plan_.padded = rng.Flip();
    plan_.averaged = rng.Flip();
    src_box_ = StridedBox(!plan_.src_padded, plan_.batch, Sources(), isa.lanes, in, rng);
    dst_box_ = StridedBox(!plan_.padded, plan_.batch, plan_.channels, isa.lanes, out, rng);
    plan_.src = src_box_.strides;
    plan_.dst = dst_box_.strides;
    CutDepthwise(plan_, threads_);
  }

  std::string Describe() const {
    std::string text = Cat(isa_.name, plan_.padded ? " blocked" : " channels-last",
                           plan_.src_padded ? " from blocked" : " from last",
                           plan_.averaged ? " averaged" : "", " batch ", plan_.batch, " channels ",
                           plan_.inputs, " -> ", plan_.channels, " threads ", threads_);
    for (size_t d = 0; d < 2; ++d) text += DescribeWindow(plan_, d);
    return text;
  }

  double Run() {
    src_ = src_box_.Random(rng_);
    const std::vector<double> weights =
        RandomDoubles(plan_.channels * plan_.taps[0] * plan_.taps[1]);
    const std::vector<double> scale = RandomDoubles(rng_.Flip() ? plan_.channels : 0);
    product_ = RandomDoubles(plan_.channels * plan_.inputs);
    product_scale_ = RandomDoubles(rng_.Flip() ? plan_.channels : 0);
    product_bias_ = Random(Round(plan_.channels));
    product_epilogue_.bias = product_bias_.data();
    ChooseActivation(product_epilogue_);
    GuardedFloats packed = Zeros(plan_.WeightFloats()),
                  packed_product = Zeros(plan_.ProductWeightFloats());
    PackDepthwiseWeights(plan_, weights, scale, packed.data());
    PackProductWeights(plan_, product_, product_scale_, packed_product.data());
    const int64_t channels = plan_.padded ? Round(plan_.channels) : plan_.channels;
    std::vector<float> means(static_cast<size_t>(plan_.averaged ? plan_.batch * plan_.channels : 0),
                             std::numeric_limits<float>::quiet_NaN());
    Execute(plan_.channels, dst_box_, plan_.ScratchBytes(),
            [&](const WinogradEpilogue& epilogue, float* dst, float* scratch) {
              const DepthwiseOperands operands{src_.data(),
                                               plan_.inputs > 0 ? packed_product.data() : nullptr,
                                               packed.data(), dst, means.data()};
              RunDepthwise(plan_, operands, product_epilogue_, epilogue, scratch);
            });
    for (int64_t n = 0; n < plan_.batch; ++n) {
      for (int64_t c = 0; c < channels; ++c) {
        double whole = 0;
        for (int64_t p = 0; p < plan_.out[0] * plan_.out[1]; ++p) {
          const int64_t x[] = {0, p / plan_.out[1], p % plan_.out[1]};
          const int64_t at = dst_box_.At(n, c, x);
          if (c >= plan_.channels) {
            CheckZero(at);
          } else {
            whole += Check(
                at, c, Sum(weights, n, c, x) * (scale.empty() ? 1 : scale[static_cast<size_t>(c)]));
          }
        }
        if (!plan_.averaged || c >= plan_.channels) continue;
        CheckNumber(means[static_cast<size_t>(n * plan_.channels + c)],
                    whole / static_cast<double>(plan_.out[0] * plan_.out[1]));
      }
    }
    return Error();
  }

 private:
  int64_t Sources() const { return plan_.inputs > 0 ? plan_.inputs : plan_.channels; }

  /// Returns the value that the convolution reads.
  double Value(int64_t n, int64_t c, const int64_t* x) const {
    const auto source = [&](int64_t channel) {
      return static_cast<double>(src_[static_cast<size_t>(src_box_.At(n, channel, x))]);
    };
    if (plan_.inputs == 0) return source(c);
    double sum = 0;
    for (int64_t i = 0; i < plan_.inputs; ++i)
      sum += source(i) * product_[static_cast<size_t>(c * plan_.inputs + i)];
    if (!product_scale_.empty()) sum *= product_scale_[static_cast<size_t>(c)];
    return Activate(product_epilogue_,
                    sum + static_cast<double>(product_bias_[static_cast<size_t>(c)]));
  }

  double Sum(const std::vector<double>& weights, int64_t n, int64_t c, const int64_t* at) const {
    double sum = 0;
    const int64_t taps = plan_.taps[0] * plan_.taps[1];
    for (int64_t tap = 0; tap < taps; ++tap) {
      const int64_t x[] = {
          0, at[1] * plan_.stride[0] - plan_.pad[0] + tap / plan_.taps[1] * plan_.dilation[0],
          at[2] * plan_.stride[1] - plan_.pad[1] + tap % plan_.taps[1] * plan_.dilation[1]};
      const bool inside = x[1] >= 0 && x[1] < plan_.in[0] && x[2] >= 0 && x[2] < plan_.in[1];
      if (inside) sum += weights[static_cast<size_t>(c * taps + tap)] * Value(n, c, x);
    }
    return sum;
  }

  DepthwisePlan plan_;
  StridedBox src_box_, dst_box_;
  GuardedFloats src_, product_bias_;
  std::vector<double> product_, product_scale_;
  WinogradEpilogue product_epilogue_{};
};

class DepthwiseKernels : public IsaTest {};
TEST_P(DepthwiseKernels, MeanTheirSums) {
  RunCases<DepthwiseCase>(Kernels(&DirectAvx2, &DirectAvx512), "depthwise");
}
MENDEL_FOR_ISAS(DepthwiseKernels, NativeIsa::kAvx2, NativeIsa::kAvx512);

/// An obstacle prevents computing the pointwise convolution together with the depthwise one.
enum class Obstacle { kNone, kReadTwice, kOutput, kResidual, kStride, kPadded };

class DepthwiseGraphs {
 public:
  explicit DepthwiseGraphs(uint64_t seed) : rng_(seed) {}
  Rng& rng() { return rng_; }

  Graph Build(Obstacle obstacle) {
    const int64_t channels = rng_.Between(3, 70), size = rng_.Between(8, 20);
    const ValueId x =
        builder_.Input("x", {DType::kF32, {rng_.Between(1, 2), rng_.Between(1, 20), size, size}});
    const int64_t stride = obstacle == Obstacle::kStride ? 2 : 1,
                  pad = obstacle == Obstacle::kPadded ? 1 : 0;
    ValueId wide = Conv(x, channels, 1, stride, pad, 1);
    if (obstacle == Obstacle::kResidual)
      wide = *builder_.Add("Add", {wide, builder_.Input("r", builder_.type(wide))});
    wide = Activated(wide);
    ValueId y = Conv(wide, channels, rng_.Flip() ? 3 : 5, rng_.Flip() ? 2 : 1, 1, channels);
    if (rng_.Flip()) y = *builder_.Add("Add", {y, builder_.Input("s", builder_.type(y))});
    builder_.Output("y", Activated(y));
    if (obstacle == Obstacle::kReadTwice) builder_.Output("z", *builder_.Add("Neg", {wide}));
    if (obstacle == Obstacle::kOutput) builder_.Output("z", wide);
    return *builder_.Build();
  }

 private:
  ValueId Conv(ValueId x, int64_t out, int64_t kernel, int64_t stride, int64_t pad, int64_t group) {
    const Shape shape = {out, builder_.type(x).shape[1] / group, kernel, kernel};
    const auto constant = [&](const Shape& of) {
      std::vector<double> values(static_cast<size_t>(NumElements(of)));
      for (double& value : values) value = rng_.Uniform(-0.5, 0.5);
      return builder_.Constant(Tensor::FromDoubles({DType::kF32, of}, values),
                               Cat("w", weights_++));
    };
    return *builder_.Add("Conv", {x, constant(shape), constant({out})},
                         {{"strides", Ints{stride, stride}},
                          {"dilations", Ints{1, 1}},
                          {"pads", Ints{pad, pad, pad, pad}},
                          {"group", group}});
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

  Rng rng_;
  GraphBuilder builder_;
  int weights_ = 0;
};

/// Kernels of the program in which every depthwise convolution has this algorithm.
std::vector<std::string> KernelsWith(const Graph& graph, std::string_view algorithm, Rng& rng) {
  CompileOptions options;
  options.threads = static_cast<int>(rng.Between(1, 3));
  for (int32_t id = 0; id < static_cast<int32_t>(graph.nodes().size()); ++id) {
    const std::vector<std::string> names =
        FindBackend("cpu")->Algorithms(graph, id, Numerics::kStrict);
    if (std::find(names.begin(), names.end(), algorithm) != names.end())
      options.algorithms[id] = algorithm;
  }
  return ExpectMatches(graph, RandomInputs(rng, graph), options);
}

TEST(Depthwise, TakesThePointwiseConvolutionThatOnlyItReads) {
  if (DirectIsaHere() == nullptr) GTEST_SKIP() << "this machine has neither AVX2 nor AVX-512";
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    DepthwiseGraphs graphs(seed);
    const Graph graph = graphs.Build(Obstacle::kNone);
    const std::vector<std::string> kernels =
        KernelsWith(graph, kNativeExpandedDepthwise, graphs.rng());
    EXPECT_EQ(CountOf(kernels, kNativeExpandedDepthwise), 1);
    EXPECT_EQ(kernels.size() - static_cast<size_t>(CountOf(kernels, "reorder")), 1u)
        << testing::PrintToString(kernels);
    EXPECT_EQ(
        CountOf(KernelsWith(graph, kNativeDepthwise, graphs.rng()), Cat(kNativeDepthwise, ":avx")),
        1);
  }
}

TEST(Depthwise, LeavesAPointwiseConvolutionThatOthersRead) {
  if (DirectIsaHere() == nullptr) GTEST_SKIP() << "this machine has neither AVX2 nor AVX-512";
  for (const Obstacle obstacle : {Obstacle::kReadTwice, Obstacle::kOutput, Obstacle::kResidual,
                                  Obstacle::kStride, Obstacle::kPadded}) {
    for (uint64_t seed = 1; seed <= 6; ++seed) {
      SCOPED_TRACE(testing::Message()
                   << "obstacle " << static_cast<int>(obstacle) << " seed " << seed);
      DepthwiseGraphs graphs(seed);
      const Graph graph = graphs.Build(obstacle);
      EXPECT_EQ(CountOf(KernelsWith(graph, kNativeExpandedDepthwise, graphs.rng()),
                        kNativeExpandedDepthwise),
                0);
    }
  }
}

}  // namespace
}  // namespace mendel::cpu
