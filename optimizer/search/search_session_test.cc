#include "optimizer/search/search_session.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/status.h"
#include "graph/text.h"
#include "optimizer/profile/clocked_executable.h"
#include "optimizer/search/matches.h"
#include "runtime/backend.h"

namespace mendel {
namespace {

/// -x, or for `steps` 3 its equal -(-(-x)).
Graph Negated(int steps) {
  GraphBuilder builder;
  ValueId x = builder.Input("x", {DType::kF32, {4, 4}});
  for (int k = 0; k < steps; ++k) x = *builder.Add("Neg", {x});
  builder.Output("y", x);
  return *builder.Build();
}

/// A machine on which a program of one operator takes `one` seconds and all others take one second.
CostFunction Machine(double one) {
  return [one](const Graph& graph, const CompileOptions&) {
    std::vector<double> seconds(graph.nodes().size(), 0);
    seconds.back() = graph.nodes().size() == 2 ? one : 1;
    return seconds;
  };
}

/// "reference" with an algorithm of Relu.
class WithAnAlgorithm final : public Backend {
 public:
  std::string_view name() const override { return "with_an_algorithm"; }
  absl::Status Probe() const override { return absl::OkStatus(); }
  std::string Identity() const override { return "with an algorithm"; }
  std::vector<std::string> Algorithms(const Graph& graph, int32_t node, Numerics) const override {
    return graph.node(node).op->name == "Relu"
               ? std::vector<std::string>{"quick", Cat(kLayoutAlgorithm, "quick")}
               : std::vector<std::string>();
  }
  absl::StatusOr<std::unique_ptr<Executable>> Compile(const Graph& graph,
                                                      const CompileOptions&) const override {
    return FindBackend("reference")->Compile(graph, {});
  }
};

/// A mutant may have algorithms that nothing in the baseline has.
TEST(PredictedSearchSession, ProgramsAloneHaveTheirCheapestAlgorithms) {
  const CostFunction costs = [](const Graph& graph, const CompileOptions& options) {
    std::vector<double> seconds(graph.nodes().size(), 1);
    for (const auto& [node, name] : options.algorithms) seconds[static_cast<size_t>(node)] = 0.25;
    return seconds;
  };
  const auto cache = *ProfileCache::Open(":memory:");
  const WithAnAlgorithm backend;
  Profiler profiler(backend, *cache, {.costs = costs});
  const SearchOptions options;
  const Graph baseline = Negated(3);
  SearchSession session(baseline, profiler, *cache, options);
  ASSERT_TRUE(session.Begin(0.6).ok());
  GraphBuilder builder;
  const ValueId x = builder.Input("x", {DType::kF32, {4, 4}});
  builder.Output("y", *builder.Add("Relu", {*builder.Add("Neg", {x})}));
  const Graph rectified = *builder.Build();
  GraphBuilder maximum;
  const ValueId z = maximum.Input("x", {DType::kF32, {4, 4}});
  const ValueId zero = maximum.Constant(Tensor::Scalar(DType::kF32, 0));
  maximum.Output("y", *maximum.Add("Max", {*maximum.Add("Neg", {z}), zero}));
  const auto alone = session.MeasureAlone(*maximum.Build(), rectified, 1, "a rectifier");
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_NEAR(alone->original_ns, 4e9, 1);  // the input and the constant count here, too
  EXPECT_NEAR(alone->mutant_ns, 2.25e9, 1);
}

/// Two rectifiers behind `steps` negations.
Graph Rectified(int steps) {
  GraphBuilder builder;
  ValueId x = builder.Input("x", {DType::kF32, {4, 4}});
  for (int k = 0; k < steps; ++k) x = *builder.Add("Neg", {x});
  x = *builder.Add("Relu", {x}, {}, "first");
  builder.Output("y", *builder.Add("Relu", {x}, {}, "second"));
  return *builder.Build();
}

/// A node takes a second, or a quarter of one by an algorithm.
absl::StatusOr<std::vector<double>> QuarterByAlgorithm(const Graph& graph,
                                                       const CompileOptions& options) {
  std::vector<double> seconds(graph.nodes().size(), 1);
  for (const auto& [node, name] : options.algorithms) seconds[static_cast<size_t>(node)] = 0.25;
  return seconds;
}

std::map<std::string, double> PartsOf(const Variant& best, size_t mutants) {
  const auto cache = *ProfileCache::Open(":memory:");
  const WithAnAlgorithm backend;
  Profiler profiler(backend, *cache, {.costs = &QuarterByAlgorithm});
  const SearchOptions options;
  const Graph baseline = Rectified(3);
  SearchSession session(baseline, profiler, *cache, options);
  session.result().best = best;
  session.result().mutants.resize(mutants);
  EXPECT_TRUE(session.FinalComparison().ok());
  session.MeasureParts();
  std::map<std::string, double> parts;
  for (const plan::GainPart& part : session.result().parts) parts[part.kind()] = part.without();
  return parts;
}

TEST(GainParts, EachKindIsLeftOut) {
  // The input counts, too: the plan takes 1 + 1 + 2 / 4 seconds.
  const std::string layout = Cat(kLayoutAlgorithm, "quick");
  const auto all = PartsOf({Rectified(1), {{2, "quick"}, {3, layout}}, "a plan"}, 1);
  EXPECT_EQ(all.size(), 3u);
  EXPECT_DOUBLE_EQ(all.at("mutants"), 4.5 / 2.5);
  EXPECT_DOUBLE_EQ(all.at("algorithms"), 3.25 / 2.5);
  EXPECT_DOUBLE_EQ(all.at("layouts"), 3.25 / 2.5);
}

TEST(GainParts, TheOnlyKindHasTheWholeGain) {
  const std::map<std::string, double> mutants = {{"mutants", 6.0 / 4.0}};
  EXPECT_EQ(PartsOf({Rectified(1), {}, "a plan"}, 1), mutants);
  const std::map<std::string, double> algorithms = {{"algorithms", 6.0 / 5.25}};
  EXPECT_EQ(PartsOf({Rectified(3), {{4, "quick"}}, "a plan"}, 0), algorithms);
}

TEST(GainParts, TheBaselineHasNone) { EXPECT_TRUE(PartsOf({Rectified(3), {}, "it"}, 0).empty()); }

class SearchSessionTest : public testing::Test {
 protected:
  /// The delivered result when a search has found Negated(1) for Negated(3).
  SearchResult Delivered(double seconds_of_plan) {
    const auto cache = *ProfileCache::Open(":memory:");
    Profiler profiler(*FindBackend("reference"), *cache, {.costs = Machine(seconds_of_plan)});
    const SearchOptions options;
    const Graph baseline = Negated(3);
    SearchSession session(baseline, profiler, *cache, options);
    session.result().best = {Negated(1), {}, "found"};
    session.result().mutants.resize(1);
    EXPECT_TRUE(session.FinalComparison().ok());
    return session.result();
  }
};

TEST_F(SearchSessionTest, APlanThatIsNotFasterIsTheBaseline) {
  for (const double seconds : {1.2, 1.0, 0.995}) {
    const SearchResult result = Delivered(seconds);
    EXPECT_EQ(PrintGraph(result.best.graph), PrintGraph(Negated(3))) << seconds;
    EXPECT_TRUE(result.mutants.empty()) << seconds;
    EXPECT_EQ(result.best_time.median_ms, result.baseline_time.median_ms) << seconds;
  }
  const SearchResult faster = Delivered(0.9);
  EXPECT_EQ(PrintGraph(faster.best.graph), PrintGraph(Negated(1)));
  EXPECT_EQ(faster.mutants.size(), 1u);
}

/// "reference", whose programs take as many seconds as they have nodes by their own clock.
class WithItsOwnClock final : public ClockedBackend {
 public:
  WithItsOwnClock() : ClockedBackend("with_its_own_clock") {}
  std::unique_ptr<Executable> WithClock(const Graph& graph,
                                        std::unique_ptr<Executable> program) const override {
    return std::make_unique<ClockedExecutable>(std::move(program),
                                               static_cast<double>(graph.nodes().size()));
  }
};

/// "reference", whose programs of one operator take `seconds`, but 3 s in every second run from the
/// third one on. Other programs take one second. Three rounds or more never decide.
class OftenDisturbed final : public ClockedBackend {
 public:
  explicit OftenDisturbed(double seconds) : ClockedBackend("often_disturbed"), seconds_(seconds) {}
  std::unique_ptr<Executable> WithClock(const Graph& graph,
                                        std::unique_ptr<Executable> program) const override {
    if (graph.nodes().size() > 2) return std::make_unique<ClockedExecutable>(std::move(program), 1);
    const auto clock = [seconds = seconds_, runs = 0]() mutable {
      return ++runs > 2 && runs % 2 == 1 ? 3 : seconds;
    };
    return std::make_unique<ClockedExecutable>(std::move(program), clock);
  }

