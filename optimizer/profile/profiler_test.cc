#include "optimizer/profile/profiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <utility>

#include "base/status.h"
#include "base/work.h"
#include "graph/evaluate.h"
#include "optimizer/profile/clocked_executable.h"
#include "runtime/measuring_device.h"

namespace mendel {
namespace {

using testing::HasSubstr;

/// Runs the definition, with faults where a test wants them: "wrong" adds to the first output
/// element, every algorithm reports step times of its own.
class LyingExecutable : public Executable {
 public:
  LyingExecutable(Graph graph, Algorithms algorithms)
      : graph_(std::move(graph)), algorithms_(std::move(algorithms)) {
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      const int32_t id = static_cast<int32_t>(i);
      if (!IsInput(graph_.node(id)) && !IsConstant(graph_.node(id)))
        steps_.push_back({"step", {id}, "definition", 1});
    }
  }
  absl::Status Run(std::span<const std::span<const std::byte>> inputs,
                   std::span<const std::span<std::byte>> outputs) override {
    std::vector<HostValue> values;
    for (size_t k = 0; k < inputs.size(); ++k) {
      const TensorType& type = graph_.type({graph_.inputs()[k], 0});
      values.push_back(HostValue::FromTensor(
          Tensor(type, std::vector<std::byte>(inputs[k].begin(), inputs[k].end()))));
    }
    MENDEL_ASSIGN_OR_RETURN(const std::vector<HostValue> results, Evaluate(graph_, values));
    for (size_t k = 0; k < results.size(); ++k) {
      const Tensor tensor = results[k].ToTensor();
      std::memcpy(outputs[k].data(), tensor.bytes().data(), outputs[k].size());
      for (const auto& [node, name] : algorithms_) {
        if (name == "wrong") *reinterpret_cast<float*>(outputs[k].data()) += 0.5f;
      }
    }
    return absl::OkStatus();
  }
  const std::vector<Step>& steps() const override { return steps_; }
  absl::Status RunTimed(std::span<const std::span<const std::byte>> inputs,
                        std::span<const std::span<std::byte>> outputs,
                        std::vector<double>& seconds) override {
    seconds.clear();
    for (const Step& step : steps_) {
      const auto it = algorithms_.find(step.nodes[0]);
      seconds.push_back(it == algorithms_.end() ? 1.0 : it->second == "wrong" ? 0.1 : 0.5);
    }
    return Run(inputs, outputs);
  }
  MemoryReport memory() const override { return {}; }

