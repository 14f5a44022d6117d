#include "kernels/cuda/offline/predictor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include "base/status.h"
#include "graph/text.h"
#include "kernels/cuda/emit/from_graph.h"
#include "kernels/cuda/emit/kernel_text.h"
#include "kernels/cuda/offline/assumptions.h"
#include "kernels/cuda/testing/correction_case.h"

namespace mendel::cuda {
namespace {

Graph Parsed(const std::string& body) {
  auto graph = ParseGraph("graph \"g\" {\n" + body + "\n}");
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

using Algorithms = std::map<int32_t, std::string>;

std::vector<double> By(const Graph& graph, int architecture, const Algorithms& algorithms,
                       Numerics numerics = Numerics::kDefault) {
  const auto seconds = Predictor(*GpuOf(architecture)).Seconds(graph, algorithms, numerics);
  EXPECT_TRUE(seconds.ok()) << seconds.status();
  return *seconds;
}

std::vector<double> On(int architecture, const std::string& body) {
  return By(Parsed(body), architecture, {});
}

double Sum(const std::vector<double>& seconds) {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

TEST(Predictor, EveryArchitectureHasOneRowWithASource) {
  std::set<int> seen;
  for (const GpuModel& gpu : AllGpus()) {
    EXPECT_TRUE(seen.insert(gpu.compute_capability).second) << gpu.name;
    EXPECT_EQ(GpuOf(gpu.compute_capability), &gpu);
    EXPECT_GT(gpu.flops, gpu.double_flops) << gpu.name;
    EXPECT_GT(gpu.double_flops, 0) << gpu.name;
    EXPECT_GT(gpu.bandwidth, 1e11) << gpu.name;
    // Ampere brought TF32 and bf16 to tensor cores.
    EXPECT_EQ(gpu.tf32_flops > 0, gpu.compute_capability >= 80) << gpu.name;
    EXPECT_EQ(gpu.bf16_flops > 0, gpu.compute_capability >= 80) << gpu.name;
    EXPECT_GE(gpu.f16_flops, 2 * gpu.tf32_flops * (1 - 0.02)) << gpu.name;
    EXPECT_GT(gpu.f16_flops, gpu.flops) << gpu.name;
    EXPECT_NE(std::string(gpu.source), "") << gpu.name;
  }
  for (const int architecture : {75, 80, 90, 100, 120})
    EXPECT_NE(GpuOf(architecture), nullptr) << architecture;
  EXPECT_EQ(GpuOf(12), nullptr);
}

TEST(Predictor, ProductsAreBoundByArithmeticAndChainsByTraffic) {
  // The activation is part of the product's launch.
  const std::string product = R"(%0 = Input() {name = "a", shape = [4096, 4096]}
    %1 = Input() {name = "b", shape = [4096, 4096]}
    %2 = MatMul(%0, %1)
    %3 = Relu(%2)
    return "y" = %3)";
  const std::vector<double> seconds = On(90, product);
  EXPECT_EQ(seconds[2], 0);
  EXPECT_NEAR(seconds[3],
              2.0 * 4096 * 4096 * 4096 / (kDirectShare * GpuOf(90)->flops) + kLaunchSeconds,
              1e-3 * seconds[3]);
  const std::string chain = R"(%0 = Input() {name = "x", shape = [1024, 1024]}
    %1 = Exp(%0)
    %2 = Relu(%1)
    %3 = Add(%2, %0)
    return "y" = %3)";
  EXPECT_DOUBLE_EQ(Sum(On(90, chain)),
                   2.0 * 1024 * 1024 * 4 / GpuOf(90)->bandwidth + kLaunchSeconds);
  EXPECT_GT(Sum(On(75, chain)), Sum(On(90, chain)));
  EXPECT_GT(Sum(On(75, product)), Sum(On(80, product)));
}

TEST(Predictor, ASliceIsReadWhereItIs) {
  const std::vector<double> seconds = On(80, R"(%0 = Input() {name = "x", shape = [1024, 1024]}
    %1 = Slice(%0) {ends = [16, 1024], starts = [0, 0], steps = [1, 1]}
    %2 = Exp(%1)
    return "y" = %2)");
  EXPECT_DOUBLE_EQ(Sum(seconds), 2.0 * 16 * 1024 * 4 / GpuOf(80)->bandwidth + kLaunchSeconds);
}

/// A layer of 64 channels whose mutant is an Input, or is computed, with two rows wrong in each of
/// two images.
Graph Corrected(bool computed) {
  const Graph corrected =
      CorrectedConv({.x = {2, 64, 28, 28},
                     .w = {64, 64, 3, 3},
                     .strides = {1, 1},
                     .dilations = {1, 1},
                     .pads = {1, 1, 1, 1}},
                    {{{0, 0, 26, 0}, {1, 64, 28, 28}}, {{1, 0, 0, 0}, {2, 64, 2, 28}}});
  return computed ? WithComputedMutant(corrected) : corrected;
}

TEST(Predictor, CorrectionsCountByTheirKernelsRoofline) {
  const GpuModel& gpu = *GpuOf(90);
  const double traffic = 2.0 * 2 * 64 * 28 * 28 * 4 / gpu.bandwidth + kLaunchSeconds;
  for (const bool computed : {true, false}) {
    const Graph graph = Corrected(computed);
    const int32_t patch = graph.outputs()[0].value.node;
    const auto patch_kernels = PatchKernelsOf(graph, patch, Layout::kNchw);
    ASSERT_TRUE(patch_kernels.ok()) << patch_kernels.status();
    double correction = 0;
    for (const PatchKernel& corrected : patch_kernels->kernels) {
      const auto kernel = EmitKernel(corrected.correction);
      ASSERT_TRUE(kernel.ok()) << kernel.status();
      correction += RooflineSeconds(corrected.correction, kernel->launch, kernel->tile, gpu);
    }
    const std::vector<double> seconds = By(graph, 90, {});
    // A correction is in place over a launch's result. Over an input of the graph it needs a copy
    // first, which costs as much as that launch.
    EXPECT_DOUBLE_EQ(seconds[static_cast<size_t>(patch)],
                     computed ? correction : correction + traffic);
    EXPECT_DOUBLE_EQ(Sum(seconds), correction + traffic);
  }
}

TEST(Predictor, DoublesHaveTheirOwnPeak) {
  const std::string body = R"(%0 = Input() {dtype = "f64", name = "a", shape = [1024, 1024]}
    %1 = Input() {dtype = "f64", name = "b", shape = [1024, 1024]}
    %2 = MatMul(%0, %1)
    return "y" = %2)";
  EXPECT_NEAR(Sum(On(86, body)),
              2.0 * 1024 * 1024 * 1024 / (kDirectShare * GpuOf(86)->double_flops) + kLaunchSeconds,
              1e-6);
}

constexpr char kProduct[] = R"(%0 = Input() {name = "a", shape = [2048, 2048]}
    %1 = Input() {name = "b", shape = [2048, 2048]}
    %2 = MatMul(%0, %1)
    %3 = Relu(%2)
    return "y" = %3)";

