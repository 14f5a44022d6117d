// The Winograd kernels of every instruction set, against direct sums in double.

#include "kernels/cpu/kernels/winograd.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "base/random.h"
#include "base/status.h"
#include "graph/graph.h"
#include "gtest/gtest.h"
#include "kernels/cpu/memory/strided_box.h"
#include "kernels/cpu/testing/guarded.h"
#include "kernels/cpu/testing/test_support.h"
#include "kernels/cpu/threads.h"
#include "runtime/backend.h"

namespace mendel::cpu {
namespace {

using Activation = WinogradEpilogue::Activation;

/// A random convolution with its tensors, run and checked.
class Case {
 public:
  Case(const WinogradIsa& isa, const WinogradTransforms& transforms, Rng& rng) : rng_(rng) {
    plan_.isa = &isa;
    plan_.transforms = &transforms;
    plan_.batch = rng.Between(1, 3);
    plan_.channels_in = rng.Between(1, rng.Flip() ? 9 : 70);
    plan_.problem.channels_out = rng.Between(1, rng.Flip() ? 9 : 150);
    for (size_t d = 0; d < 3; ++d) ChooseDimension(d);
    last_ = rng.Flip();
    if (last_) {
      plan_.channels_in = Round(plan_.channels_in);
      plan_.problem.channels_out = Round(plan_.problem.channels_out);
    }
    src_ = StridedBox(last_, plan_.batch, plan_.channels_in, isa.lanes, plan_.problem.in, rng);
    dst_ = StridedBox(last_, plan_.batch, plan_.problem.channels_out, isa.lanes, plan_.problem.out,
                      rng);
    plan_.problem.src = src_.strides;
    plan_.problem.dst = dst_.strides;
    threads_ = static_cast<int>(rng.Between(1, 3));
    CutIntoTiles(plan_, threads_);
  }

  int64_t channels() const { return plan_.channels_in; }

  std::string Describe() const {
    const WinogradProblem& p = plan_.problem;
    std::string text =
        Cat(plan_.isa->name, last_ ? " channels-last" : " blocked", " batch ", plan_.batch,
            " channels ", plan_.channels_in, " -> ", p.channels_out, " threads ", threads_);
    for (size_t d = 0; d < 3; ++d) {
      text += Cat("; F(", plan_.transforms->m[d], ",", plan_.transforms->r[d], ") ", p.in[d],
                  " -> ", p.out[d], " pad ", p.pad[d], " dilation ", p.step[d]);
    }
    return text;
  }

  /// Error relative to the largest output, but at least to the size that it has among many outputs:
  /// few may all be small. Infinite if memory outside was written or an output is NaN.
  double Error() {
    const GuardedFloats src = src_.Random(rng_);
    const std::vector<double> weights = RandomWeights();
    std::vector<double> scale(rng_.Flip() ? static_cast<size_t>(plan_.problem.channels_out) : 0);
    for (double& factor : scale) factor = rng_.Uniform(0.5, 1.5);
    GuardedFloats bias(Round(plan_.problem.channels_out), RandomGuard(rng_));
    for (int64_t o = 0; o < plan_.problem.channels_out; ++o)
      bias[static_cast<size_t>(o)] = RandomFloat();
    const GuardedFloats residual = dst_.Random(rng_);
    WinogradEpilogue epilogue = ChooseEpilogue(bias, residual);
    GuardedFloats packed(plan_.WeightFloats(), RandomGuard(rng_));
    PackWinogradWeights(plan_, weights, scale, packed.data());
    GuardedFloats scratch(plan_.ScratchBytes() / static_cast<int64_t>(sizeof(float)), Guard::kEnd,
                          64);
    std::fill(scratch.begin(), scratch.end(), std::numeric_limits<float>::quiet_NaN());
    GuardedFloats dst = dst_.Blank(RandomGuard(rng_));
    if (epilogue.residual != nullptr && rng_.Flip()) {  // in place
      dst_.Copy(residual, dst);
      epilogue.residual = dst.data();
    }
    {
      const ThreadScope scope(threads_);
      RunWinograd(plan_, src.data(), packed.data(), epilogue, dst.data(), scratch.data());
    }
    if (!dst_.GapsUntouched(dst)) return std::numeric_limits<double>::infinity();
    if (epilogue.residual != nullptr) epilogue.residual = residual.data();
    return Compare(src, weights, scale, epilogue, dst);
  }

 private:
  int64_t Round(int64_t channels) const {
    return (channels + plan_.isa->lanes - 1) / plan_.isa->lanes * plan_.isa->lanes;
  }
  float RandomFloat() { return static_cast<float>(rng_.Uniform(-1, 1)); }