 private:
  Graph graph_;
  Algorithms algorithms_;
  std::vector<Step> steps_;
};

class LyingBackend : public Backend {
 public:
  std::string_view name() const override { return "lying"; }
  absl::Status Probe() const override { return absl::OkStatus(); }
  std::string Identity() const override { return "lying"; }
  std::vector<std::string> Algorithms(const Graph& graph, int32_t node, Numerics) const override {
    if (graph.node(node).op->name != "Relu") return {};
    return {"right", "wrong"};
  }
  absl::StatusOr<std::unique_ptr<Executable>> Compile(
      const Graph& graph, const CompileOptions& options) const override {
    ++compiled;
    return std::make_unique<LyingExecutable>(graph, options.algorithms);
  }
  mutable int compiled = 0;
};

/// relu(x) * scale
Graph Scaled(double scale) {
  GraphBuilder builder;
  const ValueId x = builder.Input("x", {DType::kF32, {4, 4}});
  const ValueId relu = *builder.Add("Relu", {x});
  builder.Output("y",
                 *builder.Add("Mul", {relu, builder.Constant(Tensor::Scalar(DType::kF32, scale))}));
  return *builder.Build();
}

class ProfilerTest : public testing::Test {
 protected:
  ProfilerTest() : cache_(*ProfileCache::Open(":memory:")), profiler_(backend_, *cache_, {}) {}
  LyingBackend backend_;
  std::unique_ptr<ProfileCache> cache_;
  Profiler profiler_;
};

TEST_F(ProfilerTest, AlgorithmsWithWrongNumbersAreNeverChosen) {
  const auto chosen = profiler_.ChooseAlgorithms(Scaled(2), 0.01);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  ASSERT_EQ(chosen->size(), 1u);
  EXPECT_EQ(chosen->begin()->second, "right");  // "wrong" reported the best time
  ASSERT_EQ(profiler_.warnings().size(), 1u);
  EXPECT_THAT(profiler_.warnings()[0], HasSubstr("algorithm wrong"));
  EXPECT_THAT(profiler_.warnings()[0], HasSubstr("output 'y'"));

  // The stored decision says the same, warning included.
  Profiler again(backend_, *cache_, {.error_on_miss = true});
  EXPECT_EQ(*again.ChooseAlgorithms(Scaled(2), 0.01), *chosen);
  EXPECT_EQ(again.warnings(), profiler_.warnings());
}

/// The times of one program are credited to its nodes without a look at all steps for each.
TEST_F(ProfilerTest, CreditsNodesInNearlyLinearWork) {
  constexpr int64_t kNodes = 2048;
  GraphBuilder builder;
  ValueId x = builder.Input("x", {DType::kF32, {2}});
  for (int64_t k = 0; k < kNodes; ++k) x = *builder.Add("Relu", {x});
  builder.Output("y", x);
  const int64_t before = WorkDone();
  const auto chosen = profiler_.ChooseAlgorithms(*builder.Build(), 0.01);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_EQ(chosen->size(), static_cast<size_t>(kNodes));
  EXPECT_GE(WorkDone() - before, kNodes);
  EXPECT_LE(WorkDone() - before, 2 * backend_.compiled * kNodes);
}

TEST_F(ProfilerTest, KnownNodesAreNotMeasuredAgain) {
  ASSERT_TRUE(profiler_.ChooseAlgorithms(Scaled(2), 0.01).ok());
  const int compiled = backend_.compiled;
  const auto chosen = profiler_.ChooseAlgorithms(Scaled(3), 0.01);
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(chosen->size(), 1u);
  EXPECT_EQ(backend_.compiled, compiled);
  // The decision is stored as well, so that a later process decides alike without having met the
  // first graph.
  Profiler again(backend_, *cache_, {.error_on_miss = true});
  EXPECT_EQ(*again.ChooseAlgorithms(Scaled(3), 0.01), *chosen);
}

/// relu(x) * 2, and a second Relu of twice the columns.
Graph Widened() {
  GraphBuilder builder;
  const ValueId x = builder.Input("x", {DType::kF32, {4, 4}});
  const ValueId relu = *builder.Add("Relu", {x});
  const ValueId wide = *builder.Add("Concat", {relu, x}, {{"axis", int64_t{1}}});
  builder.Output("y", *builder.Add("Relu", {wide}));
  return *builder.Build();
}

TEST_F(ProfilerTest, KnownChoicesHoldInProgramsThatThereIsNoTimeFor) {
  profiler_.LimitTime(Deadline::Never(), "1 s");
  ASSERT_EQ(profiler_.ChooseAlgorithms(Scaled(2), 0.01)->size(), 1u);
  profiler_.LimitTime(Deadline::After(0), "1 s");
  const auto chosen = profiler_.ChooseAlgorithms(Widened(), 0.01);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_EQ(*chosen, (Algorithms{{1, "right"}}));
  // With time the other one is chosen, too, beside the known one.
  Profiler fresh(backend_, *cache_, {});
  ASSERT_TRUE(fresh.ChooseAlgorithms(Scaled(2), 0.01).ok());
  EXPECT_EQ(*fresh.ChooseAlgorithms(Widened(), 0.01), (Algorithms{{1, "right"}, {3, "right"}}));
}

/// The above with a second operator with algorithms: each operator's first and second choice are
/// timed in one program.
class TwoChoicesBackend final : public Backend {
 public:
  std::string_view name() const override { return "two choices"; }
  absl::Status Probe() const override { return absl::OkStatus(); }
  std::string Identity() const override { return "two choices"; }
  std::vector<std::string> Algorithms(const Graph& graph, int32_t node, Numerics) const override {
    if (graph.node(node).op->name == "Relu") return {"a", "b"};
    if (graph.node(node).op->name == "Mul") return {"c", spoiled ? "wrong" : "d"};
    return {};
  }
  absl::StatusOr<std::unique_ptr<Executable>> Compile(
      const Graph& graph, const CompileOptions& options) const override {
    programs.push_back(options.algorithms);
    return std::make_unique<LyingExecutable>(graph, options.algorithms);
  }
  bool spoiled = false;
  mutable std::vector<mendel::Algorithms> programs;
};

TEST(Profiler, OneProgramTimesAnAlgorithmOfEveryNode) {
  const auto cache = *ProfileCache::Open(":memory:");
  TwoChoicesBackend backend;
  Profiler profiler(backend, *cache, {});
  ASSERT_TRUE(profiler.ChooseAlgorithms(Scaled(2), 0.01).ok());
  ASSERT_GE(backend.programs.size(), 3u);  // combinations may follow
  EXPECT_EQ(backend.programs[0], Algorithms{});
  EXPECT_EQ(backend.programs[1], (Algorithms{{1, "a"}, {3, "c"}}));
  EXPECT_EQ(backend.programs[2], (Algorithms{{1, "b"}, {3, "d"}}));
}

TEST(Profiler, WrongNumbersInAProgramOfSeveralAlgorithmsAreOneAlgorithmsOwn) {
  const auto cache = *ProfileCache::Open(":memory:");
  TwoChoicesBackend backend;
  backend.spoiled = true;
  Profiler profiler(backend, *cache, {});
  const auto chosen = profiler.ChooseAlgorithms(Scaled(2), 0.01);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_EQ(chosen->size(), 2u);
  for (const auto& [node, name] : *chosen) EXPECT_NE(name, "wrong");
  ASSERT_EQ(profiler.warnings().size(), 1u);
  EXPECT_THAT(profiler.warnings()[0], HasSubstr("algorithm wrong"));
  const auto tried_alone = [&](const std::string& name) {
    return std::any_of(backend.programs.begin(), backend.programs.end(),
                       [&](const Algorithms& program) {
                         return program.size() == 1 && program.begin()->second == name;
                       });
  };
  EXPECT_TRUE(tried_alone("b"));
  EXPECT_TRUE(tried_alone("wrong"));
}

TEST(Profiler, WithoutTimeForOneProgramTheFavoritesAreChosen) {
  const auto cache = *ProfileCache::Open(":memory:");
  TwoChoicesBackend backend;
  Profiler profiler(backend, *cache, {});
  profiler.LimitTime(Deadline::After(0), "1 s");
  ASSERT_TRUE(profiler.NodeSeconds({Scaled(2), {}, "it"}).ok());  // says what a run takes
  EXPECT_EQ(*profiler.ChooseAlgorithms(Scaled(2), 0.01), (Algorithms{{1, "a"}, {3, "c"}}));
  // Nothing is guessed once algorithms have won.
  const auto other_cache = *ProfileCache::Open(":memory:");
  Profiler chosen(backend, *other_cache, {});
  chosen.KeepAlgorithms({"a", "c"});
  chosen.LimitTime(Deadline::After(0), "1 s");
  ASSERT_TRUE(chosen.NodeSeconds({Scaled(2), {}, "it"}).ok());
  EXPECT_TRUE(chosen.ChooseAlgorithms(Scaled(2), 0.01)->empty());
}

TEST(Profiler, AProgramIsCompiledOnceWhereThereIsNoTimeToDoItAgain) {
  const auto cache = *ProfileCache::Open(":memory:");
  TwoChoicesBackend backend;
  Profiler profiler(backend, *cache, {});
  const Variant it{Scaled(2), {}, "it"};
  int occasion = 0;  // nothing is taken from the cache
  const auto compilations = [&](Deadline deadline) {
    profiler.LimitTime(deadline, "1 s");
    const size_t before = backend.programs.size();
    EXPECT_TRUE(profiler.Compare({it}, 0.01, 1, std::to_string(++occasion)).ok());
    return backend.programs.size() - before;
  };
  EXPECT_EQ(compilations(Deadline::Never()), 1u);
  EXPECT_EQ(compilations(Deadline::Never()), 1u);
  EXPECT_EQ(compilations(Deadline::After(0)), 0u);
  profiler.DropCompiled();
  EXPECT_EQ(compilations(Deadline::After(0)), 1u);
}

/// Two algorithms for each of two operators, whose steps take what a test says, the more often they
/// were compiled, the later in the list; the default takes 1.
class ScriptedBackend final : public Backend {
 public:
  using Script = std::map<std::string, std::vector<double>>;  // seconds by algorithm
  explicit ScriptedBackend(Script script) : script_(std::move(script)) {}
  std::string_view name() const override { return "scripted"; }
  absl::Status Probe() const override { return absl::OkStatus(); }
  std::string Identity() const override { return "scripted"; }
  std::vector<std::string> Algorithms(const Graph& graph, int32_t node, Numerics) const override {
    if (graph.node(node).op->name == "Relu") return {"a", "b"};
    if (graph.node(node).op->name == "Mul") return {"c", "d"};
    return {};
  }
  absl::StatusOr<std::unique_ptr<Executable>> Compile(
      const Graph& graph, const CompileOptions& options) const override {
    std::map<int32_t, double> seconds;
    for (const auto& [node, name] : options.algorithms) {
      const std::vector<double>& times = script_.at(name);
      seconds[node] = times[std::min(compiled_[name]++, times.size() - 1)];
    }
    return std::make_unique<ScriptedExecutable>(graph, std::move(seconds));
  }