 private:
  double seconds_;
};

/// Disturbed rounds of the last comparison discard no program that was faster before.
TEST_F(SearchSessionTest, WhatWasFasterBeforeMayHaveDisturbedRounds) {
  const Graph baseline = Negated(3);
  for (const auto& [seconds, faster_before, delivered] :
       {std::tuple(0.7, true, true), {0.98, true, false}, {0.7, false, false}}) {
    const auto cache = *ProfileCache::Open(":memory:");
    const OftenDisturbed backend(seconds);
    Profiler profiler(backend, *cache, {});
    const SearchOptions options;
    SearchSession session(baseline, profiler, *cache, options);
    if (faster_before) {
      session.result().best = {Negated(1), {}, "found"};
      session.result().mutants.resize(1);
    } else {
      const auto trial = session.TryWhole(Negated(1), "a program", {{}});
      ASSERT_TRUE(trial.ok()) << trial.status();
      EXPECT_FALSE(trial->accepted);
    }
    ASSERT_TRUE(session.FinalComparison().ok());
    EXPECT_EQ(session.result().best.graph.nodes().size(), delivered ? 2u : 4u)
        << seconds << " s, faster before: " << faster_before;
    EXPECT_EQ(profiler.measured(), faster_before ? 2 : 4);  // the last comparison has two programs
  }
}

/// A program that ran once only, for want of time, is not known to be faster; it is given the
/// rounds of the last comparison.
TEST_F(SearchSessionTest, WhatLackedRoundsHasThoseOfTheLastComparison) {
  const auto cache = *ProfileCache::Open(":memory:");
  const WithItsOwnClock backend;
  Profiler profiler(backend, *cache, {});
  SearchOptions options;
  options.budget_seconds = 10;
  options.spare_seconds = -10;  // other work took all of it
  const Graph baseline = Negated(25);
  SearchSession session(baseline, profiler, *cache, options);
  std::vector<plan::AppliedMutant> applied(1);
  for (const int steps : {27, 23, 25}) {  // slower; a gain of 8 %; none
    const auto trial = session.TryWhole(Negated(steps), "a program", applied);
    ASSERT_TRUE(trial.ok()) << trial.status();
    EXPECT_FALSE(trial->accepted);
  }
  ASSERT_TRUE(session.FinalComparison().ok());
  EXPECT_EQ(PrintGraph(session.result().best.graph), PrintGraph(Negated(23)));
  EXPECT_EQ(session.result().mutants.size(), 1u);
}

/// "reference" with an algorithm of Neg: programs that have it take half a second, others one.
class WithAQuickNeg final : public Backend {
 public:
  std::string_view name() const override { return "with_a_quick_neg"; }
  absl::Status Probe() const override { return absl::OkStatus(); }
  std::string Identity() const override { return "with a quick neg"; }
  std::vector<std::string> Algorithms(const Graph& graph, int32_t node, Numerics) const override {
    return graph.node(node).op->name == "Neg" ? std::vector<std::string>{"quick"}
                                              : std::vector<std::string>();
  }
  absl::StatusOr<std::unique_ptr<Executable>> Compile(
      const Graph& graph, const CompileOptions& options) const override {
    MENDEL_ASSIGN_OR_RETURN(auto program, FindBackend("reference")->Compile(graph, {}));
    return std::make_unique<ClockedExecutable>(std::move(program),
                                               options.algorithms.empty() ? 1 : 0.5);
  }
};

/// With time for one comparison, the favorites take part in the last one, also in a search that is
/// made again from what is stored.
TEST_F(SearchSessionTest, FavoritesAreComparedOnceWhereThereIsTimeForOneComparison) {
  const auto cache = *ProfileCache::Open(":memory:");
  const WithAQuickNeg backend;
  const Graph baseline = Negated(3);
  SearchOptions options;
  options.budget_seconds = 30;
  for (const bool again : {false, true}) {
    Profiler profiler(backend, *cache, {.error_on_miss = again});
    SearchSession session(baseline, profiler, *cache, options);
    if (again) {
      session.Repeat(SearchSession::AlgorithmTrial::kLast);
    } else {
      ASSERT_TRUE(profiler.NodeSeconds(session.baseline()).ok());
      session.NoteWholeSeconds(20);
    }
    ASSERT_TRUE(session.Begin(0.65).ok());
    EXPECT_EQ(session.algorithm_trial(), SearchSession::AlgorithmTrial::kLast);
    EXPECT_TRUE(session.result().best.algorithms.empty());
    ASSERT_TRUE(session.FinalComparison().ok());
    EXPECT_EQ(session.result().best.algorithms.size(), 3u);
    EXPECT_EQ(session.result().best_time.median_ms, 500);
  }
}

TEST_F(SearchSessionTest, TimeThatIsKeptIsNotForCandidates) {
  const auto cache = *ProfileCache::Open(":memory:");
  Profiler profiler(*FindBackend("reference"), *cache, {});
  SearchOptions options;
  options.budget_seconds = 1000;
  const Graph baseline = Negated(3);
  SearchSession session(baseline, profiler, *cache, options);
  EXPECT_TRUE(session.Affords(900));
  session.KeepFree(500);
  EXPECT_FALSE(session.Affords(600));
  session.NoteWholeSeconds(300);
  EXPECT_TRUE(session.Affords(100));
  EXPECT_FALSE(session.Affords(300));
  session.KeepFree(0);
  EXPECT_TRUE(session.Affords(600));
}

/// A short budget must leave time for more than comparisons.
TEST_F(SearchSessionTest, AShortBudgetComparesForAShortTime) {
  const auto cache = *ProfileCache::Open(":memory:");
  const Graph baseline = Negated(3);
  for (const auto& [budget, seconds] : {std::pair(1.0, 0.3), {10.0, 0.6}, {1000.0, 1.5}}) {
    Profiler profiler(*FindBackend("reference"), *cache, {});
    SearchOptions options;
    options.budget_seconds = budget;
    EXPECT_DOUBLE_EQ(SearchSession(baseline, profiler, *cache, options).measure_seconds(), seconds);
  }
}

/// x a b, where a b is made when the plan is loaded (1,024 bytes) or never.
Graph TwoProducts(bool merged) {
  GraphBuilder builder;
  const ValueId x = builder.Input("in0", {DType::kF32, {4, 16}});
  const ValueId a = builder.Constant(Tensor::Filled({DType::kF32, {16, 16}}, 1), "a");
  const ValueId b = builder.Constant(Tensor::Filled({DType::kF32, {16, 16}}, 2), "b");
  const auto product = [&](ValueId left, ValueId right) {
    return *builder.Add("MatMul", {left, right});
  };
  builder.Output("out0", merged ? product(x, product(a, b)) : product(product(x, a), b));
  return *builder.Build();
}

TEST_F(SearchSessionTest, MutantsThatMakeTooManyWeightsAreRefused) {
  const Graph baseline = TwoProducts(false);
  const Rule* rule = FindRule("matmul_chain");
  ASSERT_NE(rule, nullptr);
  for (const int64_t limit : {0, 1023, 1024}) {
    const auto cache = *ProfileCache::Open(":memory:");
    Profiler profiler(*FindBackend("reference"), *cache, {});
    SearchOptions options;
    options.max_weight_growth = limit;
    SearchSession session(baseline, profiler, *cache, options);
    Mutant mutant;
    mutant.rule = rule;
    mutant.original = baseline;
    mutant.mutant = TwoProducts(true);
    Alternative alternative;
    const auto usable = session.VerifyCandidate(mutant, 0, alternative);
    ASSERT_TRUE(usable.ok()) << usable.status();
    EXPECT_EQ(*usable, limit != 1023);
    const auto trial = session.TryWhole(TwoProducts(true), "a program", {});
    ASSERT_TRUE(trial.ok()) << trial.status();
    EXPECT_EQ(trial->dropped, limit == 1023);
    session.FinishCounters(false);
    EXPECT_EQ(session.result().counters.weight_growth(), limit == 1023 ? 2 : 0);
    ASSERT_EQ(session.result().warnings.size(), limit == 1023 ? 1u : 0u);
    if (limit != 1023) continue;
    EXPECT_EQ(session.result().warnings[0],
              "2 candidates are refused, because they make more than 1023 bytes of weights at "
              "load time: --max-weight-growth allows more");
  }
}

TEST(PlaceNames, AMutantIsKnownByItsRuleAndNodes) {
  EXPECT_EQ(MatchName("rule", {"a", "b"}), "rule\na\nb");
  EXPECT_NE(MatchName("rule", {"a", "b"}), MatchName("rule", {"b", "a"}));
}

}  // namespace
}  // namespace mendel
