// Tests of horizontal fusion: the small elementwise kernels that join one launch, the order of the
// launches, and their results.

#include "kernels/cuda/backend/horizontal_fusion.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "graph/random_graph.h"
#include "graph/text.h"
#include "gtest/gtest.h"
#include "kernels/cuda/backend/executable.h"
#include "kernels/cuda/backend/launch_node.h"
#include "kernels/cuda/backend/partition.h"
#include "kernels/cuda/nvrtc/architectures.h"
#include "kernels/cuda/nvrtc/compiler.h"
#include "kernels/cuda/nvrtc/expect_compiled.h"
#include "kernels/cuda/offline/predictor.h"
#include "kernels/cuda/testing/device_case.h"
#include "kernels/cuda/testing/fake/fake_driver.h"

namespace mendel::cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ValueUse Uses(std::set<int32_t> reads, std::set<int32_t> writes) {
  ValueUse use;
  for (const int32_t id : reads) use.reads.insert({id, 0});
  for (const int32_t id : writes) use.writes.insert({id, 0});
  return use;
}

TEST(JoinNodes, MovesEitherOfTwoPastWhatIsBetween) {
  // Nodes 1 and 4 read the input. Node 2 reads 1, so only 4 can move.
  EXPECT_THAT(JoinNodes(std::vector{Uses({0}, {1}), Uses({1}, {2}), Uses({0}, {4})},
                        std::vector<size_t>{2, 0, 2}, {8, 99}),
              ElementsAre(ElementsAre(0, 2), ElementsAre(1)));
  // Node 3 reads 2, so only 1 can move.
  EXPECT_THAT(JoinNodes(std::vector{Uses({0}, {1}), Uses({0}, {2}), Uses({2}, {3})},
                        std::vector<size_t>{2, 0, 2}, {8, 99}),
              ElementsAre(ElementsAre(1), ElementsAre(0, 2)));
  // Neither can move: 2 reads 1, and 3 reads the other result of 2.
  EXPECT_THAT(JoinNodes(std::vector{Uses({0}, {1}), Uses({1}, {2, 5}), Uses({5}, {3})},
                        std::vector<size_t>{2, 0, 2}, {8, 99}),
              ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2)));
  // One reads the other.
  EXPECT_THAT(
      JoinNodes(std::vector{Uses({0}, {1}), Uses({1}, {2})}, std::vector<size_t>{2, 2}, {8, 99}),
      ElementsAre(ElementsAre(0), ElementsAre(1)));
  EXPECT_THAT(JoinNodes(std::vector{Uses({0}, {1}), Uses({0}, {2}), Uses({0}, {3})},
                        std::vector<size_t>{2, 2, 2}, {2, 99}),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2)));
  // The number of pointers of a launch is limited: 1 is too large for 0, and 2 is not.
  EXPECT_THAT(JoinNodes(std::vector{Uses({0}, {1}), Uses({0}, {2}), Uses({0}, {3})},
                        std::vector<size_t>{2, 9, 8}, {8, 10}),
              ElementsAre(ElementsAre(0, 2), ElementsAre(1)));
}