TEST(Predictor, AlgorithmsOfProductsReachTheirAssumedShares) {
  const Graph graph = Parsed(kProduct);
  const GpuModel& gpu = *GpuOf(90);
  const double flops = 2.0 * 2048 * 2048 * 2048;
  const auto seconds = [&](const std::string& name, Numerics numerics) {
    return Sum(By(graph, 90, {{2, name}}, numerics));
  };
  EXPECT_NEAR(seconds("cublaslt", Numerics::kDefault),
              flops / (kCallShare * gpu.flops) + kLaunchSeconds, 1e-6);
  // Under strict the activation is a launch of its own, which reads and writes the product.
  EXPECT_NEAR(seconds("cublaslt", Numerics::kStrict) - seconds("cublaslt", Numerics::kDefault),
              2.0 * 2048 * 2048 * 4 / gpu.bandwidth + kLaunchSeconds, 1e-6);
  EXPECT_NEAR(seconds("cublaslt-tf32", Numerics::kTf32),
              flops / (kTensorCoreShare * gpu.tf32_flops) + kLaunchSeconds, 1e-6);
  // 16 x 16 blocks of 128 x 128 elements, two waves of 132.
  EXPECT_NEAR(seconds("tile:128x128x8:8x8", Numerics::kDefault),
              flops / 256 * 2 * 132 / (kTiledShare * gpu.flops) + kLaunchSeconds, 1e-6);
  for (const auto& [numerics, peak] :
       {std::pair(Numerics::kTf32, gpu.tf32_flops), std::pair(Numerics::kF16, gpu.f16_flops),
        std::pair(Numerics::kBf16, gpu.bf16_flops)}) {
    const std::string kind(NumericsName(numerics)), tile = Cat("tile-", kind, ":128x128x16:8x8");
    EXPECT_NEAR(seconds(tile, numerics),
                flops / 256 * 2 * 132 / (kTiledTensorCoreShare * peak) + kLaunchSeconds, 1e-6);
    EXPECT_LT(seconds(Cat("cublaslt-", kind), numerics), seconds(tile, numerics));
    EXPECT_LT(seconds(tile, numerics), seconds("tile:128x128x8:8x8", numerics));
  }
  EXPECT_LT(seconds("cublaslt", Numerics::kDefault),
            seconds("tile:128x128x8:8x8", Numerics::kDefault));
  EXPECT_LT(seconds("tile:128x128x8:8x8", Numerics::kDefault), Sum(By(graph, 90, {})));
}