  void ChooseDimension(size_t d) {
    WinogradProblem& p = plan_.problem;
    const int64_t taps = plan_.transforms->r[d];
    const bool used = plan_.transforms->m[d] > 1;
    p.step[d] = used && rng_.Flip(0.3) ? rng_.Between(2, 3) : 1;
    const int64_t reach = (taps - 1) * p.step[d];
    p.pad[d] = used ? rng_.Between(0, reach + 1) : 0;
    const int64_t pad_end = used ? rng_.Between(0, reach + 1) : 0;
    const int64_t least = std::max<int64_t>(1, reach + 1 - p.pad[d] - pad_end);
    p.in[d] = rng_.Between(least, least + (plan_.points > 1 ? 6 : 13));
    p.out[d] = p.in[d] + p.pad[d] + pad_end - reach;
    plan_.points *= plan_.transforms->m[d];  // later dimensions are smaller; CutIntoTiles sets it
  }

  std::vector<double> RandomWeights() {
    const int* r = plan_.transforms->r;
    std::vector<double> weights(
        static_cast<size_t>(plan_.problem.channels_out * plan_.channels_in * r[0] * r[1] * r[2]));
    for (double& weight : weights) weight = rng_.Uniform(-1, 1);
    return weights;
  }

  static void Square(const void*, float* values, int64_t count) {
    for (int64_t i = 0; i < count; ++i) values[i] = values[i] * values[i] * 0.01f + 1;
  }

  WinogradEpilogue ChooseEpilogue(const GuardedFloats& bias, const GuardedFloats& residual) {
    WinogradEpilogue epilogue{};
    epilogue.bias = bias.data();
    epilogue.residual = rng_.Flip() ? residual.data() : nullptr;
    epilogue.residual_last = rng_.Flip();
    constexpr Activation kKinds[] = {Activation::kNone, Activation::kRelu, Activation::kClip,
                                     Activation::kCall, Activation::kCall};
    const size_t choice = rng_.Below(5);
    epilogue.activation = kKinds[choice];
    if (choice == 4) epilogue.known = WinogradEpilogue::Known::kSwish;  // `call` must not run
    if (epilogue.activation == Activation::kRelu) epilogue.alpha = rng_.Flip() ? 0.0f : 0.25f;
    if (epilogue.activation == Activation::kClip) epilogue.alpha = 0.5f, epilogue.beta = 6.0f;
    epilogue.call = &Square;
    return epilogue;
  }

  double Sum(const GuardedFloats& src, const std::vector<double>& weights, int64_t n, int64_t o,
             const int64_t* at) const {
    const WinogradProblem& p = plan_.problem;
    const int* r = plan_.transforms->r;
    double sum = 0;
    int64_t k[3];
    for (k[0] = 0; k[0] < r[0]; ++k[0]) {
      for (k[1] = 0; k[1] < r[1]; ++k[1]) {
        for (k[2] = 0; k[2] < r[2]; ++k[2]) {
          int64_t x[3];
          bool inside = true;
          for (size_t d = 0; d < 3; ++d) {
            x[d] = at[d] - p.pad[d] + k[d] * p.step[d];
            inside = inside && x[d] >= 0 && x[d] < p.in[d];
          }
          if (!inside) continue;
          const int64_t tap = (k[0] * r[1] + k[1]) * r[2] + k[2];
          const int64_t taps = int64_t{r[0]} * r[1] * r[2];
          for (int64_t c = 0; c < plan_.channels_in; ++c) {
            sum += weights[static_cast<size_t>((o * plan_.channels_in + c) * taps + tap)] *
                   static_cast<double>(src[static_cast<size_t>(src_.At(n, c, x))]);
          }
        }
      }
    }
    return sum;
  }

  static double Activate(const WinogradEpilogue& e, double x) {
    if (e.activation == Activation::kRelu) return x < 0 ? x * static_cast<double>(e.alpha) : x;
    if (e.activation == Activation::kClip)
      return std::clamp(x, static_cast<double>(e.alpha), static_cast<double>(e.beta));
    if (e.activation == Activation::kNone) return x;
    return e.known == WinogradEpilogue::Known::kSwish ? x / (1 + std::exp(-x)) : x * x * 0.01 + 1;
  }