TEST(JoinNodes, RandomNodesKeepTheirConflictsInOrder) {
  size_t joined = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng(seed);
    std::vector<ValueUse> nodes;
    std::vector<size_t> pointers;
    for (int64_t k = rng.Between(2, 20); k > 0; --k) {
      std::set<int32_t> reads, writes = {static_cast<int32_t>(rng.Between(0, 19))};
      for (int64_t n = rng.Between(0, 2); n > 0; --n)
        reads.insert(static_cast<int32_t>(rng.Between(0, 19)));
      nodes.push_back(Uses(reads, writes));
      pointers.push_back(rng.Flip() ? static_cast<size_t>(rng.Between(1, 9)) : 0);
    }
    const auto launches = JoinNodes(nodes, pointers, {4, 20});
    std::vector<size_t> place(nodes.size(), nodes.size());
    size_t seen = 0;
    for (size_t at = 0; at < launches.size(); ++at) {
      joined += launches[at].size() > 1 ? 1 : 0;
      EXPECT_LE(launches[at].size(), 4u);
      size_t taken = 0;
      for (const size_t node : launches[at]) {
        taken += pointers[node];
        place[node] = at;
        ++seen;
        EXPECT_TRUE(pointers[node] > 0 || launches[at].size() == 1);
      }
      EXPECT_LE(taken, 20u);
    }
    ASSERT_EQ(seen, nodes.size()) << "seed " << seed;
    for (size_t k = 0; k < nodes.size(); ++k) {
      for (size_t j = 0; j < k; ++j)
        EXPECT_TRUE(place[j] < place[k] || !Conflict(nodes[j], nodes[k])) << "seed " << seed;
    }
  }
  EXPECT_GT(joined, 100u);
}

