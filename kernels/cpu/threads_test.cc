// The team of threads: its size, where it runs, how it waits, and several teams side by side.

#include "kernels/cpu/threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "graph/emitter.h"
#include "graph/random_graph.h"
#include "graph/tensor.h"
#include "runtime/cpu_topology.h"
#include "runtime/measure.h"
#include "runtime/session.h"
#include "runtime/test_plan.h"

namespace mendel::cpu {
namespace {

std::set<int> Tasks() {
  std::set<int> tasks;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task"))
    tasks.insert(std::stoi(entry.path().filename()));
  return tasks;
}

/// The number of this process's threads. A listing of /proc/self/task may end early beside a thread
/// that ends; this number does not.
size_t ThreadCount() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("Threads:")) return std::stoul(line.substr(8));
  }
  ADD_FAILURE() << "no number of threads";
  return 0;
}

/// Waits until at most `count` threads are left: a joined thread may still be counted.
void AwaitThreads(size_t count) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (ThreadCount() > count) {
    ASSERT_LT(std::chrono::steady_clock::now(), end) << ThreadCount() << " threads, not " << count;
    std::this_thread::yield();
  }
}

std::set<int> AllowedNow() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  std::set<int> cpus;
  EXPECT_EQ(sched_getaffinity(0, sizeof(mask), &mask), 0);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &mask)) cpus.insert(cpu);
  }
  return cpus;
}

/// Runs `body` in a thread of its own, and waits until the thread's team, which ends after it, has
/// ended.
void Apart(const std::function<void()>& body) {
  const size_t before = ThreadCount();
  std::thread(body).join();
  AwaitThreads(before);
}

/// Returns, by member of the team, its thread and the CPUs that it may run on.
std::map<int, std::set<int>> Members(int threads) {
  std::mutex mutex;
  std::map<int, std::set<int>> members;
  ParallelRange(threads, 1, [&](int64_t, int64_t) {
    const std::set<int> cpus = AllowedNow();
    const std::lock_guard<std::mutex> lock(mutex);
    members[gettid()] = cpus;
  });
  return members;
}

/// Convolutions, a product, a softmax and elementwise operators: oneDNN and native kernels in turn.
Graph MixedNetwork(uint64_t seed) {
  Rng rng(seed);
  Emitter e("mixed");
  const auto weights = [&](const Shape& shape) {
    std::vector<double> values(static_cast<size_t>(NumElements(shape)));
    for (double& value : values) value = 0.2 * rng.Normal();
    return e.Constant(Tensor::FromDoubles({DType::kF32, shape}, values));
  };
  const Attributes conv{{"strides", Ints{1, 1}},
                        {"dilations", Ints{1, 1}},
                        {"pads", Ints{1, 1, 1, 1}},
                        {"group", int64_t{1}}};
  ValueId x = e.Input("x", {DType::kF32, {2, 16, 20, 20}});
  for (int layer = 0; layer < 3; ++layer) {
    const ValueId y = e.Op("Conv", {x, weights({16, 16, 3, 3}), weights({16})}, conv);
    x = e.Op("Relu", {e.Add(y, x)});
    x = e.Op("Sigmoid", {x});
  }
  x = e.Op("Reshape", {x}, {{"shape", Ints{32, 400}}});
  x = e.Op("MatMul", {x, weights({400, 48})});
  x = e.Op("Softmax", {x}, {{"axis", int64_t{1}}});
  e.Output("y", e.Op("ReduceMean", {x}, {{"axes", Ints{1}}, {"keepdims", int64_t{0}}}));
  auto graph = e.Finish();
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *graph;
}

std::unique_ptr<Executable> Compiled(const Graph& graph, const CompileOptions& options) {
  auto executable = FindBackend("cpu")->Compile(graph, options);
  EXPECT_TRUE(executable.ok()) << executable.status();
  return *std::move(executable);
}

TEST(Threads, RangesCoverAndAreDisjoint) {
  for (const int threads : {1, 2, 3, 5}) {
    const ThreadScope scope(threads);
    for (const int64_t count : {0, 1, 2, 3, 7, 64, 1000}) {
      for (const int64_t grain : {1, 2, 5, 64, 5000}) {
        std::vector<std::atomic<int>> visits(static_cast<size_t>(count));
        std::atomic<int> calls = 0;
        ParallelRange(count, grain, [&](int64_t begin, int64_t end) {
          ++calls;
          EXPECT_TRUE(begin < end && begin % grain == 0 && (end - begin >= grain || end == count))
              << begin << " to " << end;
          for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
        });
        EXPECT_TRUE(std::all_of(visits.begin(), visits.end(), [](const auto& n) { return n == 1; }))
            << threads << " " << count;
        EXPECT_LE(calls, std::min<int64_t>(threads, (count + grain - 1) / grain));
      }
    }
  }
}

TEST(Threads, ATeamKeepsItsMembers) {
  Apart([] {
    const ThreadScope scope(4);
    std::set<int> seen;
    for (const int grains : {4, 2, 3, 1, 4, 2, 4}) {
      for (const auto& [task, cpus] : Members(grains)) seen.insert(task);
    }
    EXPECT_EQ(seen.size(), 4u) << "threads were ended and made again";
  });
}