  double Compare(const GuardedFloats& src, const std::vector<double>& weights,
                 const std::vector<double>& scale, const WinogradEpilogue& e,
                 const GuardedFloats& dst) const {
    const WinogradProblem& p = plan_.problem;
    double largest = 0, error = 0;
    int64_t x[3];
    for (int64_t n = 0; n < plan_.batch; ++n) {
      for (int64_t o = 0; o < Round(p.channels_out); ++o) {
        for (x[0] = 0; x[0] < p.out[0]; ++x[0]) {
          for (x[1] = 0; x[1] < p.out[1]; ++x[1]) {
            for (x[2] = 0; x[2] < p.out[2]; ++x[2]) {
              const size_t at = static_cast<size_t>(dst_.At(n, o, x));
              double want = 0;
              if (o < p.channels_out) {
                want = Sum(src, weights, n, o, x) *
                       (scale.empty() ? 1 : scale[static_cast<size_t>(o)]);
                want += static_cast<double>(e.bias[o]);
                largest = std::max(largest, std::fabs(want));
                const double residual =
                    e.residual == nullptr ? 0 : static_cast<double>(e.residual[at]);
                want =
                    e.residual_last ? Activate(e, want) + residual : Activate(e, want + residual);
              }
              const double difference = std::fabs(want - static_cast<double>(dst[at]));
              if (std::isnan(difference) || (o >= p.channels_out && difference != 0)) {
                return std::numeric_limits<double>::infinity();
              }
              largest = std::max(largest, std::fabs(want));
              error = std::max(error, difference);
            }
          }
        }
      }
    }
    // A few outputs may all be small. The largest of many is at least about the square root of the
    // number of products.
    return error / std::max(largest, std::sqrt(static_cast<double>(plan_.channels_in * Taps())));
  }
  int64_t Taps() const {
    return int64_t{plan_.transforms->r[0]} * plan_.transforms->r[1] * plan_.transforms->r[2];
  }

