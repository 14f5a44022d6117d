// Tiled kernels as algorithms: which operators they fuse, how they are offered and refused, and
// whether they fit real architectures.

#include "kernels/cuda/tiled/library.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "graph/random_graph.h"
#include "graph/rewrite.h"
#include "gtest/gtest.h"
#include "kernels/cuda/nvrtc/compiler.h"
#include "kernels/cuda/nvrtc/expect_compiled.h"
#include "kernels/cuda/testing/device_case.h"
#include "kernels/cuda/testing/fake/fake_driver.h"
#include "kernels/cuda/tiled/async_copies.h"
#include "kernels/cuda/tiled/candidate.h"
#include "kernels/cuda/tiled/tiled_graphs.h"
#include "kernels/cuda/tiled/tiled_programs.h"

namespace mendel::cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A product whose right side is computed from the rows' statistics, too.
Graph ProductWithItself(const std::string& row) {
  return Parsed(Cat("%0 = Input() {name = \"x\", shape = [24, 24]}\n%1 = ", row, R"(
    %2 = Div(%0, %1)
    %3 = MatMul(%2, %2)
    return "y" = %3)"));
}

/// x / sqrt(mean(x^2) + eps) * g, times W: in elementary operators.
Graph RmsNormalizedProduct() {
  return Parsed(R"(%0 = Input() {name = "x", shape = [20, 40]}
    %1 = Input() {name = "g", shape = [40]}
    %2 = Input() {name = "w", shape = [40, 24]}
    %3 = Constant() {value = f32[]{0.5}}
    %4 = Mul(%0, %0)
    %5 = ReduceMean(%4) {axes = [1], keepdims = 1}
    %6 = Add(%5, %3)
    %7 = Sqrt(%6)
    %8 = Div(%0, %7)
    %9 = Mul(%8, %1)
    %10 = MatMul(%9, %2)
    return "y" = %10)");
}

TEST(TiledLibrary, ChainsAreOneLaunch) {
  const std::pair<Graph, std::map<int32_t, std::string>> chains[] = {
      {GatedMlp(), {{3, "tile:32x32x32:2x2:pair"}}},
      {NormalizedProduct(), {{6, "tile:16x32x32:1x2:rows"}}},
      {RmsNormalizedProduct(), {{10, "tile:16x32x32:1x2:rows"}}},
      {GroupedConvolution(), {{4, "tile:16x64x32:2x4"}}},
  };
  for (const auto& [graph, algorithms] : chains) {
    const DeviceProgram program = LoweredByTiles(graph, algorithms);
    ASSERT_EQ(program.launches.size(), 1u);
    const Step& step = program.launches[0].info;
    EXPECT_EQ(step.nodes[0], algorithms.begin()->first);
    EXPECT_EQ(step.kernel, Cat(algorithms.begin()->second, "_of_", step.nodes.size()));
    EXPECT_EQ(WithFault(graph, algorithms), "");
  }
}

TEST(TiledLibrary, TakesAlongWhatNobodyElseReads) {
  // The product's sum and the normalized rows are results, too.
  const Graph graph = Parsed(R"(%0 = Input() {name = "x", shape = [20, 16]}
    %1 = Input() {name = "w", shape = [16, 24]}
    %2 = Softmax(%0) {axis = 1}
    %3 = MatMul(%2, %1)
    %4 = Relu(%3)
    return "y" = %4, "sum" = %3, "rows" = %2)");
  const DeviceProgram program = LoweredByTiles(graph, {{3, "tile:16x32x32:1x2"}});
  ASSERT_EQ(program.launches.size(), 3u);
  EXPECT_THAT(program.launches[1].info.nodes, ElementsAre(3));
  EXPECT_THAT(TilesRefusal(graph, 3, "tile:16x32x32:1x2:rows"), HasSubstr("no such product here"));
  // A residual that is computed later is added by the kernel that computes it.
  const Graph late = Parsed(R"(%0 = Input() {name = "x", shape = [20, 16]}
    %1 = Input() {name = "w", shape = [16, 16]}
    %2 = MatMul(%0, %1)
    %3 = MatMul(%0, %1)
    %4 = Softmax(%3) {axis = 1}
    %5 = Add(%2, %4)
    return "y" = %5)");
  EXPECT_THAT(LoweredByTiles(late, {{2, "tile:16x32x32:1x2"}}).launches[0].info.nodes,
              ElementsAre(2));
  EXPECT_THAT(TilesRefusal(late, 2, "tile:16x32x32:1x2:pair"), HasSubstr("no such product here"));
}

TEST(TiledLibrary, DividedSumsAreTwoLaunchesWithRoomBetween) {
  // 40 x 36 elements of a pair in three parts of 32, 32 and 16 products, f32 whatever is stored.
  for (const char* dtype : {"f32", "f16"}) {
    const Graph graph = GatedMlp(dtype, 80);
    const std::map<int32_t, std::string> algorithms = {{3, "tile:32x32x16:2x2:pair:split3"}};
    const DeviceProgram program = LoweredByTiles(graph, algorithms);
    ASSERT_EQ(program.launches.size(), 2u);
    const DeviceLaunch &sums = program.launches[0], &totals = program.launches[1];
    EXPECT_EQ(sums.info.kernel, "tile:32x32x16:2x2:pair:split3_of_5");
    EXPECT_EQ(sums.shape.grid, 3u * 2 * 2);
    EXPECT_EQ(totals.info.kernel, "totals of divided sums");
    EXPECT_EQ(totals.info.nodes, sums.info.nodes);
    EXPECT_GT(sums.info.flops, 0);
    EXPECT_EQ(totals.info.flops, 0);
    const DeviceBuffer &written = sums.pointers.back(),
                       &read = totals.pointers[totals.pointers.size() - 2];
    EXPECT_EQ(written.bytes, 2 * 3 * 40 * 36 * 4);
    EXPECT_EQ(std::pair(written.allocation, written.offset),
              std::pair(read.allocation, read.offset));
    EXPECT_EQ(WithFault(graph, algorithms), "");
  }
  EXPECT_THAT(
      TilesRefusal(GatedMlp("f32", 40), 3, "tile:32x32x16:2x2:split4"),
      testing::AllOf(HasSubstr("MatMul 3"), HasSubstr("3 steps of 16"), HasSubstr("4 parts")));
}

/// Parts are added in their own order, not in that of the blocks. The buffer between the launches
/// is in the plan's memory.
TEST(TiledLibrary, DividedSumsRepeatTheirBits) {
  const Graph graph = GatedMlp("f32", 333);
  Rng rng(3);
  DeviceCase one{"repeated", graph, {}, {}};
  for (const HostValue& input : RandomInputs(rng, graph))
    one.inputs.push_back(HostValue::FromTensor(input.ToTensor()));
  auto program = LowerToDevice(
      graph, {.algorithms = {{3, "tile:16x32x32:1x2:split5"}}, .libraries = kTiledAlone});
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_GE(program->arena_bytes, 5 * 40 * 36 * 4);
  FakeDriver driver;
  const auto executable = MakeExecutable(driver.table(), *std::move(program), &TextImage);
  ASSERT_TRUE(executable.ok()) << executable.status();
  std::vector<Tensor> tensors;
  std::vector<std::span<const std::byte>> inputs;
  for (const HostValue& input : one.inputs) tensors.push_back(input.ToTensor());
  for (const Tensor& tensor : tensors) inputs.push_back(tensor.bytes());
  std::vector<std::byte> first(40 * 36 * 4), second(first.size(), std::byte{1});
  for (std::vector<std::byte>* result : {&first, &second}) {
    const std::span<std::byte> outputs[] = {*result};
    const absl::Status status = (*executable)->Run(inputs, outputs);
    ASSERT_TRUE(status.ok()) << status;
  }
  EXPECT_EQ(first, second);
  EXPECT_EQ(FailureOf(**executable, one), "");
}

TEST(TiledLibrary, OffersFewAndFusionsFirst) {
  const auto offered = [](const Graph& graph, int32_t node) {
    return LibraryAlgorithms(graph, node, Numerics::kStrict, kTiledAlone);
  };
  const auto pair = offered(GatedMlp(), 3), rows = offered(NormalizedProduct(), 6),
             conv = offered(GroupedConvolution(), 4);
  ASSERT_FALSE(pair.empty());
  EXPECT_THAT(pair[0], HasSubstr(":pair"));
  ASSERT_FALSE(rows.empty());
  EXPECT_THAT(rows[0], HasSubstr(":rows"));
  EXPECT_FALSE(conv.empty());
  const auto copying = [](const std::vector<std::string>& names) {
    return std::count_if(names.begin(), names.end(),
                         [](const std::string& name) { return name.find(":async") != name.npos; });
  };
  for (const auto& names : {pair, rows, conv})
    EXPECT_LE(names.size(), static_cast<size_t>(6 + copying(names)));
  EXPECT_EQ(copying(pair), 2);
  EXPECT_EQ(copying(conv), 0);  // weights lie along the depth, and inputs in no runs
  const TiledLibrary turing(100, 75, true);
  const CallLibrary* const libraries[] = {&turing};
  EXPECT_EQ(copying(LibraryAlgorithms(GatedMlp(), 3, Numerics::kF16, libraries)), 0);
  const TiledLibrary plain(100, 90, false);
  const CallLibrary* const without_experiments[] = {&plain};
  const auto fewer = LibraryAlgorithms(GatedMlp(), 3, Numerics::kStrict, without_experiments);
  EXPECT_EQ(copying(fewer), 0);
  EXPECT_EQ(fewer.size() + 2, pair.size());
  EXPECT_TRUE(offered(GatedMlp(), 5).empty());  // no product
  // The first product of a pair offers the fusion, the second one does not.
  const auto second = offered(GatedMlp(), 6);
  EXPECT_TRUE(std::none_of(second.begin(), second.end(), [](const std::string& name) {
    return name.find(":pair") != name.npos;
  }));
}

TEST(TiledLibrary, RefusesByName) {
  const Graph graph = GatedMlp();
  EXPECT_THAT(
      TilesRefusal(graph, 3, "tile:64x64"),
      testing::AllOf(HasSubstr("MatMul 3"), HasSubstr("'tile:64x64'"), HasSubstr("no name")));
  EXPECT_THAT(TilesRefusal(graph, 3, "tile:256x256x64:8x8"), HasSubstr("shared memory"));
  EXPECT_THAT(TilesRefusal(graph, 4, "tile:64x64x16:4x4"),
              testing::AllOf(HasSubstr("Sigmoid 4"), HasSubstr("no such product here")));
  EXPECT_THAT(TilesRefusal(graph, 3, "tile:64x64x16:4x4:rows"), HasSubstr("no such product here"));
  EXPECT_THAT(TilesRefusal(GroupedConvolution(), 4, "tile:64x64x16:4x4:async"),
              testing::AllOf(HasSubstr("Conv 4"), HasSubstr("no operand lies in memory")));
  const TiledLibrary turing(100, 75, true);
  const CallLibrary* const libraries[] = {&turing};
  const auto old = LowerToDevice(
      graph, {.algorithms = {{3, "tile:64x64x16:4x4:async"}}, .libraries = libraries});
  EXPECT_THAT(
      std::string(old.status().message()),
      testing::AllOf(HasSubstr("MatMul 3"), HasSubstr("sm_75 have no asynchronous copies")));
  const auto without = LowerToDevice(graph, {.algorithms = {{3, "tile:64x64x16:4x4"}}});
  EXPECT_TRUE(absl::IsInvalidArgument(without.status())) << without.status();
}

TEST(TiledLibrary, StatisticsAreOfTheLeftSideAlone) {
  for (const std::string row :
       {"ReduceSum(%0) {axes = [1], keepdims = 1}", "Softmax(%0) {axis = 1}"}) {
    const Graph graph = ProductWithItself(row);
    EXPECT_THAT(TilesRefusal(graph, 3, "tile:16x32x32:1x2:rows"), HasSubstr("no such product here"))
        << row;
    for (const std::string& name : LibraryAlgorithms(graph, 3, Numerics::kDefault, kTiledAlone)) {
      EXPECT_EQ(name.find(":rows"), std::string::npos) << row << ": " << name;
    }
  }
}

TEST(TiledLibrary, PlantedFaultsAreFound) {
  const Graph pair = GatedMlp(), rows = NormalizedProduct();
  const std::map<int32_t, std::string> by_pair = {{3, "tile:32x32x8:2x2:pair"}},
                                       by_rows = {{6, "tile:16x32x8:1x2:rows"}};
  EXPECT_THAT(
      WithFault(pair, by_pair, "    __syncthreads();\n    buffer ^= 1;", "    buffer ^= 1;"),
      HasSubstr("race"));
  EXPECT_THAT(WithFault(pair, by_pair, "row < 40 && column", "row < 41 && column"),
              HasSubstr("out of bounds"));
  EXPECT_THAT(WithFault(pair, by_pair, "at < 40", "at < 41"), HasSubstr("out of bounds"));
  EXPECT_THAT(WithFault(pair, by_pair, "((buffer ^ 1) * 8", "(buffer * 8"), HasSubstr("race"));
  EXPECT_THAT(WithFault(pair, by_pair, "buffer ^= 1;", ""),
              HasSubstr("uninitialized shared memory"));
  EXPECT_THAT(WithFault(pair, by_pair, "Sigmoid(v", "Tanh(v"), HasSubstr("element 0"));
  EXPECT_THAT(WithFault(rows, by_rows, "  __syncthreads();\n  float sum0", "  float sum0"),
              HasSubstr("race"));
  const std::map<int32_t, std::string> by_parts = {{3, "tile:32x32x8:2x2:pair:split2"}};
  EXPECT_THAT(WithFault(pair, by_parts, "at = static_cast<long long>(part) * 1440",
                        "at = static_cast<long long>(part) * 1438"),
              HasSubstr("written twice"));
  EXPECT_THAT(WithFault(pair, by_parts, "end = Min", "end = Max"), HasSubstr("element"));
  const std::map<int32_t, std::string> by_copies = {{3, "tile:32x32x8:2x2:pair:async"}};
  EXPECT_EQ(WithFault(pair, by_copies), "");
  EXPECT_THAT(WithFault(pair, by_copies, "AwaitCopies();", ""), HasSubstr("copy under way"));
  EXPECT_THAT(WithFault(rows, by_rows, "across == r", "across + 1 == r"), HasSubstr("element"));
}

/// The kernels of every tile that is offered, with each fusion that the graph's product has.
std::vector<DescribedKernel> KernelsOf(const Graph& graph, int32_t node,
                                       const std::vector<const char*>& fusions) {
  const std::vector<bool> constant = ConstantExpressions(graph), claimed(constant.size(), false);
  std::vector<DescribedKernel> kernels;
  for (const Tile& tile : OfferedTiles()) {
    for (const char* fusion : fusions) {
      const std::string name = CandidateName({tile}) + fusion;
      const auto group = kTiled.Group({graph, constant, claimed}, node, name, Numerics::kDefault);
      EXPECT_TRUE(group.ok()) << group.status();
      if (!group.ok()) continue;
      const bool copies = name.find(":async") != std::string::npos;
      kernels.push_back(
          {name, group->kernel.name, group->kernel.text, copies ? kAsyncArchitecture : 0});
      // The totals are the same for all tiles.
      if (group->finish.name.empty() || tile != OfferedTiles()[0]) continue;
      kernels.push_back({name + ", totals", group->finish.name, group->finish.text});
    }
  }
  return kernels;
}

TEST(TiledLibrary, KernelsCompileWithoutSpills) {
  const Compiler* const compiler = FoundCompiler();
  if (compiler == nullptr) return;
  std::vector<DescribedKernel> kernels =
      KernelsOf(GatedMlp("f32", 512), 3, {"", ":async", ":pair", ":pair:split5"});
  for (const std::vector<DescribedKernel>& more :
       {KernelsOf(NormalizedProduct("bf16", 256), 6, {":rows"}),
        KernelsOf(GroupedConvolution(), 4, {"", ":split2"})}) {
    kernels.insert(kernels.end(), more.begin(), more.end());
  }
  ExpectCompiled(*compiler, kernels, "tiled");
}

}  // namespace
}  // namespace mendel::cuda
