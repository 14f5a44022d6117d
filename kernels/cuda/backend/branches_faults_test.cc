// Tests of branches with a lost dependency, a failing call, or too little memory.

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "kernels/cuda/backend/branches_case.h"
#include "kernels/cuda/testing/fake/fake_driver.h"

namespace mendel::cuda {
namespace {

using testing::HasSubstr;

/// A driver's table that drops one dependency of all captures.
struct Dropping {
  explicit Dropping(const Driver& driver, int64_t which) : table(driver) {
    original = driver;
    countdown = which;
    dropped = false;
    table.StreamUpdateCaptureDependencies = [](DriverStream* stream, DriverGraphNode** nodes,
                                               size_t count, unsigned flags) {
      std::vector<DriverGraphNode*> kept;
      kept.reserve(count + 1);  // not null, with nothing in it either
      for (size_t k = 0; k < count; ++k) {
        if (countdown-- != 0) kept.push_back(nodes[k]);
      }
      dropped = dropped || kept.size() < count;
      return original.StreamUpdateCaptureDependencies(stream, kept.data(), kept.size(), flags);
    };
  }
  static inline Driver original;
  static inline int64_t countdown;
  static inline bool dropped;
  Driver table;
};

/// Every dependency of a run is needed: without it, some allowed order of the launches computes
/// something else.
TEST(CudaBranches, NoDependencyIsIdle) {
  const Graph graph = Diamond();
  FakeDriver driver;
  const DeviceProgram program = Lowered(graph, LaunchOrder::kBranches, kAlways);
  ASSERT_TRUE(driver.Prepare(program.ModuleText()).ok());
  const auto chain =
      MakeExecutable(driver.table(), Lowered(graph, LaunchOrder::kChain), &TextImage);
  ASSERT_TRUE(chain.ok()) << chain.status();
  EXPECT_EQ(*WrongRuns(driver.table(), graph, program, **chain, 24), 0);
  std::vector<MemoryUse> uses = {{{}, {program.inputs[0].buffer}}};
  for (const DeviceLaunch& launch : program.launches) uses.push_back(UseOf(launch));
  for (const DeviceCopy& output : program.outputs) uses.push_back({{output.buffer}, {}});
  int64_t edges = 0;
  for (const auto& own : DependenciesOf(uses)) edges += static_cast<int64_t>(own.size());
  EXPECT_GE(edges, 7);
  for (int64_t edge = 0; edge < edges; ++edge) {
    const Dropping dropping(driver.table(), edge);
    const auto wrong = WrongRuns(dropping.table, graph, program, **chain, 24);
    ASSERT_TRUE(wrong.ok()) << wrong.status();
    EXPECT_TRUE(Dropping::dropped);
    EXPECT_GT(*wrong, 0) << "dependency " << edge;
  }
}

TEST(CudaBranches, EveryCallMayFail) {
  const Graph graph = Diamond();
  FakeDriver driver;
  const std::vector<DeviceProgram> orders = InOrders(graph);
  const DeviceProgram branches = Lowered(graph, LaunchOrder::kBranches, kAlways);
  ASSERT_TRUE(driver.Prepare(branches.ModuleText()).ok());
  const auto chain =
      MakeExecutable(driver.table(), Lowered(graph, LaunchOrder::kChain), &TextImage);
  ASSERT_TRUE(chain.ok()) << chain.status();
  const std::string leaks = driver.Leaks();  // the chain's own
  Rng rng(5);
  const std::vector<Tensor> inputs = RandomTensors(rng, graph);
  const auto want = RunOnTensors(**chain, graph, inputs);
  ASSERT_TRUE(want.ok()) << want.status();
  for (const LaunchOrder order : {LaunchOrder::kFaster, LaunchOrder::kBranches}) {
    const auto make = [&](const Driver& table) {
      return order == LaunchOrder::kFaster ? MakeFastest(table, orders, &TextImage)
                                           : MakeExecutable(table, branches, &TextImage);
    };
    const Timed timed(driver.table(), 0.5f);
    driver.FailAt(0);
    const std::string whole = (*make(timed.table))->steps()[0].kernel;
    const int64_t calls = driver.Calls();
    std::set<std::string> failed, reported;
    for (int64_t call = 1; call <= calls; ++call) {
      {
        const Timed again(driver.table(), 0.5f);
        driver.FailAt(call);
        const auto made = make(again.table);
        const std::string entry = driver.FailedCall();
        const std::string text =
            made.ok() ? (*made)->steps()[0].kernel : std::string(made.status().message());
        if (!made.ok() || text != whole) {
          (made.ok() ? reported : failed).insert(entry);
          EXPECT_THAT(text, HasSubstr("cu" + entry)) << call;
        }
        driver.FailAt(0);
        if (made.ok()) {
          const auto have = RunOnTensors(**made, graph, inputs);
          EXPECT_TRUE(have.ok() && SameBytes(*want, *have))
              << call << " " << entry << have.status();
        }
      }
      EXPECT_EQ(driver.Leaks(), leaks) << call;
    }
    // Errors in branches that are only measured leave the chain in use.
    for (const char* entry : {"StreamUpdateCaptureDependencies", "StreamGetCaptureInfo"}) {
      EXPECT_EQ(failed.count(entry), order == LaunchOrder::kBranches ? 1u : 0u) << entry;
      EXPECT_EQ(reported.count(entry), order == LaunchOrder::kFaster ? 1u : 0u) << entry;
    }
    for (const char* entry : {"StreamBeginCapture", "StreamEndCapture", "GraphInstantiate"}) {
      EXPECT_EQ(failed.count(entry), order == LaunchOrder::kBranches ? 1u : 0u) << entry;
      EXPECT_EQ(reported.count(entry), order == LaunchOrder::kFaster ? 1u : 0u) << entry;
    }
    for (const char* entry : {"GraphLaunch", "EventElapsedTime"}) {
      EXPECT_EQ(failed.count(entry), 0u) << entry;
      EXPECT_EQ(reported.count(entry), order == LaunchOrder::kFaster ? 1u : 0u) << entry;
    }
  }
}

TEST(CudaBranches, WhereMemoryRunsOutTheChainStays) {
  const Graph graph = Diamond();
  const std::vector<DeviceProgram> orders = InOrders(graph);
  const size_t chain = static_cast<size_t>(orders[0].arena_bytes),
               both = chain + static_cast<size_t>(orders[1].arena_bytes);
  FakeDriver driver;
  ASSERT_TRUE(driver.Prepare(orders[0].ModuleText()).ok());
  const auto compile = [&](const Driver& table, LaunchOrder order) {
    return CompileGraph(table, graph, {.order = order, .apart_up_to = kAlways}, &TextImage);
  };
  std::vector<Tensor> inputs, want;
  {
    const Timed timed(driver.table(), 0.5f);
    driver.SetMemory(both);
    const auto plenty = compile(timed.table, LaunchOrder::kFaster);
    ASSERT_TRUE(plenty.ok()) << plenty.status();
    EXPECT_EQ((*plenty)->memory().arena_bytes, orders[1].arena_bytes);
    Rng rng(2);
    inputs = RandomTensors(rng, graph);
    want = *RunOnTensors(**plenty, graph, inputs);
  }
  const Timed timed(driver.table(), 0.5f);
  driver.SetMemory(both - 1);
  const auto small = compile(timed.table, LaunchOrder::kFaster);
  ASSERT_TRUE(small.ok()) << small.status();
  EXPECT_EQ((*small)->memory().arena_bytes, orders[0].arena_bytes);
  EXPECT_THAT((*small)->steps()[0].kernel,
              HasSubstr("; launches in the order of the plan, not up to 2 side by side ("));
  EXPECT_THAT((*small)->steps()[0].kernel, HasSubstr("cuMemAlloc: out of device memory)"));
  const auto have = RunOnTensors(**small, graph, inputs);
  ASSERT_TRUE(have.ok()) << have.status();
  EXPECT_TRUE(SameBytes(want, *have));
  // Less memory is left than a second chain needs. Branches that were requested are compiled or
  // refused, never replaced.
  driver.SetMemory(2 * chain - 1);
  EXPECT_EQ(compile(timed.table, LaunchOrder::kFaster).status().code(),
            absl::StatusCode::kResourceExhausted);
  driver.SetMemory(2 * chain);
  EXPECT_TRUE(compile(timed.table, LaunchOrder::kFaster).ok());
  EXPECT_EQ(compile(timed.table, LaunchOrder::kBranches).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(CudaBranches, AnErrorThatSticksIsNoReasonForTheChain) {
  const std::vector<DeviceProgram> orders = InOrders(Diamond());
  FakeDriver driver;
  ASSERT_TRUE(driver.Prepare(orders[0].ModuleText()).ok());
  int64_t call = 0;
  do {
    driver.FailAt(++call);
    EXPECT_TRUE(call < 1000);
    (void)MakeFastest(driver.table(), orders, &TextImage);
  } while (driver.FailedCall() != "StreamUpdateCaptureDependencies" && call < 1000);
  driver.FailAt(call, 700);
  const absl::Status status = MakeFastest(driver.table(), orders, &TextImage).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("a kernel failed earlier"));
}

}  // namespace
}  // namespace mendel::cuda
