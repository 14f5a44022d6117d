// Tests of layouts as a choice: oneDNN's convolutions in each layout, the regions that choose
// together, and the nodes that are charged for conversions.

#include "kernels/cpu/lowering/layout_regions.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "graph/text.h"
#include "gtest/gtest.h"
#include "kernels/cpu/lowering/conv_layout.h"
#include "kernels/cpu/simd/native_isa.h"
#include "kernels/cpu/testing/test_support.h"

namespace mendel::cpu {
namespace {

using Regions = std::vector<std::vector<int32_t>>;

constexpr char kKept[] = " {strides = [1, 1], dilations = [1, 1], pads = [1, 1, 1, 1]}\n";
constexpr char kHalved[] = " {strides = [2, 2], dilations = [1, 1], pads = [1, 1, 1, 1]}\n";

/// 32 channels of 8x8; %1 is a 3x3 kernel.
Graph ConvGraph(const std::string& rest) {
  std::string weights = "0.125";
  for (int k = 1; k < 32 * 32 * 9; ++k) weights += ", 0.125";
  auto graph =
      ParseGraph(Cat("graph \"g\" {\n%0 = Input() {name = \"x\", shape = [1, 32, 8, 8]}\n%1 = "
                     "Constant() {symbol = \"w\", ",
                     "value = f32[32, 32, 3, 3]{", weights, "}}\n", rest, "}"));
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

std::vector<std::string> LayoutNames(const Graph& graph, int32_t node) {
  std::vector<std::string> names = FindBackend("cpu")->Algorithms(graph, node, Numerics::kStrict);
  std::erase_if(names, [](const std::string& name) { return !IsLayoutAlgorithm(name); });
  return names;
}

TEST(LayoutRegions, StagesChooseTogether) {
  const Graph graph = ConvGraph(Cat("%2 = Conv(%0, %1)", kKept, "%3 = Relu(%2)\n%4 = Conv(%3, %1)",
                                    kKept, "%5 = Add(%4, %2)\n", "%6 = Conv(%5, %1)", kHalved,
                                    "%7 = Conv(%6, %1)", kKept, "return \"y\" = %7"));
  EXPECT_EQ(LayoutRegions(graph, {2, 4, 6, 7}), (Regions{{2, 4}, {6, 7}}));
  EXPECT_EQ(LayoutRegions(graph, {2, 6, 7}), (Regions{{6, 7}}))
      << "of one alone its own time reports as much";
  EXPECT_EQ(LayoutRegions(graph, {}), Regions{});
}

TEST(LayoutRegions, WhatHasALayoutOfItsOwnSeparates) {
  const Graph graph = ConvGraph(
      Cat("%2 = Conv(%0, %1)", kKept, "%3 = Softmax(%2) {axis = 3}\n%4 = Conv(%3, %1)", kKept,
          "%5 = Conv(%3, %1)", kKept, "%6 = Concat(%4, %5) {axis = 1}\nreturn \"y\" = %6"));
  EXPECT_EQ(LayoutRegions(graph, {2, 4, 5}), (Regions{{4, 5}}));
}

TEST(LayoutRegions, EachKindIsItsLayout) {
  EXPECT_EQ(LayoutKind("layout:channels-last"), "channels-last");
  EXPECT_EQ(LayoutKind("layout:blocked8"), "blocked8");
  EXPECT_EQ(LayoutKind("winograd:4x3"), "blocked16");
  EXPECT_EQ(LayoutKind("direct:jit:avx2"), "");
  if (NativeIsaHere() == NativeIsa::kNone) GTEST_SKIP() << "this machine has no native kernels";
  EXPECT_EQ(LayoutKind("winograd-own:4"),
            NativeIsaHere() == NativeIsa::kAvx512 ? "blocked16" : "blocked8");
}

/// Random convolutions in every layout that is offered, between operators that have the default's.
TEST(LayoutAlgorithms, ComputeTheConvolution) {
  constexpr int64_t kChannels[] = {3, 8, 16, 20, 32, 48};
  std::map<std::string, int> ran;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed);
    const int64_t in = kChannels[rng.Below(std::size(kChannels))], taps = rng.Flip() ? 1 : 3,
                  stride = rng.Between(1, 2);
    const bool depthwise = rng.Flip(0.2);
    const int64_t out = depthwise ? in : kChannels[rng.Below(std::size(kChannels))];
    const auto drawn = [&](const Shape& shape) {
      HostValue value{{DType::kF32, shape}, {}, {}};
      for (int64_t i = NumElements(shape); i > 0; --i)
        value.scalars.push_back(static_cast<double>(static_cast<float>(rng.Normal())));
      return value;
    };
    const HostValue x = drawn({rng.Between(1, 2), in, rng.Between(3, 9), rng.Between(3, 9)});
    GraphBuilder builder;
    const ValueId source = *builder.Add("Neg", {builder.Input("x", x.type)});
    const ValueId weights =
        builder.Constant(drawn({out, depthwise ? 1 : in, taps, taps}).ToTensor(), "w");
    const ValueId bias = builder.Constant(drawn({out}).ToTensor(), "b");
    const ValueId conv = *builder.Add("Conv", {source, weights, bias},
                                      {{"strides", Ints{stride, stride}},
                                       {"dilations", Ints{1, 1}},
                                       {"pads", Ints(4, taps / 2)},
                                       {"group", depthwise ? in : int64_t{1}}});
    builder.Output("y", *builder.Add("Relu", {conv}));
    const Graph graph = *builder.Build();
    for (const std::string& name : LayoutNames(graph, conv.node)) {
      SCOPED_TRACE(name);
      CompileOptions options;
      options.threads = static_cast<int>(rng.Between(1, 2));
      options.algorithms[conv.node] = name;
      ExpectMatches(graph, {x}, options);
      if (testing::Test::HasFailure()) return;
      ++ran[name];
    }
  }
  if (NativeIsaHere() == NativeIsa::kNone) GTEST_SKIP() << "oneDNN has one layout here";
  EXPECT_GE(ran.size(), 2u);
}

/// Channels are whole blocks, as in real networks: generated kernels offer the layouts other than
/// the default's.
TEST(LayoutAlgorithms, AreOfferedBesideTheDefaults) {
  if (NativeIsaHere() == NativeIsa::kNone) GTEST_SKIP() << "oneDNN has one layout here";
  const Graph graph = ConvGraph(Cat("%2 = Conv(%0, %1)", kKept, "return \"y\" = %2"));
  const std::vector<std::string> names = LayoutNames(graph, 2);
  EXPECT_GE(names.size(), 1u);
  EXPECT_EQ(std::count(names.begin(), names.end(), "layout:plain"), 0)
      << "im2col is no layout of a 3x3 convolution";
  CompileOptions options;
  options.algorithms[2] = "layout:nowhere";
  EXPECT_EQ(FindBackend("cpu")->Compile(graph, options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

/// A convolution in another layout is charged for both of its conversions, and for no others.
TEST(ChargeConversions, WhoHasAnAlgorithmOfHisOwnPays) {
  const Graph graph =
      ConvGraph(Cat("%2 = Conv(%0, %1)", kKept, "%3 = Conv(%2, %1)", kKept, "%4 = Conv(%3, %1)",
                    kKept, "%5 = Softmax(%4) {axis = 3}\nreturn \"y\" = %5"));
  const auto convert = [](int32_t node) {
    ProgramStep step;
    step.info.requested_by = {node};
    return step;
  };
  const auto compute = [](std::vector<int32_t> nodes) {
    ProgramStep step;
    step.info.nodes = std::move(nodes);
    return step;
  };
  using Asking = std::vector<std::vector<int32_t>>;
  const auto asking = [&](const std::map<int32_t, std::string>& algorithms) {
    std::vector<ProgramStep> steps;
    for (const int32_t node : {2, 3, 4, 5}) {
      steps.push_back(convert(node - (node == 2 ? 2 : 1)));
      steps.push_back(compute({node}));
    }
    steps.push_back(convert(5));
    ChargeConversions(graph, algorithms, steps);
    Asking asked;
    for (size_t k = 0; k < steps.size(); k += 2) asked.push_back(steps[k].info.requested_by);
    return asked;
  };
  EXPECT_EQ(asking({}), (Asking{{}, {}, {}, {}, {}}));
  EXPECT_EQ(asking({{3, "a"}}), (Asking{{}, {3}, {3}, {}, {}}));
  EXPECT_EQ(asking({{2, "a"}, {3, "b"}}), (Asking{{2}, {2, 3}, {3}, {}, {}}));
  EXPECT_EQ(asking({{4, "a"}}), (Asking{{}, {}, {4}, {}, {}}))
      << "the Softmax wants rows, whatever is before it";
}

TEST(ChargeConversions, CompiledProgramsSayIt) {
  const Graph graph = ConvGraph(Cat("%2 = Conv(%0, %1)", kKept, "%3 = Conv(%2, %1)", kKept,
                                    "%4 = Conv(%3, %1)", kKept, "return \"y\" = %4"));
  const std::vector<std::string> names = LayoutNames(graph, 3);
  if (names.empty()) GTEST_SKIP() << "oneDNN has one layout here";
  CompileOptions options;
  options.algorithms[3] = names.front();
  const auto executable = FindBackend("cpu")->Compile(graph, options);
  ASSERT_TRUE(executable.ok()) << executable.status();
  int asked = 0;
  for (const Step& step : (*executable)->steps()) {
    asked += step.requested_by == std::vector<int32_t>{3} ? 1 : 0;
    EXPECT_TRUE(step.nodes.empty() || step.requested_by.empty()) << step.name;
  }
  EXPECT_EQ(asked, 2) << names.front();
}

}  // namespace
}  // namespace mendel::cpu
