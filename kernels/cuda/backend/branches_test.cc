// Programs whose branches are captured side by side: replayed in every order that the graph allows,
// they compute what the chain does.

#include <algorithm>
#include <array>
#include <cstdio>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "kernels/cuda/backend/branches_case.h"
#include "kernels/cuda/testing/fake/fake_driver.h"

namespace mendel::cuda {
namespace {

using testing::HasSubstr;

/// Softmaxes and sums of what was there before, so that many branches leave and meet.
Graph RandomBranches(Rng& rng) {
  GraphBuilder builder;
  std::vector<ValueId> values;
  for (int64_t k = rng.Between(1, 2); k > 0; --k)
    values.push_back(builder.Input(Cat("x", k), {DType::kF32, {4, 6}}));
  const auto any = [&] { return values[static_cast<size_t>(rng.Below(values.size()))]; };
  std::set<ValueId> unread;
  for (int64_t k = rng.Between(4, 12); k > 0; --k) {
    const std::vector<ValueId> inputs =
        rng.Below(3) == 0 ? std::vector{any(), any()} : std::vector{any()};
    const auto made = inputs.size() == 2
                          ? builder.Add("Add", inputs)
                          : builder.Add("Softmax", inputs, {{"axis", rng.Between(0, 1)}});
    EXPECT_TRUE(made.ok()) << made.status();
    for (const ValueId input : inputs) unread.erase(input);
    unread.insert(*made);
    values.push_back(*made);
  }
  for (const ValueId value : unread) builder.Output(Cat("y", value.node), value);
  auto graph = builder.Build();
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

Dependencies DependenciesIn(const DeviceProgram& program) {
  std::vector<MemoryUse> uses;
  for (const DeviceLaunch& launch : program.launches) uses.push_back(UseOf(launch));
  return DependenciesOf(uses);
}

/// Pairs of launches that may run side by side.
size_t UnorderedPairs(const DeviceProgram& program) {
  const Dependencies dependencies = DependenciesIn(program);
  std::vector<std::set<size_t>> before(dependencies.size());
  size_t unordered = 0;
  for (size_t k = 0; k < before.size(); ++k) {
    for (const size_t j : dependencies[k]) {
      before[k].insert(j);
      before[k].insert(before[j].begin(), before[j].end());
    }
    unordered += k - before[k].size();
  }
  return unordered;
}

TEST(CudaBranches, RandomGraphsComputeTheSameInAnyOrder) {
  std::vector<Graph> graphs;
  std::vector<DeviceCase> cases;
  for (uint64_t seed = 1; seed <= 16; ++seed) {
    Rng rng(seed);
    graphs.push_back(seed % 4 == 0 ? RandomGraph(rng, static_cast<int>(rng.Between(6, 14)))
                                   : RandomBranches(rng));
    cases.push_back(
        {Cat("seed ", seed), graphs.back(), {}, Lowered(graphs.back(), LaunchOrder::kChain)});
  }
  FakeDriver driver;
  const absl::Status prepared = driver.Prepare(ModuleOf(cases));
  ASSERT_TRUE(prepared.ok()) << prepared;
  size_t parallel = 0, launches = 0;
  std::array<size_t, 2> unordered = {0, 0};
  for (size_t k = 0; k < graphs.size(); ++k) {
    const std::string description = Cat(cases[k].description, "\n", PrintGraph(graphs[k]));
    const auto chain = MakeExecutable(driver.table(), cases[k].program, &TextImage);
    ASSERT_TRUE(chain.ok()) << description << chain.status();
    const auto deep = WrongRuns(driver.table(), graphs[k],
                                Lowered(graphs[k], LaunchOrder::kDepthFirst), **chain, 2);
    ASSERT_TRUE(deep.ok()) << description << deep.status();
    EXPECT_EQ(*deep, 0) << description << ", depth first";
    for (const bool apart : {false, true}) {
      DeviceProgram program = Lowered(graphs[k], LaunchOrder::kBranches, apart ? kAlways : 0);
      unordered[apart] += UnorderedPairs(program);
      parallel += IsChain(DependenciesIn(program)) ? 0 : 1;
      launches += program.launches.size();
      const auto wrong = WrongRuns(driver.table(), graphs[k], std::move(program), **chain, 5);
      ASSERT_TRUE(wrong.ok()) << description << wrong.status();
      EXPECT_EQ(*wrong, 0) << description << (apart ? ", apart" : "");
    }
  }
  std::printf(
      "%zu programs, %zu of them with branches, %zu launches; pairs that nothing orders: %zu, "
      "apart %zu\n",
      2 * graphs.size(), parallel, launches, unordered[false], unordered[true]);
  EXPECT_GT(unordered[true], unordered[false]);
  EXPECT_GT(parallel, graphs.size() / 2);
}

TEST(CudaBranches, ApartTheyShareNoMemory) {
  const Graph graph = Diamond();
  const DeviceProgram shared = Lowered(graph, LaunchOrder::kBranches),
                      apart = Lowered(graph, LaunchOrder::kBranches, kAlways);
  EXPECT_TRUE(IsChain(DependenciesIn(shared))) << "the second branch lies where the first one did";
  ASSERT_EQ(apart.launches.size(), 6u);
  const Dependencies dependencies = DependenciesIn(apart);
  EXPECT_THAT(dependencies[0], testing::IsEmpty());
  EXPECT_THAT(dependencies[1], testing::IsEmpty())
      << "level by level, the launches of both branches alternate";
  EXPECT_THAT(dependencies[3], testing::Not(testing::Contains(2)));
  EXPECT_GT(UnorderedPairs(apart), UnorderedPairs(shared));
  EXPECT_GT(apart.arena_bytes, shared.arena_bytes);
  const double times =
      static_cast<double>(apart.arena_bytes) / static_cast<double>(shared.arena_bytes);
  EXPECT_EQ(Lowered(graph, LaunchOrder::kBranches, times).arena_bytes, apart.arena_bytes);
  EXPECT_EQ(DependenciesIn(Lowered(graph, LaunchOrder::kBranches, times - 0.01)),
            DependenciesIn(shared))
      << "too much";
}

TEST(CudaBranches, TheFasterOrderIsTaken) {
  const Graph graph = Diamond();
  FakeDriver driver;
  const std::vector<DeviceProgram> orders = InOrders(graph);
  ASSERT_EQ(orders.size(), 2u) << "depth first is the plan's own order";
  EXPECT_LT(orders[0].arena_bytes, orders[1].arena_bytes);
  ASSERT_TRUE(driver.Prepare(orders[0].ModuleText()).ok());
  const auto chain =
      MakeExecutable(driver.table(), Lowered(graph, LaunchOrder::kChain), &TextImage);
  ASSERT_TRUE(chain.ok()) << chain.status();
  const std::string leaks = driver.Leaks();
  for (const float factor : {0.5f, 0.99f, 2.0f}) {
    const Timed timed(driver.table(), factor);
    const bool branches = factor < 0.9f;  // within what times repeat, the chain stays
    {
      const auto fastest = MakeFastest(timed.table, orders, &TextImage);
      ASSERT_TRUE(fastest.ok()) << fastest.status();
      const auto wrong = WrongRuns(graph, **fastest, **chain, 3);
      ASSERT_TRUE(wrong.ok()) << wrong.status();
      EXPECT_EQ(*wrong, 0);
      EXPECT_EQ((*fastest)->memory().arena_bytes, orders[branches ? 1 : 0].arena_bytes)
          << "each order has memory of its own";
      EXPECT_THAT((*fastest)->steps()[0].kernel,
                  testing::EndsWith(branches ? "; launches up to 2 side by side"
                                             : "; launches in the order of the plan"));
    }
    EXPECT_EQ(driver.Leaks(), leaks);
    EXPECT_EQ(Timed::made, 4) << "two that are compared, a whole run, the launches";
    EXPECT_EQ(Timed::updates > 0, branches) << factor;
  }
  // Nothing is measured where there is nothing to choose.
  const auto line = ParseGraph(R"(graph "line" {
    %0 = Input() {name = "x", shape = [4, 6]}
    %1 = Softmax(%0) {axis = 1}
    %2 = Softmax(%1) {axis = 0}
    return "y" = %2
  })");
  ASSERT_TRUE(line.ok()) << line.status();
  ASSERT_EQ(InOrders(*line).size(), 1u);
  const Timed timed(driver.table(), 1);
  ASSERT_TRUE(MakeFastest(timed.table, InOrders(*line), &TextImage).ok());
  EXPECT_EQ(Timed::made, 2);
  EXPECT_EQ(Timed::updates, 0);
}

/// The plan's order goes level by level; depth first, one branch ends before the other begins, in
/// less memory.
TEST(CudaBranches, DepthFirstIsAnOrderOfItsOwn) {
  const auto graph = ParseGraph(R"(graph "levels" {
    %0 = Input() {name = "x", shape = [4, 6]}
    %1 = Softmax(%0) {axis = 1}
    %2 = Softmax(%0) {axis = 0}
    %3 = Tile(%1) {repeats = [8, 1]}
    %4 = Tile(%2) {repeats = [8, 1]}
    %5 = Softmax(%3) {axis = 0}
    %6 = Softmax(%4) {axis = 0}
    %7 = ReduceSum(%5) {axes = [0], keepdims = 1}
    %8 = ReduceSum(%6) {axes = [0], keepdims = 1}
    return "y" = %7, "z" = %8
  })");
  ASSERT_TRUE(graph.ok()) << graph.status();
  const std::vector<DeviceProgram> orders = InOrders(*graph);
  ASSERT_EQ(orders.size(), 3u);
  EXPECT_EQ(orders[1].order, LaunchOrder::kDepthFirst);
  EXPECT_LT(orders[1].arena_bytes, orders[0].arena_bytes);
  EXPECT_TRUE(orders[1].texts.empty() && orders[1].weights.empty());
  FakeDriver driver;
  ASSERT_TRUE(driver.Prepare(orders[0].ModuleText()).ok());
  const auto chain = MakeExecutable(driver.table(), orders[0], &TextImage);
  ASSERT_TRUE(chain.ok()) << chain.status();
  for (const float factor : {0.5f, 2.0f}) {
    const Timed timed(driver.table(), factor);
    const auto fastest = MakeFastest(timed.table, orders, &TextImage);
    ASSERT_TRUE(fastest.ok()) << fastest.status();
    EXPECT_EQ(*WrongRuns(*graph, **fastest, **chain, 3), 0);
    EXPECT_EQ((*fastest)->memory().arena_bytes, orders[factor < 1 ? 1 : 0].arena_bytes);
    EXPECT_THAT((*fastest)->steps()[0].kernel,
                testing::EndsWith(factor < 1 ? "; launches depth first"
                                             : "; launches in the order of the plan"));
  }
}

TEST(CudaBranches, TimedRunsComputeTheSame) {
  const Graph graph = Diamond();
  FakeDriver driver;
  const DeviceProgram program = Lowered(graph, LaunchOrder::kBranches, kAlways);
  ASSERT_TRUE(driver.Prepare(program.ModuleText()).ok());
  const auto executable = MakeExecutable(driver.table(), program, &TextImage);
  ASSERT_TRUE(executable.ok()) << executable.status();
  Rng rng(3);
  const std::vector<Tensor> inputs = RandomTensors(rng, graph);
  const auto want = RunOnTensors(**executable, graph, inputs);
  ASSERT_TRUE(want.ok()) << want.status();
  const std::vector<std::span<const std::byte>> in = {inputs[0].bytes()};
  std::vector<std::byte> y(96);
  const std::vector<std::span<std::byte>> out = {y};
  const auto same = [&] { return std::equal(y.begin(), y.end(), (*want)[0].bytes().begin()); };
  for (int run = 0; run < 4; ++run) {
    const auto seconds = (*executable)->TimeRun(in, out, nullptr);
    ASSERT_TRUE(seconds.ok()) << seconds.status();
    EXPECT_GT(*seconds, 0) << "the first event comes before all launches, the last one after them";
    EXPECT_TRUE(same());
    std::vector<double> steps;
    ASSERT_TRUE((*executable)->RunTimed(in, out, steps).ok());
    EXPECT_EQ(steps.size(), program.launches.size());
    EXPECT_TRUE(same());
  }
}

}  // namespace
}  // namespace mendel::cuda