 private:
  class ScriptedExecutable final : public LyingExecutable {
   public:
    ScriptedExecutable(const Graph& graph, std::map<int32_t, double> seconds)
        : LyingExecutable(graph, {}), seconds_(std::move(seconds)) {}
    absl::Status RunTimed(std::span<const std::span<const std::byte>> inputs,
                          std::span<const std::span<std::byte>> outputs,
                          std::vector<double>& seconds) override {
      seconds.clear();
      for (const Step& step : steps()) {
        const auto it = seconds_.find(step.nodes[0]);
        seconds.push_back(it == seconds_.end() ? 1.0 : it->second);
      }
      return Run(inputs, outputs);
    }

   private:
    std::map<int32_t, double> seconds_;
  };
  Script script_;
  mutable std::map<std::string, size_t> compiled_;
};

Algorithms ScriptedChoice(ScriptedBackend::Script script) {
  const auto cache = *ProfileCache::Open(":memory:");
  ScriptedBackend backend(std::move(script));
  Profiler profiler(backend, *cache, {});
  const auto chosen = profiler.ChooseAlgorithms(Scaled(2), 0.01);
  EXPECT_TRUE(chosen.ok()) << chosen.status();
  return *chosen;
}

TEST(Profiler, AnAlgorithmThatWasLuckyOnceIsNotChosen) {
  EXPECT_EQ(ScriptedChoice({{"a", {0.6}}, {"b", {0.2, 0.95}}, {"c", {0.7}}, {"d", {0.8}}}),
            (Algorithms{{1, "a"}, {3, "c"}}));
  // An algorithm that gains nothing is not chosen either.
  EXPECT_EQ(ScriptedChoice({{"a", {1.2}}, {"b", {0.2, 1.6}}, {"c", {0.7}}, {"d", {0.8}}}),
            (Algorithms{{3, "c"}}));
}

TEST(Profiler, AProgramThatWasDisturbedOnceIsMeasuredAgain) {
  // The second compilation of either is that of the best of each together.
  EXPECT_EQ(
      ScriptedChoice({{"a", {0.5, 1.4, 0.5}}, {"b", {0.9}}, {"c", {0.9}}, {"d", {0.4, 1.4, 0.4}}}),
      (Algorithms{{1, "a"}, {3, "d"}}));
}

TEST_F(ProfilerTest, ProgramsWithWrongNumbersAreDroppedFromComparisons) {
  const std::vector<Variant> variants = {{Scaled(2), {}, "the original"},
                                         {Scaled(2.1), {}, "rule five_percent"},
                                         {Scaled(2), {}, "a copy"}};
  for (int pass = 0; pass < 2; ++pass) {  // measured, then stored
    Profiler profiler(backend_, *cache_, {.error_on_miss = pass == 1});
    const auto times = profiler.Compare(variants, 0.01);
    ASSERT_TRUE(times.ok()) << times.status();
    ASSERT_EQ(times->size(), 3u);
    EXPECT_FALSE((*times)[0].dropped);
    EXPECT_GT((*times)[0].timing.runs, 0);
    EXPECT_TRUE((*times)[1].dropped);
    EXPECT_EQ((*times)[1].timing.median_ms, std::numeric_limits<double>::infinity());
    EXPECT_FALSE((*times)[2].dropped);
    ASSERT_EQ(profiler.warnings().size(), 1u);
    EXPECT_THAT(profiler.warnings()[0], HasSubstr("rule five_percent"));
  }
}

TEST_F(ProfilerTest, PastTheDeadlineNothingIsBegunThatCanWait) {
  profiler_.LimitTime(Deadline::After(0), "0 s");
  const auto chosen = profiler_.ChooseAlgorithms(Scaled(2), 10);
  ASSERT_TRUE(chosen.ok());
  EXPECT_TRUE(chosen->empty());
  EXPECT_EQ(backend_.compiled, 1);
  const auto times = profiler_.Compare({{Scaled(2), {}}, {Scaled(2), {}}}, 10);
  ASSERT_TRUE(times.ok());
  EXPECT_EQ((*times)[0].timing.runs, 1);
  // A decision that the deadline cut short is not kept for other budgets.
  profiler_.LimitTime(Deadline::Never(), "60 s");
  EXPECT_EQ(profiler_.ChooseAlgorithms(Scaled(2), 0.01)->size(), 1u);
}

OutputBytes Bytes(const std::vector<Tensor>& tensors) {
  OutputBytes bytes;
  for (const Tensor& tensor : tensors)
    bytes.emplace_back(tensor.bytes().begin(), tensor.bytes().end());
  return bytes;
}

/// True where outputs of one graph that gives `want` and `have` are called wrong.
bool Wrong(DType dtype, const std::vector<double>& want, const std::vector<double>& have,
           Numerics numerics = Numerics::kDefault) {
  const TensorType type{dtype, {static_cast<int64_t>(want.size())}};
  GraphBuilder builder;
  builder.Output("y", *builder.Add("Neg", {builder.Input("x", type)}));
  return CompareOutputs(*builder.Build(), Bytes({Tensor::FromDoubles(type, want)}),
                        Bytes({Tensor::FromDoubles(type, have)}), numerics)
      .wrong;
}

TEST(OutputCheck, Tolerances) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(Wrong(DType::kF32, {100, 0}, {100.01, 0.01}));  // relative to the largest
  EXPECT_TRUE(Wrong(DType::kF32, {100, 0}, {100, 0.2}));
  EXPECT_TRUE(Wrong(DType::kF32, {100, 0}, {100, 0.02}, Numerics::kStrict));
  EXPECT_FALSE(Wrong(DType::kF32, {100, 0}, {100, 6}, Numerics::kBf16));
  EXPECT_TRUE(Wrong(DType::kF32, {100, 0}, {100, 7}, Numerics::kBf16));
  EXPECT_FALSE(Wrong(DType::kF16, {100, 0}, {100, 0.2}));
  EXPECT_FALSE(Wrong(DType::kF32, {kInfinity, nan, 1}, {kInfinity, nan, 1}));
  EXPECT_TRUE(Wrong(DType::kF32, {kInfinity, 1}, {-kInfinity, 1}));
  EXPECT_TRUE(Wrong(DType::kF32, {1, 1}, {1, nan}));
  EXPECT_FALSE(Wrong(DType::kF32, {0, 0}, {0, 1e-45}));
  EXPECT_TRUE(Wrong(DType::kI64, {3}, {4}));
  std::vector<double> many(100, 5), one_off = many;
  one_off[7] = 6;
  EXPECT_FALSE(Wrong(DType::kI64, many, one_off));
}

