// Direct and grouped convolutions of every instruction set, against sums in double.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "graph/graph.h"
#include "graph/random_graph.h"
#include "gtest/gtest.h"
#include "kernels/cpu/kernels/direct_conv.h"
#include "kernels/cpu/kernels/grouped.h"
#include "kernels/cpu/kernels/pointwise.h"
#include "kernels/cpu/testing/direct_case.h"
#include "kernels/cpu/testing/test_support.h"
#include "runtime/backend.h"

namespace mendel::cpu {
namespace {

/// `Plan`: DirectConvPlan or GroupedPlan.
template <class Plan>
class WindowCase : public Case {
 public:
  WindowCase(const DirectIsa& isa, Rng& rng) : Case(isa, rng) {
    plan_.isa = &isa;
    plan_.batch = rng.Between(1, 2);
  }

  std::string Describe() const {
    std::string text =
        Cat(isa_.name, last_ ? " channels-last" : " blocked", " batch ", plan_.batch, " channels ",
            sources_, " -> ", outputs_, " each of ", inputs_, " threads ", threads_);
    for (size_t d = 0; d < 3; ++d) text += DescribeWindow(plan_, d);
    return text;
  }

 protected:
  /// Each output sums over `inputs` of the source's channels. Chooses the rest.
  void Choose(int64_t sources, int64_t outputs, int64_t inputs) {
    sources_ = sources, outputs_ = outputs, inputs_ = inputs;
    last_ = rng_.Flip() && sources % isa_.lanes == 0 && outputs % isa_.lanes == 0;
    for (size_t d = 0; d < 3; ++d) {
      if (d == 2 || !rng_.Flip(0.4)) ChooseWindow(plan_, d, {1, 2, 3, 3, 5}, 0.3, d == 2 ? 40 : 5);
    }
    src_ = StridedBox(last_, plan_.batch, sources, isa_.lanes, plan_.in, rng_);
    dst_ = StridedBox(last_, plan_.batch, outputs, isa_.lanes, plan_.out, rng_);
    plan_.src = src_.strides;
    plan_.dst = dst_.strides;
  }

  /// `pack` and `run` are those of the plan.
  template <class Pack, class Execution>
  double Compare(const Pack& pack, const Execution& run) {
    const GuardedFloats src = src_.Random(rng_);
    const std::vector<double> weights = RandomDoubles(outputs_ * inputs_ * plan_.Taps());
    const std::vector<double> scale = RandomDoubles(rng_.Flip() ? outputs_ : 0);
    GuardedFloats packed = Zeros(plan_.WeightFloats());
    pack(plan_, weights, scale, packed.data());
    Execute(outputs_, dst_, plan_.ScratchBytes(),
            [&](const WinogradEpilogue& epilogue, float* dst, float* scratch) {
              run(plan_, src.data(), packed.data(), epilogue, dst, scratch);
            });
    int64_t x[3];
    for (int64_t n = 0; n < plan_.batch; ++n) {
      for (int64_t o = 0; o < (last_ ? outputs_ : Round(outputs_)); ++o) {
        for (x[0] = 0; x[0] < plan_.out[0]; ++x[0]) {
          for (x[1] = 0; x[1] < plan_.out[1]; ++x[1]) {
            for (x[2] = 0; x[2] < plan_.out[2]; ++x[2]) {
              const int64_t at = dst_.At(n, o, x);
              if (o >= outputs_) {
                CheckZero(at);
              } else {
                Check(at, o,
                      Sum(src, weights, n, o, x) *
                          (scale.empty() ? 1 : scale[static_cast<size_t>(o)]));
              }
            }
          }
        }
      }
    }
    return Error();
  }

  Plan plan_;

 private:
  double Sum(const GuardedFloats& src, const std::vector<double>& weights, int64_t n, int64_t o,
             const int64_t* at) const {
    const int64_t first = o * (sources_ / inputs_) / outputs_ * inputs_;  // of the group's channels
    double sum = 0;
    for (int64_t tap = 0; tap < plan_.Taps(); ++tap) {
      int64_t x[3], rest = tap;
      bool inside = true;
      for (size_t d = 3; d-- > 0; rest /= plan_.taps[d]) {
        x[d] = at[d] * plan_.stride[d] - plan_.pad[d] + rest % plan_.taps[d] * plan_.dilation[d];
        inside = inside && x[d] >= 0 && x[d] < plan_.in[d];
      }
      for (int64_t c = 0; inside && c < inputs_; ++c) {
        sum += weights[static_cast<size_t>((o * inputs_ + c) * plan_.Taps() + tap)] *
               static_cast<double>(src[static_cast<size_t>(src_.At(n, first + c, x))]);
      }
    }
    return sum;
  }

  int64_t sources_ = 1, outputs_ = 1, inputs_ = 1;
  StridedBox src_, dst_;
  bool last_ = false;
};

class GroupedCase : public WindowCase<GroupedPlan> {
 public:
  GroupedCase(const DirectIsa& isa, Rng& rng) : WindowCase(isa, rng) {
    do {
      plan_.inputs = int64_t{1} << rng.Between(1, 3);
    } while (!GroupsFit(plan_.inputs, isa.lanes));
    plan_.channels = plan_.inputs * rng.Between(1, 40 / plan_.inputs);
    Choose(plan_.channels, plan_.channels, plan_.inputs);
    CutGrouped(plan_, threads_);
  }