  Rng& rng_;
  WinogradPlan plan_;
  StridedBox src_, dst_;
  bool last_ = false;
  int threads_ = 1;
};

TEST(Winograd, StrictNumericsDoNotOfferIt) {
  if (WinogradIsaHere() == nullptr)
    GTEST_SKIP() << "no kernels for this machine, or oneDNN is limited to less";
  const auto offered = [](const Ints& strides, int64_t dilation, Numerics numerics) {
    GraphBuilder builder;
    const ValueId x = builder.Input("x", {DType::kF32, {1, 16, 20, 20}});
    const ValueId w = builder.Constant(Tensor::Filled({DType::kF32, {16, 16, 3, 3}}, 0.1), "w");
    const Attributes attrs = {
        {"strides", strides}, {"dilations", Ints{dilation, dilation}}, {"pads", Ints{1, 0, 2, 1}}};
    builder.Output("y", *builder.Add("Conv", {x, w}, attrs, "layer"));
    const Graph graph = *builder.Build();
    const std::vector<std::string> names =
        FindBackend("cpu")->Algorithms(graph, graph.outputs()[0].value.node, numerics);
    return std::count_if(names.begin(), names.end(),
                         [](const std::string& name) { return name.find(kNativeWinograd) == 0; });
  };
  EXPECT_EQ(offered({1, 1}, 1, Numerics::kDefault), 3);
  EXPECT_EQ(offered({1, 1}, 3, Numerics::kDefault), 3);
  EXPECT_EQ(offered({2, 1}, 1, Numerics::kDefault), 0);
  EXPECT_EQ(offered({1, 1}, 1, Numerics::kStrict), 0);
}

/// Names of the algorithms offered for a convolution of `extent` outputs and `taps`.
std::vector<std::string> Offered(const Shape& extent, const Shape& taps, Numerics numerics,
                                 int64_t channels = 16) {
  GraphBuilder builder;
  Shape x_shape = {1, channels}, w_shape = {16, channels};
  for (size_t d = 0; d < taps.size(); ++d) {
    x_shape.push_back(extent[d] + taps[d] - 1);
    w_shape.push_back(taps[d]);
  }
  const ValueId x = builder.Input("x", {DType::kF32, x_shape});
  const ValueId w = builder.Constant(Tensor::Filled({DType::kF32, w_shape}, 0.1), "w");
  const Ints ones(taps.size(), 1), pads(2 * taps.size(), 0);
  builder.Output(
      "y", *builder.Add("Conv", {x, w}, {{"strides", ones}, {"dilations", ones}, {"pads", pads}},
                        "layer"));
  const Graph graph = *builder.Build();
  std::vector<std::string> names =
      FindBackend("cpu")->Algorithms(graph, graph.outputs()[0].value.node, numerics);
  std::erase_if(names, [](const std::string& name) { return name.find(kNativeWinograd) != 0; });
  std::sort(names.begin(), names.end());
  return names;
}

TEST(Winograd, UnequalTilesAreOfferedWhereTheyWasteFewerOutputs) {
  if (WinogradIsaHere() == nullptr)
    GTEST_SKIP() << "no kernels for this machine, or oneDNN is limited to less";
  using Names = std::vector<std::string>;
  EXPECT_EQ(Offered({28, 28}, {3, 3}, Numerics::kDefault),
            Names({"winograd-own:2", "winograd-own:4"}));
  EXPECT_EQ(Offered({28, 14}, {3, 3}, Numerics::kDefault),
            Names({"winograd-own:2", "winograd-own:4", "winograd-own:4x2"}));
  EXPECT_EQ(Offered({14, 28}, {3, 3}, Numerics::kDefault),
            Names({"winograd-own:2", "winograd-own:2x4", "winograd-own:4"}));
  EXPECT_EQ(Offered({14, 14}, {3, 3}, Numerics::kDefault).size(), 3u);  // 2x4 or 4x2
  EXPECT_EQ(Offered({20, 20}, {3, 5}, Numerics::kDefault), Names({"winograd-own:4x2"}));
  EXPECT_EQ(Offered({20, 20}, {5, 3}, Numerics::kDefault), Names({"winograd-own:2x4"}));
}

TEST(Winograd, AClassOffersTilesWithinItsBound) {
  if (WinogradIsaHere() == nullptr)
    GTEST_SKIP() << "no kernels for this machine, or oneDNN is limited to less";
  using Names = std::vector<std::string>;
  EXPECT_EQ(Offered({20, 20}, {5, 5}, Numerics::kStrict), Names());
  EXPECT_EQ(Offered({20, 20}, {5, 5}, Numerics::kDefault, 48),
            Names({"winograd-own:2", "winograd-own:4"}));
  EXPECT_EQ(Offered({20, 20}, {5, 5}, Numerics::kDefault, 320), Names({"winograd-own:2"}));
  EXPECT_EQ(Offered({20, 20}, {5, 5}, Numerics::kHigh, 320),
            Names({"winograd-own:2", "winograd-own:4"}));
}

TEST(Winograd, ACompilationRefusesWhatItsClassDoesNotOffer) {
  if (WinogradIsaHere() == nullptr)
    GTEST_SKIP() << "no kernels for this machine, or oneDNN is limited to less";
  GraphBuilder builder;
  const ValueId x = builder.Input("x", {DType::kF32, {1, 16, 20, 20}});
  const ValueId w = builder.Constant(Tensor::Filled({DType::kF32, {16, 16, 3, 3}}, 0.1), "w");
  const Ints ones = {1, 1};
  builder.Output(
      "y",
      *builder.Add("Conv", {x, w},
                   {{"strides", ones}, {"dilations", ones}, {"pads", Ints{1, 1, 1, 1}}}, "layer"));
  const Graph graph = *builder.Build();
  CompileOptions options;
  options.algorithms[graph.outputs()[0].value.node] = "winograd-own:4";
  EXPECT_TRUE(FindBackend("cpu")->Compile(graph, options).ok());
  options.numerics = Numerics::kStrict;
  EXPECT_EQ(FindBackend("cpu")->Compile(graph, options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

#if defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kCasesPerKernel = 5;  // a case takes five times as long
#else
constexpr uint64_t kCasesPerKernel = 20;
#endif

class WinogradKernels : public IsaTest {};
TEST_P(WinogradKernels, MeanTheirSumsWithinTheirBounds) {
  const WinogradIsa& isa = Kernels(&WinogradAvx2, &WinogradAvx512);
  for (int k = 0; k < isa.transform_count; ++k) {
    const WinogradTransforms& transforms = isa.transforms[k];
    double largest = 0;
    for (uint64_t seed = 1; seed <= kCasesPerKernel; ++seed) {
      Rng rng(seed);
      Case one(isa, transforms, rng);
      SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << one.Describe());
      const double error = one.Error();
      largest = std::max(largest, error);
      ASSERT_LE(error, WinogradErrorBound(transforms, one.channels()));
    }
    std::cout << isa.name << " F(" << transforms.m[0] << "x" << transforms.m[1] << "x"
              << transforms.m[2] << ", " << transforms.r[0] << "x" << transforms.r[1] << "x"
              << transforms.r[2] << "): largest error " << largest << ", bound "
              << transforms.error_bound << "\n";
  }
}
MENDEL_FOR_ISAS(WinogradKernels, NativeIsa::kAvx2, NativeIsa::kAvx512);

}  // namespace
}  // namespace mendel::cpu