/// Its clock rises by one at each query.
class CountingDevice final : public MeasuringDevice {
 public:
  absl::StatusOr<DeviceConditions> Conditions() const override {
    if (silent) return absl::NotFoundError("no library\nreports them");
    DeviceConditions conditions;
    conditions.clock_mhz = ++asked;
    return conditions;
  }
  absl::StatusOr<std::unique_ptr<DeviceLock>> Lock(const LockWait&) const override {
    return Unsupported("no lock");
  }
  mutable int asked = 0;
  bool silent = false;
};

class BackendWithDevice final : public LyingBackend {
 public:
  const MeasuringDevice* measuring_device() const override { return &device; }
  CountingDevice device;
};

TEST(ProfilerConditions, AreKeptWithTheMeasurement) {
  const auto cache = *ProfileCache::Open(":memory:");
  BackendWithDevice backend;
  const std::vector<Variant> variants = {{Scaled(2), {}, "the original"},
                                         {Scaled(2), {}, "a copy"}};
  Profiler profiler(backend, *cache, {});
  EXPECT_THAT(profiler.Conditions(variants), testing::IsEmpty());  // not measured yet
  ASSERT_TRUE(profiler.Compare(variants, 0.01).ok());
  EXPECT_THAT(profiler.Conditions(variants), testing::ElementsAre("before: 1 MHz", "after: 2 MHz"));
  // A later process reports the conditions under which the times were taken.
  Profiler again(backend, *cache, {.error_on_miss = true});
  ASSERT_TRUE(again.Compare(variants, 0.01).ok());
  EXPECT_THAT(again.Conditions(variants), testing::ElementsAre("before: 1 MHz", "after: 2 MHz"));
  backend.device.silent = true;
  ASSERT_TRUE(again.Compare(variants, 0.01, 1, "another").status().code() ==
              absl::StatusCode::kNotFound);
  ASSERT_TRUE(profiler.Compare(variants, 0.01, 1, "another").ok());
  const std::string description = "not reported: no library reports them";
  EXPECT_THAT(profiler.Conditions(variants, "another"),
              testing::ElementsAre(Cat("before: ", description), Cat("after: ", description)));
}