  double Run() { return Compare(PackGroupedWeights, RunGrouped); }
};

class DirectConvCase : public WindowCase<DirectConvPlan> {
 public:
  DirectConvCase(const DirectIsa& isa, Rng& rng) : WindowCase(isa, rng) {
    const bool whole = rng.Flip();
    const int64_t unit = whole ? isa.lanes : 1;
    plan_.channels_in = unit * rng.Between(1, 40 / unit);
    const int64_t most = rng.Flip(0.3) ? 160 : 40;
    plan_.channels_out = unit * rng.Between(1, most / unit);
    Choose(plan_.channels_in, plan_.channels_out, plan_.channels_in);
    CutDirectConv(plan_, threads_);
    if (rng.Flip(0.3)) plan_.group = rng.Between(1, 5);
    if (rng.Flip(0.3)) plan_.share_panels = !plan_.share_panels;
  }

  double Run() { return Compare(PackDirectConvWeights, RunDirectConv); }
};

class Window : public IsaTest {
 protected:
  static const DirectIsa& isa() { return Kernels(&DirectAvx2, &DirectAvx512); }
};
TEST_P(Window, DirectConvolutionsMeanTheirSums) { RunCases<DirectConvCase>(isa(), "direct"); }
TEST_P(Window, GroupedConvolutionsMeanTheirSums) { RunCases<GroupedCase>(isa(), "grouped"); }
MENDEL_FOR_ISAS(Window, NativeIsa::kAvx2, NativeIsa::kAvx512);

/// The plans of both instruction sets group large weights and divide them among threads. This test
/// sets the shapes that need it rather than drawing them.
TEST_P(Window, HeavyWeightsArePartedAndGrouped) {
  DirectConvPlan plan;
  plan.isa = &isa();
  plan.channels_in = plan.channels_out = 512;
  plan.in[1] = plan.in[2] = plan.out[1] = plan.out[2] = 7;
  plan.taps[1] = plan.taps[2] = 3;
  plan.pad[1] = plan.pad[2] = 1;
  plan.src.d[2] = plan.isa->lanes;
  CutDirectConv(plan, 2);
  EXPECT_TRUE(plan.share_panels);
  EXPECT_TRUE(plan.source_taps_at.empty());
  plan.channels_in = plan.channels_out = 32;
  plan.in[1] = plan.in[2] = plan.out[1] = plan.out[2] = 256;
  CutDirectConv(plan, 2);
  EXPECT_FALSE(plan.share_panels);
  EXPECT_EQ(plan.group, 1);
  EXPECT_EQ(plan.source_taps_at.size(), 9u);
}

/// A level of a U-Net: down, up, and both ends concatenated, with a residual and an activation that
/// is a call.
Graph Level(Rng& rng) {
  GraphBuilder builder("level");
  int weights = 0;
  const auto weight = [&](const Shape& shape) {
    std::vector<double> values(static_cast<size_t>(NumElements(shape)));
    for (double& value : values) value = rng.Uniform(-0.2, 0.2);
    return builder.Constant(Tensor::FromDoubles({DType::kF32, shape}, values), Cat("w", weights++));
  };
  const auto conv = [&](ValueId x, int64_t out, int64_t stride) {
    const int64_t in = builder.type(x).shape[1];
    return *builder.Add(
        "Conv", {x, weight({out, in, 3, 3}), weight({out})},
        {{"strides", Ints{stride, stride}}, {"dilations", Ints{1, 1}}, {"pads", Ints{1, 1, 1, 1}}});
  };
  const auto relu = [&](ValueId x) { return *builder.Add("Relu", {x}); };
  const int64_t height = 2 * rng.Between(2, 9), width = 2 * rng.Between(2, 20);
  const ValueId x = builder.Input("x", {DType::kF32, {rng.Between(1, 2), 16, height, width}});
  const ValueId skip = relu(conv(x, 32, 1));
  const ValueId low = relu(conv(skip, 48, 2));
  const ValueId up = *builder.Add("ConvTranspose", {low, weight({48, 32, 2, 2}), weight({32})},
                                  {{"strides", Ints{2, 2}},
                                   {"dilations", Ints{1, 1}},
                                   {"pads", Ints{0, 0, 0, 0}},
                                   {"output_padding", Ints{0, 0}}});
  const ValueId whole = *builder.Add("Concat", {skip, up}, {{"axis", int64_t{1}}});
  const ValueId sum = *builder.Add("Add", {conv(whole, 20, 1), conv(x, 20, 1)});
  builder.Output("y", *builder.Add("Sigmoid", {sum}));
  return *builder.Build();
}

TEST(DirectConv, ALevelOfAUNetStaysInBlocks) {
  if (DirectIsaHere() == nullptr) GTEST_SKIP() << "this machine has neither AVX2 nor AVX-512";
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed);
    const Graph graph = Level(rng);
    CompileOptions options;
    options.threads = static_cast<int>(rng.Between(1, 3));
    options.numerics = Numerics::kStrict;
    for (int32_t id = 0; id < static_cast<int32_t>(graph.nodes().size()); ++id) {
      for (const std::string& name : FindBackend("cpu")->Algorithms(graph, id, Numerics::kStrict)) {
        if (name == kNativeDirect || name == kNativePointwise) options.algorithms[id] = name;
      }
    }
    const std::vector<std::string> kernels =
        ExpectMatches(graph, RandomInputs(rng, graph), options, 2e-5);
    EXPECT_EQ(CountOf(kernels, kNativeDirect), 4) << testing::PrintToString(kernels);
    EXPECT_EQ(CountOf(kernels, kNativePointwise), 1) << testing::PrintToString(kernels);
    EXPECT_EQ(CountOf(kernels, "reorder"), 2)
        << "source and result: " << testing::PrintToString(kernels);
    EXPECT_EQ(kernels.size(), 8u) << testing::PrintToString(kernels);
  }
}

}  // namespace
}  // namespace mendel::cpu