Graph GraphOf(const std::string& body) {
  auto graph = ParseGraph("graph \"g\" {\n" + body + "\n}");
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

/// Elementwise kernels of three shapes and two dtypes around sums; those of %2 and %5 cannot be
/// one, as one is computed of the other.
Graph Branches() {
  return GraphOf(R"(%0 = Input() {name = "x", shape = [3, 7]}
    %1 = Input() {name = "h", dtype = "f16", shape = [2, 16]}
    %2 = Exp(%0)
    %3 = Softmax(%2) {axis = 1}
    %4 = Tanh(%1)
    %5 = Neg(%3)
    %6 = Softmax(%5) {axis = 0}
    %7 = Transpose(%0) {perm = [1, 0]}
    return "a" = %6, "b" = %4, "c" = %7, "d" = %2, "e" = %5, "f" = %3)");
}
const std::map<int32_t, std::string> kAllFused = {
    {2, "beside"}, {4, "beside"}, {5, "beside"}, {7, "beside"}};

std::vector<std::string> KernelsIn(const DeviceProgram& program) {
  std::vector<std::string> names;
  for (const DeviceLaunch& launch : program.launches) names.push_back(launch.info.kernel);
  return names;
}

DeviceCase CaseOf(const Graph& graph, const ProgramOptions& options, uint64_t seed) {
  Rng rng(seed);
  DeviceCase one{Cat("seed ", seed, "\n", PrintGraph(graph)), graph, {}, {}};
  for (const HostValue& input : RandomInputs(rng, graph))
    one.inputs.push_back(HostValue::FromTensor(input.ToTensor()));
  auto program = LowerToDevice(graph, options);
  EXPECT_TRUE(program.ok()) << one.description << program.status();
  one.program = *std::move(program);
  return one;
}

TEST(HorizontalFusion, KernelsOfAnyShapeAreOneLaunch) {
  const Graph graph = Branches();
  const DeviceCase alone = CaseOf(graph, {}, 1), one = CaseOf(graph, {.algorithms = kAllFused}, 1);
  EXPECT_EQ(alone.program.launches.size(), 6u);
  EXPECT_THAT(KernelsIn(one.program), ElementsAre("beside_of_3", "rows", "elements_by_4", "rows"));
  const DeviceLaunch& launch = one.program.launches[0];
  EXPECT_EQ(launch.results, 3u);
  EXPECT_EQ(launch.pointers.size(), 6u);
  EXPECT_THAT(launch.info.nodes, ElementsAre(2, 4, 7));
  EXPECT_EQ(one.program.texts.size(), 4u)
      << "kernels that are fused horizontally with others are not compiled alone";
  FakeDriver driver;
  EXPECT_EQ(FailureOn(driver.table(), &TextImage, one), "");
  EXPECT_EQ(driver.Leaks(), "");
}

TEST(HorizontalFusion, OutputsOfANodeAreFusedHorizontally) {
  const Graph graph = GraphOf(R"(%0 = Input() {name = "x", shape = [2, 6]}
    %1 = Split(%0) {axis = 1, sizes = [2, 4]}
    return "a" = %1, "b" = %1.1)");
  const DeviceCase one = CaseOf(graph, {.algorithms = {{1, "beside"}}}, 1);
  EXPECT_THAT(KernelsIn(one.program), ElementsAre("beside_of_2"));
  FakeDriver driver;
  EXPECT_EQ(FailureOn(driver.table(), &TextImage, one), "");
}

/// Elementwise operators, views and softmaxes of values of several shapes and dtypes, all of which
/// are stored.
Graph RandomPieces(Rng& rng) {
  GraphBuilder builder;
  std::vector<ValueId> values = {builder.Input("x", {DType::kF32, {3, 7}}),
                                 builder.Input("h", {DType::kF16, {2, 16}}),
                                 builder.Input("v", {DType::kF64, {5, 1}})};
  for (int64_t k = rng.Between(4, 12); k > 0; --k) {
    const ValueId x = values[static_cast<size_t>(rng.Below(values.size()))];
    const uint64_t drawn = rng.Below(6);
    const char* const ops[] = {"Sin", "Neg", "Tanh", "Relu"};
    const auto made = drawn == 5   ? builder.Add("Softmax", {x}, {{"axis", int64_t{1}}})
                      : drawn == 4 ? builder.Add("Transpose", {x}, {{"perm", Ints{1, 0}}})
                                   : builder.Add(ops[drawn], {x});
    EXPECT_TRUE(made.ok()) << made.status();
    builder.Output(Cat("y", k), *made);
    values.push_back(*made);
  }
  auto graph = builder.Build();
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

/// The two elementwise kernels together read more tensors than one launch may.
TEST(HorizontalFusion, AKernelTakesNoMorePointersThanALaunch) {
  GraphBuilder builder;
  const ValueId x = builder.Input("x", {DType::kF32, {2, 3}});
  std::array<std::vector<ValueId>, 2> parts;
  for (int k = 0; k < 520; ++k) {
    const std::vector<double> values(6, k);
    const auto part = builder.Add(
        "Add", {x, builder.Constant(Tensor::FromDoubles({DType::kF32, {2, 3}}, values))});
    ASSERT_TRUE(part.ok()) << part.status();
    builder.Output(Cat("part", k), *part);
    parts[static_cast<size_t>(k % 2)].push_back(*part);
  }
  std::map<int32_t, std::string> algorithms;
  for (size_t k = 0; k < 2; ++k) {
    const auto joined = builder.Add("Concat", parts[k], {{"axis", int64_t{0}}});
    ASSERT_TRUE(joined.ok()) << joined.status();
    builder.Output(Cat("y", k), *joined);
    algorithms[joined->node] = "beside";
  }
  const auto graph = builder.Build();
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto program = LowerToDevice(*graph, {.algorithms = algorithms});
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(program->launches.size(), 522u);
}

TEST(HorizontalFusion, AStepReportsWhyBoxesAreCopied) {
  const Graph graph = GraphOf(R"(%0 = Input() {name = "x", shape = [1, 2, 6, 3]}
    %1 = Input() {name = "z", shape = [5, 3]}
    %2 = Neg(%0)
    %3 = Constant() {symbol = "w", value = f32[2,2,1,1]{1, -2, 3, 2}} : f32[2,2,1,1]
    %4 = Slice(%0) {ends = [1, 2, 5, 3], starts = [0, 0, 4, 0], steps = [1, 1, 1, 1]}
    %5 = Conv(%4, %3) {dilations = [1, 1], group = 1, pads = [0, 0, 0, 0], strides = [1, 1]}
    %6 = Gelu(%5)
    %7 = Patch(%2, %6) {boxes = [[0:1, 0:2, 1:2, 0:3]]}
    %8 = Exp(%1)
    return "y" = %7, "e" = %8)");
  const auto alone = LowerToDevice(graph, {}),
             fused = LowerToDevice(graph, {.algorithms = {{7, "beside"}, {8, "beside"}}});
  ASSERT_TRUE(alone.ok() && fused.ok()) << alone.status() << fused.status();
  EXPECT_THAT(KernelsIn(*alone),
              testing::Contains(HasSubstr("; boxes copied (no kernel computes Gelu")));
  EXPECT_THAT(
      KernelsIn(*fused),
      testing::Contains(testing::StartsWith("beside_of_2; boxes copied (no kernel computes Gelu")));
}

TEST(HorizontalFusion, RandomGraphsMeanWhatTheyDidAlone) {
  std::vector<DeviceCase> cases;
  size_t alone = 0, launches = 0;
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    Rng rng(seed);
    const Graph graph =
        seed % 3 == 1 ? RandomGraph(rng, static_cast<int>(rng.Between(6, 20))) : RandomPieces(rng);
    ProgramOptions options{.reuse_memory = seed % 4 < 2,
                           .order = seed % 2 == 0 ? LaunchOrder::kBranches : LaunchOrder::kChain};
    for (int32_t id = 0; id < static_cast<int32_t>(graph.nodes().size()); ++id) {
      std::map<int32_t, std::string> single = {{id, "beside"}};
      if (TakeHorizontalFusion(graph, single).ok()) options.algorithms[id] = "beside";
    }
    alone += CaseOf(graph, {}, seed).program.launches.size();
    cases.push_back(CaseOf(graph, options, seed));
    launches += cases.back().program.launches.size();
  }
  FakeDriver driver;
  const absl::Status prepared = driver.Prepare(ModuleOf(cases));
  ASSERT_TRUE(prepared.ok()) << std::string(prepared.message()).substr(0, 4000);
  for (const DeviceCase& one : cases)
    EXPECT_EQ(FailureOn(driver.table(), &TextImage, one), "") << one.description;
  std::printf("%zu graphs: %zu launches, %zu where kernels stand alone\n", cases.size(), launches,
              alone);
  EXPECT_LT(launches + 2 * cases.size(), alone);
}

TEST(HorizontalFusion, PlantedFaultsAreFound) {
  const Graph graph = GraphOf(R"(%0 = Input() {name = "x", shape = [3, 7]}
    %1 = Input() {name = "h", dtype = "f16", shape = [2, 16]}
    %2 = Exp(%0)
    %3 = Tanh(%1)
    return "a" = %2, "b" = %3)");
  const DeviceCase one = CaseOf(graph, {.algorithms = {{2, "beside"}, {3, "beside"}}}, 1);
  ASSERT_EQ(one.program.launches.size(), 1u);
  const auto with = [&](const std::string& right, const std::string& wrong) {
    FakeDriver driver;
    const auto image = [&](const std::string& text) {
      std::string changed = text;
      const size_t at = changed.find(right);
      EXPECT_NE(at, std::string::npos) << right;
      if (at != std::string::npos) changed.replace(at, right.size(), wrong);
      return TextImage(changed);
    };
    return FailureOn(driver.table(), image, one);
  };
  EXPECT_EQ(with("block)", "block)"), "");
  EXPECT_THAT(with("(blockIdx.x - 1u", "(blockIdx.x"), HasSubstr("element"))
      << "a part's first block";
  EXPECT_THAT(with("if (blockIdx.x < 1u)", "if (blockIdx.x < 2u)"), HasSubstr("element"))
      << "a part's last block";
}

/// NVRTC takes what the host's compiler took.
TEST(HorizontalFusion, CompilesForAGpu) {
  const Compiler* const compiler = FoundCompiler();
  if (compiler == nullptr) return;
  const DeviceCase one = CaseOf(Branches(), {.algorithms = kAllFused}, 1);
  for (const int architecture : kCompiledArchitectures) {
    const auto compiled =
        CompiledWithoutSpills(*compiler, one.program.ModuleText(0), "beside", architecture);
    if (!compiled.has_value()) continue;
    EXPECT_EQ(compiled->usage.stack_bytes, 0) << "sm_" << architecture;
  }
}

TEST(HorizontalFusion, IsOfferedWhereThereIsCompany) {
  const Graph graph = Branches();
  EXPECT_THAT(HorizontalFusionNodes(graph), ElementsAre(2, 4, 5, 7));
  const Graph chain = GraphOf(R"(%0 = Input() {name = "x", shape = [3, 7]}
    %1 = Exp(%0)
    %2 = Softmax(%1) {axis = 0}
    %3 = Neg(%2)
    %4 = Softmax(%3) {axis = 1}
    return "y" = %4, "z" = %1, "w" = %3)");
  EXPECT_THAT(HorizontalFusionNodes(chain), testing::IsEmpty());
  const Graph large = GraphOf(R"(%0 = Input() {name = "x", shape = [257, 256]}
    %1 = Exp(%0)
    %2 = Neg(%0)
    return "y" = %1, "z" = %2)");
  EXPECT_THAT(HorizontalFusionNodes(large), testing::IsEmpty());
  EXPECT_EQ(LowerToDevice(large, {.algorithms = {{1, "beside"}, {2, "beside"}}})->launches.size(),
            2u);
}

TEST(HorizontalFusion, OffersAreThoseOfTheGraphThatIsAskedAbout) {
  const HorizontalFusionOffers offers;
  const Graph graph = Branches();
  const Graph copy = graph;
  for (int round = 0; round < 3; ++round) {
    // This graph may lie where a deleted one was: offers of that one must not be reused.
    const Graph chain = GraphOf(R"(%0 = Input() {name = "x", shape = [3, 7]}
    %1 = Exp(%0)
    %2 = Softmax(%1) {axis = 0}
    return "y" = %2, "z" = %1)");
    for (const Graph* it : {&graph, &copy, &chain, &graph}) {
      for (int32_t id = 0; id < static_cast<int32_t>(it->nodes().size()); ++id) {
        EXPECT_EQ(offers.Has(*it, id), it != &chain && kAllFused.count(id) > 0)
            << round << " " << id;
      }
    }
  }
}

/// The partition and the predictor accept the algorithm, too.
TEST(HorizontalFusion, IsAnAlgorithmOfPartitionsToo) {
  const Graph graph = Branches();
  const auto partition = PartitionOf(graph, kAllFused, Numerics::kDefault, {});
  ASSERT_TRUE(partition.ok()) << partition.status();
  EXPECT_THAT(partition->horizontal_fusion, ElementsAre(2, 4, 5, 7));
  const Predictor predictor(AllGpus()[0]);
  const auto seconds = predictor.Seconds(graph, kAllFused, Numerics::kDefault);
  ASSERT_TRUE(seconds.ok()) << seconds.status();
  EXPECT_EQ(*seconds, *predictor.Seconds(graph, {}, Numerics::kDefault));
  EXPECT_EQ(predictor.Seconds(graph, {{3, "beside"}}, Numerics::kDefault).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(HorizontalFusion, OthersAreRefusedByName) {
  const Graph graph = Branches();
  const absl::Status sum = LowerToDevice(graph, {.algorithms = {{3, "beside"}}}).status();
  EXPECT_EQ(sum.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(sum.message()),
              HasSubstr("(Softmax 3) cannot be computed by 'beside': it is not elementwise"));
  EXPECT_EQ(LowerToDevice(graph, {.algorithms = {{0, "beside"}}}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      std::string(LowerToDevice(graph, {.algorithms = {{99, "beside"}}}).status().message()),
      HasSubstr("no node 99"));
}

}  // namespace
}  // namespace mendel::cuda