/// Counts cold and warm runs.
class CountingBackend final : public ClockedBackend {
 public:
  explicit CountingBackend(const MeasuringDevice* device)
      : ClockedBackend("counting"), device_(device) {}
  const MeasuringDevice* measuring_device() const override { return device_; }
  mutable int cold = 0, warm = 0;

 protected:
  std::unique_ptr<Executable> WithClock(const Graph&,
                                        std::unique_ptr<Executable> program) const override {
    const auto clock = [this](bool is_cold) {
      ++(is_cold ? cold : warm);
      return 1e-3;
    };
    return std::make_unique<ClockedExecutable>(std::move(program), clock);
  }

 private:
  const MeasuringDevice* device_;
};

TEST(Profiler, RunsAreColdOnTheHostAndWarmOnADevice) {
  const CountingDevice device;
  const CountingBackend host(nullptr), gpu(&device);
  for (const CountingBackend* backend : {&host, &gpu}) {
    const auto cache = *ProfileCache::Open(":memory:");
    Profiler profiler(*backend, *cache, {});
    ASSERT_TRUE(profiler.Compare({{Scaled(2), {}, "the original"}}, 0.01).ok());
  }
  EXPECT_GT(host.cold, 0);
  EXPECT_EQ(host.warm, 0);
  EXPECT_EQ(gpu.cold, 0);
  EXPECT_GT(gpu.warm, 0);
}

