#include "kernels/cuda/offline/predictor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <string>

#include "base/status.h"
#include "graph/text.h"
#include "kernels/cuda/emit/from_graph.h"
#include "kernels/cuda/emit/kernel_text.h"
#include "kernels/cuda/mending_case.h"

namespace mendel::cuda {
namespace {

Graph Parsed(const std::string& body) {
  auto graph = ParseGraph("graph \"g\" {\n" + body + "\n}");
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

std::vector<double> On(int architecture, const std::string& body) { return PredictSeconds(Parsed(body), *GpuOf(architecture)); }

double Sum(const std::vector<double>& seconds) { return std::accumulate(seconds.begin(), seconds.end(), 0.0); }

TEST(Predictor, EveryArchitectureHasOneRowWithASource) {
  std::set<int> seen;
  for (const GpuModel& gpu : AllGpus()) {
    EXPECT_TRUE(seen.insert(gpu.compute_capability).second) << gpu.name;
    EXPECT_EQ(GpuOf(gpu.compute_capability), &gpu);
    EXPECT_GT(gpu.flops, gpu.double_flops) << gpu.name;
    EXPECT_GT(gpu.double_flops, 0) << gpu.name;
    EXPECT_GT(gpu.bandwidth, 1e11) << gpu.name;
    EXPECT_NE(std::string(gpu.source), "") << gpu.name;
  }
  for (const int architecture : {75, 80, 90, 100, 120}) EXPECT_NE(GpuOf(architecture), nullptr) << architecture;
  EXPECT_EQ(GpuOf(12), nullptr);
}

TEST(Predictor, ProductsAreBoundByArithmeticAndChainsByTraffic) {
  // The activation rides in the product's launch.
  const std::string product = R"(%0 = Input() {name = "a", shape = [4096, 4096]}
    %1 = Input() {name = "b", shape = [4096, 4096]}
    %2 = MatMul(%0, %1)
    %3 = Relu(%2)
    return "y" = %3)";
  const std::vector<double> seconds = On(90, product);
  EXPECT_EQ(seconds[2], 0);
  EXPECT_NEAR(seconds[3], 2.0 * 4096 * 4096 * 4096 / GpuOf(90)->flops + kLaunchSeconds, 1e-3 * seconds[3]);
  const std::string chain = R"(%0 = Input() {name = "x", shape = [1024, 1024]}
    %1 = Exp(%0)
    %2 = Relu(%1)
    %3 = Add(%2, %0)
    return "y" = %3)";
  EXPECT_DOUBLE_EQ(Sum(On(90, chain)), 2.0 * 1024 * 1024 * 4 / GpuOf(90)->bandwidth + kLaunchSeconds);
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

/// A layer of 64 channels whose mutant is an Input, or is computed, with two rows wrong in each of two images.
Graph Mended(bool computed) {
  const Graph mended =
      MendedConv({.x = {2, 64, 28, 28}, .w = {64, 64, 3, 3}, .strides = {1, 1}, .dilations = {1, 1}, .pads = {1, 1, 1, 1}},
                 {{{0, 0, 26, 0}, {1, 64, 28, 28}}, {{1, 0, 0, 0}, {2, 64, 2, 28}}});
  return computed ? WithComputedMutant(mended) : mended;
}

TEST(Predictor, CorrectionsCountByTheirKernelsRoofline) {
  const GpuModel& gpu = *GpuOf(90);
  const double traffic = 2.0 * 2 * 64 * 28 * 28 * 4 / gpu.bandwidth + kLaunchSeconds;
  for (const bool computed : {true, false}) {
    const Graph graph = Mended(computed);
    const int32_t patch = graph.outputs()[0].value.node;
    const auto mending = MendingOf(graph, patch, Layout::kNchw);
    ASSERT_TRUE(mending.ok()) << mending.status();
    ASSERT_EQ(mending->kernels.size(), 1u);
    const auto kernel = EmitKernel(mending->kernels[0].correction);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    const double correction = RooflineSeconds(mending->kernels[0].correction, kernel->launch, kernel->tile, gpu);
    const std::vector<double> seconds = PredictSeconds(graph, gpu);
    // In place over what a launch computed; over an input of the graph after a copy, which costs what that launch does.
    EXPECT_DOUBLE_EQ(seconds[static_cast<size_t>(patch)], computed ? correction : correction + traffic);
    EXPECT_DOUBLE_EQ(Sum(seconds), correction + traffic);
  }
}

TEST(Predictor, DoublesHaveTheirOwnPeak) {
  const std::string body = R"(%0 = Input() {dtype = "f64", name = "a", shape = [1024, 1024]}
    %1 = Input() {dtype = "f64", name = "b", shape = [1024, 1024]}
    %2 = MatMul(%0, %1)
    return "y" = %2)";
  EXPECT_NEAR(Sum(On(86, body)), 2.0 * 1024 * 1024 * 1024 / GpuOf(86)->double_flops + kLaunchSeconds, 1e-6);
}

}  // namespace
}  // namespace mendel::cuda