/// A plan has the number of threads that was set, while it runs and afterwards. No thread remains
/// when its caller has ended.
TEST(Threads, APlanHasNoMoreThanItsOwn) {
  const Graph graph = MixedNetwork(1);
  const std::vector<Tensor> inputs = RandomInputs(graph, 1);
  for (const size_t threads : {1, 2, 4}) {
    const size_t before = ThreadCount();
    std::atomic<bool> done = false;
    size_t most = 0;
    std::thread watcher([&] {
      while (!done) most = std::max(most, ThreadCount());
    });
    Apart([&] {
      const auto executable = Compiled(graph, {.threads = static_cast<int>(threads)});
      for (int run = 0; run < 20; ++run) EXPECT_TRUE(RunOnTensors(*executable, graph, inputs).ok());
      const std::set<int> after_runs = Tasks();
      EXPECT_EQ(after_runs.size(), before + 1 + threads) << "with the watcher";
      EXPECT_TRUE(RunOnTensors(*executable, graph, inputs).ok());
      EXPECT_EQ(Tasks(), after_runs);
    });
    done = true;
    watcher.join();
    AwaitThreads(before);
    EXPECT_LE(most, before + 1 + threads);
  }
}

/// Idle members spin for a bounded time (docs/cpu.md); one that spins on would keep this test from
/// ending.
TEST(Threads, IdleMembersSleep) {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr) {
    GTEST_SKIP() << "the environment says how long they spin";
  }
  Apart([] {
    const ThreadScope scope(3);
    std::map<int, std::set<int>> members = Members(3);
    members.erase(gettid());
    ASSERT_EQ(members.size(), 2u);
    for (const auto& [task, cpus] : members) {
      for (std::string state; state != "S";
           std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
        std::ifstream stat("/proc/self/task/" + std::to_string(task) + "/stat");
        std::string number, name;
        stat >> number >> name >> state;
      }
    }
  });
}

TEST(Threads, PinnedWhileInScope) {
  const auto cpus = ChooseCpus("cores", 2);
  if (!cpus.ok()) GTEST_SKIP() << cpus.status().message();
  const std::set<int> before = AllowedNow();
  const ThreadScope scope(2);
  {
    const PinScope pinned(*cpus);
    EXPECT_TRUE(pinned.status().ok()) << pinned.status();
    std::set<std::set<int>> places;
    for (const auto& [task, where] : Members(2)) places.insert(where);
    EXPECT_EQ(places, (std::set<std::set<int>>{{(*cpus)[0]}, {(*cpus)[1]}}));
    EXPECT_EQ(AllowedNow(), std::set<int>{(*cpus)[0]});
  }
  for (const auto& [task, where] : Members(2)) EXPECT_EQ(where, before) << task;
  const PinScope nowhere({});
  EXPECT_EQ(AllowedNow(), before);
}

TEST(Threads, APlanIsPinnedWhileItRuns) {
  const auto cores = ChooseCpus("cores", 1);
  ASSERT_TRUE(cores.ok());
  const Graph graph = MixedNetwork(2);
  const std::vector<Tensor> inputs = RandomInputs(graph, 1);
  const std::set<int> before = AllowedNow();
  const auto free = RunOnTensors(*Compiled(graph, {.threads = 1}), graph, inputs);
  const auto pinned = RunOnTensors(*Compiled(graph, {.threads = 1, .cpus = *cores}), graph, inputs);
  ASSERT_TRUE(free.ok() && pinned.ok()) << pinned.status();
  EXPECT_TRUE(*free == *pinned);
  EXPECT_EQ(AllowedNow(), before);
  // A CPU does not exist (any more): every run reports it, and no thread stays pinned.
  const auto lost = Compiled(graph, {.threads = 2, .cpus = {(*cores)[0], CPU_SETSIZE - 1}});
  EXPECT_THAT(std::string(RunOnTensors(*lost, graph, inputs).status().message()),
              testing::HasSubstr("cannot be put on its CPU"));
  EXPECT_EQ(AllowedNow(), before);
  EXPECT_EQ(FindBackend("cpu")->Compile(graph, {.threads = 2, .cpus = *cores}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

/// Sessions of several threads at once, each with its team, give the bits that they give alone.
TEST(Threads, SessionsSideBySide) {
  for (const int sessions : {2, 3, 4}) {
    std::vector<std::thread> callers;
    std::vector<std::vector<Tensor>> alone(static_cast<size_t>(sessions));
    std::vector<std::unique_ptr<Session>> loaded;
    std::vector<Graph> graphs;
    for (int k = 0; k < sessions; ++k) {
      Plan plan = SmallPlan("cpu");
      plan.graph = MixedNetwork(static_cast<uint64_t>(10 + k));
      auto session = Session::Create(plan, {.threads = 1 + k % 3});
      ASSERT_TRUE(session.ok()) << session.status();
      const auto results =
          RunOnTensors((*session)->executable(), plan.graph, RandomInputs(plan.graph, 3));
      ASSERT_TRUE(results.ok()) << results.status();
      alone[static_cast<size_t>(k)] = *results;
      loaded.push_back(*std::move(session));
      graphs.push_back(std::move(plan.graph));
    }
    const size_t before = ThreadCount();
    std::atomic<int> ready = 0;
    for (int k = 0; k < sessions; ++k) {
      callers.emplace_back([&, k] {
        Session& session = *loaded[static_cast<size_t>(k)];
        const Graph& graph = graphs[static_cast<size_t>(k)];
        const std::vector<Tensor> inputs = RandomInputs(graph, 3);
        for (++ready; ready < sessions;) std::this_thread::yield();
        for (int run = 0; run < 30; ++run) {
          const auto results = RunOnTensors(session.executable(), graph, inputs);
          ASSERT_TRUE(results.ok()) << results.status();
          EXPECT_TRUE(*results == alone[static_cast<size_t>(k)])
              << "session " << k << " of " << sessions << ", run " << run;
        }
      });
    }
    for (std::thread& caller : callers) caller.join();
    AwaitThreads(before);
  }
}

}  // namespace
}  // namespace mendel::cpu