TEST(ProfilerConditions, AreNoneWhereNothingIsMeasured) {
  const auto cache = *ProfileCache::Open(":memory:");
  BackendWithDevice backend;
  const std::vector<Variant> variants = {{Scaled(2), {}, "the original"}};
  const CostFunction costs = [](const Graph& graph, const CompileOptions&) {
    return std::vector<double>(graph.nodes().size(), 1.0);
  };
  Profiler profiler(backend, *cache, {.costs = costs});
  ASSERT_TRUE(profiler.Compare(variants, 0.01).ok());
  EXPECT_THAT(profiler.Conditions(variants), testing::IsEmpty());
  EXPECT_EQ(backend.device.asked, 0);
}

TEST(ProfilerCosts, ChooseAlgorithmsWithoutRunningThem) {
  const auto cache = *ProfileCache::Open(":memory:");
  LyingBackend backend;
  const CostFunction costs =
      [](const Graph& graph, const CompileOptions& options) -> absl::StatusOr<std::vector<double>> {
    std::vector<double> seconds(graph.nodes().size(), 1.0);
    for (const auto& [node, name] : options.algorithms) {
      if (name == "wrong") return InvalidInput("there is no such program");
      seconds[static_cast<size_t>(node)] = options.numerics == Numerics::kStrict ? 2 : 0.5;
    }
    return seconds;
  };
  Profiler profiler(backend, *cache, {.costs = costs});
  const auto chosen = profiler.ChooseAlgorithms(Widened(), 0.01);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_EQ(*chosen, (Algorithms{{1, "right"}, {3, "right"}}));
  EXPECT_EQ(backend.compiled, 0);
  EXPECT_EQ((*profiler.NodeSeconds({Widened(), *chosen}))[1], 0.5);
  // The class reaches the cost function; the stored choice is found again.
  Profiler strict(backend, *cache, {.numerics = Numerics::kStrict, .costs = costs});
  EXPECT_EQ(*strict.ChooseAlgorithms(Widened(), 0.01), Algorithms{});
  Profiler again(backend, *cache, {.error_on_miss = true, .costs = costs});
  EXPECT_EQ(*again.ChooseAlgorithms(Widened(), 0.01), *chosen);
}

}  // namespace
}  // namespace mendel
