// Programs whose branches are captured side by side: replayed in every order that the graph allows, they compute what the chain
// does.

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "graph/random_graph.h"
#include "graph/text.h"
#include "gtest/gtest.h"
#include "kernels/cuda/backend/compile.h"
#include "kernels/cuda/backend/executable.h"
#include "kernels/cuda/backend/launch_order.h"
#include "kernels/cuda/device_case.h"
#include "kernels/cuda/fake/fake_driver.h"

namespace mendel::cuda {
namespace {

using testing::HasSubstr;

constexpr double kAlways = std::numeric_limits<double>::infinity();  // of apart_up_to

/// Two branches of three launches each, which meet in the last one.
Graph Diamond() {
  auto graph = ParseGraph(R"(graph "diamond" {
    %0 = Input() {name = "x", shape = [4, 6]}
    %1 = Softmax(%0) {axis = 1}
    %2 = Softmax(%1) {axis = 0}
    %3 = Softmax(%2) {axis = 1}
    %4 = Softmax(%0) {axis = 0}
    %5 = Softmax(%4) {axis = 1}
    %6 = Softmax(%5) {axis = 0}
    %7 = Add(%3, %6)
    return "y" = %7
  })");
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

/// Softmaxes and sums of what was there before, so that many branches leave and meet.
Graph RandomBranches(Rng& rng) {
  GraphBuilder builder;
  std::vector<ValueId> values;
  for (int64_t k = rng.Between(1, 2); k > 0; --k) values.push_back(builder.Input(Cat("x", k), {DType::kF32, {4, 6}}));
  const auto any = [&] { return values[static_cast<size_t>(rng.Below(values.size()))]; };
  std::set<ValueId> unread;
  for (int64_t k = rng.Between(4, 12); k > 0; --k) {
    const std::vector<ValueId> inputs = rng.Below(3) == 0 ? std::vector{any(), any()} : std::vector{any()};
    const auto made =
        inputs.size() == 2 ? builder.Add("Add", inputs) : builder.Add("Softmax", inputs, {{"axis", rng.Between(0, 1)}});
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

std::vector<Tensor> RandomTensors(Rng& rng, const Graph& graph) {
  std::vector<Tensor> tensors;
  for (const HostValue& input : RandomInputs(rng, graph)) tensors.push_back(input.ToTensor());
  return tensors;
}

bool SameBytes(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (size_t k = 0; k < a.size(); ++k) {
    if (!std::equal(a[k].bytes().begin(), a[k].bytes().end(), b[k].bytes().begin(), b[k].bytes().end())) return false;
  }
  return a.size() == b.size();
}

/// Runs of `program` with other inputs each time, of which `chain` says what they yield: how many are not that, bit by bit.
absl::StatusOr<int> WrongRuns(const Driver& driver, const Graph& graph, DeviceProgram program, Executable& chain, int runs) {
  MENDEL_ASSIGN_OR_RETURN(const auto executable, MakeExecutable(driver, std::move(program), &TextImage));
  int wrong = 0;
  Rng rng(7);
  for (int run = 0; run < runs; ++run) {
    const std::vector<Tensor> inputs = RandomTensors(rng, graph);
    MENDEL_ASSIGN_OR_RETURN(const std::vector<Tensor> want, RunOnTensors(chain, graph, inputs));
    MENDEL_ASSIGN_OR_RETURN(const std::vector<Tensor> have, RunOnTensors(*executable, graph, inputs));
    wrong += SameBytes(want, have) ? 0 : 1;
  }
  return wrong;
}

DeviceProgram Lowered(const Graph& graph, LaunchOrder order, double apart_up_to = 0) {
  auto program = LowerToDevice(graph, {.order = order, .apart_up_to = apart_up_to});
  EXPECT_TRUE(program.ok()) << program.status();
  return *std::move(program);
}

TEST(CudaBranches, RandomGraphsComputeTheSameInAnyOrder) {
  std::vector<Graph> graphs;
  std::vector<DeviceCase> cases;
  for (uint64_t seed = 1; seed <= 16; ++seed) {
    Rng rng(seed);
    graphs.push_back(seed % 4 == 0 ? RandomGraph(rng, static_cast<int>(rng.Between(6, 14))) : RandomBranches(rng));
    cases.push_back({Cat("seed ", seed), graphs.back(), {}, Lowered(graphs.back(), LaunchOrder::kChain)});
  }
  FakeDriver driver;
  const absl::Status prepared = driver.Prepare(ModuleOf(cases));
  ASSERT_TRUE(prepared.ok()) << prepared;
  size_t parallel = 0, launches = 0;
  std::array<size_t, 2> unordered = {0, 0};
  for (size_t k = 0; k < graphs.size(); ++k) {
    const std::string told = Cat(cases[k].told, "\n", PrintGraph(graphs[k]));
    const auto chain = MakeExecutable(driver.table(), cases[k].program, &TextImage);
    ASSERT_TRUE(chain.ok()) << told << chain.status();
    for (const bool apart : {false, true}) {
      DeviceProgram program = Lowered(graphs[k], LaunchOrder::kBranches, apart ? kAlways : 0);
      unordered[apart] += UnorderedPairs(program);
      parallel += IsChain(DependenciesIn(program)) ? 0 : 1;
      launches += program.launches.size();
      const auto wrong = WrongRuns(driver.table(), graphs[k], std::move(program), **chain, 5);
      ASSERT_TRUE(wrong.ok()) << told << wrong.status();
      EXPECT_EQ(*wrong, 0) << told << (apart ? ", apart" : "");
    }
  }
  std::printf("%zu programs, %zu of them with branches, %zu launches; pairs that nothing orders: %zu, apart %zu\n",
              2 * graphs.size(), parallel, launches, unordered[false], unordered[true]);
  EXPECT_GT(unordered[true], unordered[false]);
  EXPECT_GT(parallel, graphs.size() / 2);
}

/// The driver's table, but for one dependency of all captures that is dropped.
struct Dropping {
  explicit Dropping(const Driver& driver, int64_t which) : table(driver) {
    original = driver;
    countdown = which;
    dropped = false;
    table.StreamUpdateCaptureDependencies = [](DriverStream* stream, DriverGraphNode** nodes, size_t count, unsigned flags) {
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

/// Whatever dependency of a run is dropped, some order that is then allowed computes something else.
TEST(CudaBranches, NoDependencyIsIdle) {
  const Graph graph = Diamond();
  FakeDriver driver;
  const DeviceProgram program = Lowered(graph, LaunchOrder::kBranches, kAlways);
  ASSERT_TRUE(driver.Prepare(program.ModuleText()).ok());
  const auto chain = MakeExecutable(driver.table(), Lowered(graph, LaunchOrder::kChain), &TextImage);
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

TEST(CudaBranches, ApartTheyShareNoMemory) {
  const Graph graph = Diamond();
  const DeviceProgram shared = Lowered(graph, LaunchOrder::kBranches), apart = Lowered(graph, LaunchOrder::kBranches, kAlways);
  EXPECT_TRUE(IsChain(DependenciesIn(shared))) << "the second branch lies where the first one did";
  ASSERT_EQ(apart.launches.size(), 6u);
  const Dependencies dependencies = DependenciesIn(apart);
  EXPECT_THAT(dependencies[0], testing::IsEmpty());
  EXPECT_THAT(dependencies[1], testing::IsEmpty()) << "level by level, the launches of both branches alternate";
  EXPECT_THAT(dependencies[3], testing::Not(testing::Contains(2)));
  EXPECT_GT(UnorderedPairs(apart), UnorderedPairs(shared));
  EXPECT_GT(apart.arena_bytes, shared.arena_bytes);
  const double times = static_cast<double>(apart.arena_bytes) / static_cast<double>(shared.arena_bytes);
  EXPECT_EQ(Lowered(graph, LaunchOrder::kBranches, times).arena_bytes, apart.arena_bytes);
  EXPECT_EQ(DependenciesIn(Lowered(graph, LaunchOrder::kBranches, times - 0.01)), DependenciesIn(shared)) << "too much";
}

/// The table of a driver on which the replays of the second graph that was made take so much longer than those of the others.
struct Timed {
  Timed(const Driver& driver, float factor_of_second) : table(driver) {
    original = driver;
    factor = factor_of_second;
    made = 0;
    updates = 0;
    second = last = nullptr;
    table.GraphInstantiate = [](DriverGraphExec** exec, DriverGraph* graph, unsigned long long flags) {
      const int result = original.GraphInstantiate(exec, graph, flags);
      if (++made == 2) {
        second = *exec;
        updates = 0;  // from here on: what the choice leads to
      }
      return result;
    };
    table.GraphLaunch = [](DriverGraphExec* exec, DriverStream* stream) {
      last = exec;
      return original.GraphLaunch(exec, stream);
    };
    table.EventElapsedTime = [](float* milliseconds, DriverEvent* from, DriverEvent* to) {
      if (const int failed = original.EventElapsedTime(milliseconds, from, to); failed != 0) return failed;
      *milliseconds = last == second ? factor : 1.0f;
      return 0;
    };
    table.StreamUpdateCaptureDependencies = [](DriverStream* stream, DriverGraphNode** nodes, size_t count, unsigned flags) {
      ++updates;
      return original.StreamUpdateCaptureDependencies(stream, nodes, count, flags);
    };
  }
  static inline Driver original;
  static inline float factor;
  static inline int made, updates;
  static inline DriverGraphExec *second, *last;
  Driver table;
};

TEST(CudaBranches, TheFasterOrderIsTaken) {
  const Graph graph = Diamond();
  FakeDriver driver;
  const DeviceProgram program = Lowered(graph, LaunchOrder::kFaster, kAlways);
  ASSERT_TRUE(driver.Prepare(program.ModuleText()).ok());
  const auto chain = MakeExecutable(driver.table(), Lowered(graph, LaunchOrder::kChain), &TextImage);
  ASSERT_TRUE(chain.ok()) << chain.status();
  for (const float factor : {0.5f, 0.99f, 2.0f}) {
    const Timed timed(driver.table(), factor);
    const auto wrong = WrongRuns(timed.table, graph, program, **chain, 3);
    ASSERT_TRUE(wrong.ok()) << wrong.status();
    EXPECT_EQ(*wrong, 0);
    EXPECT_EQ(Timed::made, 4) << "two that are compared, a whole run, the launches";
    EXPECT_EQ(Timed::updates > 0, factor < 0.9f) << factor << ": within what times repeat, the chain stays";
  }
  // Nothing is measured where there is nothing to choose.
  const auto line = ParseGraph(R"(graph "line" {
    %0 = Input() {name = "x", shape = [4, 6]}
    %1 = Softmax(%0) {axis = 1}
    %2 = Softmax(%1) {axis = 0}
    return "y" = %2
  })");
  ASSERT_TRUE(line.ok()) << line.status();
  const Timed timed(driver.table(), 1);
  ASSERT_TRUE(MakeExecutable(timed.table, Lowered(*line, LaunchOrder::kFaster), &TextImage).ok());
  EXPECT_EQ(Timed::made, 2);
  EXPECT_EQ(Timed::updates, 0);
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

TEST(CudaBranches, EveryCallMayFail) {
  const Graph graph = Diamond();
  FakeDriver driver;
  const DeviceProgram program = Lowered(graph, LaunchOrder::kFaster, kAlways);
  ASSERT_TRUE(driver.Prepare(program.ModuleText()).ok());
  const auto chain = MakeExecutable(driver.table(), Lowered(graph, LaunchOrder::kChain), &TextImage);
  ASSERT_TRUE(chain.ok()) << chain.status();
  const std::string leaks = driver.Leaks();  // the chain's own
  Rng rng(5);
  const std::vector<Tensor> inputs = RandomTensors(rng, graph);
  const auto want = RunOnTensors(**chain, graph, inputs);
  ASSERT_TRUE(want.ok()) << want.status();
  for (const LaunchOrder order : {LaunchOrder::kFaster, LaunchOrder::kBranches}) {
    const Timed timed(driver.table(), 0.5f);
    DeviceProgram ordered = program;
    ordered.order = order;
    driver.FailAt(0);
    ASSERT_TRUE(MakeExecutable(timed.table, ordered, &TextImage).ok());
    const int64_t calls = driver.Calls();
    std::set<std::string> failed, told;
    for (int64_t call = 1; call <= calls; ++call) {
      {
        const Timed again(driver.table(), 0.5f);
        driver.FailAt(call);
        const auto made = MakeExecutable(again.table, ordered, &TextImage);
        const std::string entry = driver.FailedCall();
        const std::string text = made.ok() ? (*made)->steps()[0].kernel : std::string(made.status().message());
        if (!made.ok() || text != program.launches[0].info.kernel) {
          (made.ok() ? told : failed).insert(entry);
          EXPECT_THAT(text, HasSubstr("cu" + entry)) << call;
        }
        driver.FailAt(0);
        if (made.ok()) {
          const auto have = RunOnTensors(**made, graph, inputs);
          EXPECT_TRUE(have.ok() && SameBytes(*want, *have)) << call << " " << entry << have.status();
        }
      }
      EXPECT_EQ(driver.Leaks(), leaks) << call;
    }
    // Where branches are only measured, what fails with them leaves the chain.
    for (const char* entry : {"StreamUpdateCaptureDependencies", "StreamGetCaptureInfo"}) {
      EXPECT_EQ(failed.count(entry), order == LaunchOrder::kBranches ? 1u : 0u) << entry;
      EXPECT_EQ(told.count(entry), order == LaunchOrder::kFaster ? 1u : 0u) << entry;
    }
    for (const char* entry : {"StreamBeginCapture", "StreamEndCapture", "GraphInstantiate"}) {
      EXPECT_EQ(failed.count(entry), 1u) << entry << " of the chain, or of branches that are asked for";
      EXPECT_EQ(told.count(entry), order == LaunchOrder::kFaster ? 1u : 0u) << entry;
    }
    for (const char* entry : {"GraphLaunch", "EventElapsedTime"}) {
      EXPECT_EQ(failed.count(entry), 0u) << entry;
      EXPECT_EQ(told.count(entry), order == LaunchOrder::kFaster ? 1u : 0u) << entry;
    }
  }
}

TEST(CudaBranches, WhereMemoryRunsOutTheChainTakesLess) {
  const Graph graph = Diamond();
  const DeviceProgram shared = Lowered(graph, LaunchOrder::kChain), apart = Lowered(graph, LaunchOrder::kFaster, kAlways);
  FakeDriver driver;
  ASSERT_TRUE(driver.Prepare(apart.ModuleText()).ok());
  const auto compile = [&](LaunchOrder order) {
    return CompileGraph(driver.table(), graph, {.order = order, .apart_up_to = kAlways}, &TextImage);
  };
  const auto plenty = compile(LaunchOrder::kFaster);
  ASSERT_TRUE(plenty.ok()) << plenty.status();
  EXPECT_EQ((*plenty)->memory().arena_bytes, apart.arena_bytes);
  Rng rng(2);
  const std::vector<Tensor> inputs = RandomTensors(rng, graph);
  const auto want = RunOnTensors(**plenty, graph, inputs);
  driver.SetMemory(static_cast<size_t>(apart.arena_bytes + shared.arena_bytes));  // the first one's is taken
  const auto small = compile(LaunchOrder::kFaster);
  ASSERT_TRUE(small.ok()) << small.status();
  EXPECT_EQ((*small)->memory().arena_bytes, shared.arena_bytes);
  EXPECT_THAT((*small)->steps()[0].kernel, HasSubstr("; launches one after the other (branches: "));
  EXPECT_THAT((*small)->steps()[0].kernel, HasSubstr("cuMemAlloc: out of device memory)"));
  const auto have = RunOnTensors(**small, graph, inputs);
  ASSERT_TRUE(want.ok() && have.ok()) << have.status();
  EXPECT_TRUE(SameBytes(*want, *have));
  // There is less than the chain takes; and who asks for branches gets these or none.
  EXPECT_EQ(compile(LaunchOrder::kFaster).status().code(), absl::StatusCode::kResourceExhausted);
  driver.SetMemory(static_cast<size_t>(apart.arena_bytes + 2 * shared.arena_bytes));
  EXPECT_EQ(compile(LaunchOrder::kBranches).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(CudaBranches, AnErrorThatSticksIsNoReasonForTheChain) {
  const DeviceProgram program = Lowered(Diamond(), LaunchOrder::kFaster, kAlways);
  FakeDriver driver;
  ASSERT_TRUE(driver.Prepare(program.ModuleText()).ok());
  int64_t call = 0;
  do {
    driver.FailAt(++call);
    EXPECT_TRUE(call < 1000);
    (void)MakeExecutable(driver.table(), program, &TextImage);
  } while (driver.FailedCall() != "StreamUpdateCaptureDependencies" && call < 1000);
  driver.FailAt(call, 700);
  const absl::Status status = MakeExecutable(driver.table(), program, &TextImage).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("a kernel failed earlier"));
}

}  // namespace
}  // namespace mendel::cuda