TEST(Predictor, DividedSumsAreTwoLaunchesAndTheirParts) {
  const Graph graph = Parsed(R"(%0 = Input() {name = "a", shape = [16, 65536]}
    %1 = Input() {name = "b", shape = [65536, 128]}
    %2 = MatMul(%0, %1)
    return "y" = %2)");
  const GpuModel& gpu = *GpuOf(90);
  const double whole = Sum(By(graph, 90, {{2, "tile:16x64x32:2x4"}})),
               divided = Sum(By(graph, 90, {{2, "tile:16x64x32:2x4:split32"}}));
  // Two blocks on 132 multiprocessors, then 64 of a thirty-second part each.
  const double block = 2.0 * 16 * 64 * 65536 * gpu.multiprocessors / (kTiledShare * gpu.flops);
  EXPECT_NEAR(whole, block + kLaunchSeconds, 1e-3 * whole);
  const double operands = 4.0 * (16 + 128) * 65536, result = 4.0 * 16 * 128, parts = 32 * result;
  EXPECT_NEAR(divided,
              std::max(block / 32, (operands + parts) / gpu.bandwidth) +
                  (parts + result) / gpu.bandwidth + 2 * kLaunchSeconds,
              1e-3 * divided);
  // If traffic is the limit, the parts add to it.
  const Graph vector = Parsed(R"(%0 = Input() {name = "a", shape = [1, 4096]}
    %1 = Input() {name = "b", shape = [4096, 8192]}
    %2 = MatMul(%0, %1)
    return "y" = %2)");
  const auto by = [&](const std::string& name) { return Sum(By(vector, 90, {{2, name}})); };
  const double sums = 4.0 * 8192, read = 4.0 * 4096 + 4096 * sums;
  EXPECT_NEAR(by("tile:1x128x16:1x1:split8"),
              (read + 8 * sums + 8 * sums + sums) / gpu.bandwidth + 2 * kLaunchSeconds, 1e-8);
  EXPECT_NEAR(by("tile:1x128x16:1x1"), (read + sums) / gpu.bandwidth + kLaunchSeconds, 1e-8);
}

TEST(Predictor, RoundingOperandsIsALaunchOfItsOwn) {
  const Graph graph = Parsed(kProduct);
  const GpuModel& gpu = *GpuOf(90);
  const double half = Sum(By(graph, 90, {{2, "cublaslt-f16"}}, Numerics::kF16));
  // Each operand is read in f32 and written in f16.
  const double conversions = 2 * (2048.0 * 2048 * 6 / gpu.bandwidth + kLaunchSeconds);
  const double product =
      2.0 * 2048 * 2048 * 2048 / (kTensorCoreShare * gpu.f16_flops) + kLaunchSeconds;
  EXPECT_NEAR(half, conversions + product, 1e-6);
}

/// Three convolutions of stored weights, one after the other.
Graph Convolutions() {
  const Shape shape = {64, 64, 3, 3};
  GraphBuilder builder("g");
  ValueId value = builder.Input("x", {DType::kF32, {8, 64, 56, 56}});
  for (int k = 0; k < 3; ++k) {
    const ValueId w =
        builder.Constant(Tensor::Filled({DType::kF32, shape}, 0.5), "w" + std::to_string(k));
    value = *builder.Add("Conv", {value, w},
                         {{"strides", Ints{1, 1}},
                          {"dilations", Ints{1, 1}},
                          {"pads", Ints{1, 1, 1, 1}},
                          {"group", int64_t{1}}});
  }
  builder.Output("y", value);
  return *builder.Build();
}

Algorithms Everywhere(const Graph& graph, const std::string& name) {
  Algorithms algorithms;
  for (int32_t id = 0; id < static_cast<int32_t>(graph.nodes().size()); ++id) {
    if (graph.node(id).op->name == "Conv") algorithms[id] = name;
  }
  return algorithms;
}

TEST(Predictor, LayoutsAreConvertedAtTheEndsOfAChain) {
  const Graph graph = Convolutions();
  const GpuModel& gpu = *GpuOf(90);
  const auto sum = [&](const std::string& name, Numerics numerics) {
    return Sum(By(graph, 90, Everywhere(graph, name), numerics));
  };
  const double pass = 2.0 * 8 * 64 * 56 * 56 * 4 / gpu.bandwidth;
  EXPECT_NEAR(sum("cudnn-nhwc", Numerics::kDefault) - sum("cudnn", Numerics::kDefault),
              2 * (pass + kLaunchSeconds), 1e-7);
  // By tensor cores, channels-first values are converted at each convolution.
  const double last = sum("cudnn-tf32-nhwc", Numerics::kTf32),
               first = sum("cudnn-tf32", Numerics::kTf32);
  EXPECT_GT(first, last + 3 * kLaunchSeconds);
  EXPECT_LT(last, sum("cudnn", Numerics::kTf32));
}

TEST(Predictor, EverythingThatIsOfferedIsPredicted) {
  for (const GpuModel& gpu : AllGpus()) {
    const Predictor predictor(gpu);
    for (const Graph& graph : {Parsed(kProduct), Convolutions()}) {
      for (const Numerics numerics : kAllNumerics) {
        for (int32_t id = 0; id < static_cast<int32_t>(graph.nodes().size()); ++id) {
          for (const std::string& name :
               LibraryAlgorithms(graph, id, numerics, predictor.libraries())) {
            const auto seconds = predictor.Seconds(graph, {{id, name}}, numerics);
            ASSERT_TRUE(seconds.ok()) << gpu.name << " " << seconds.status();
            EXPECT_TRUE(Sum(*seconds) > 0 && Sum(*seconds) < 1) << gpu.name << " " << name;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace mendel::cuda
