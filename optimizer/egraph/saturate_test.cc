#include "optimizer/egraph/saturate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "graph/evaluate.h"
#include "graph/random_graph.h"
#include "graph/text.h"
#include "optimizer/egraph/extract.h"
#include "optimizer/normalize.h"
#include "optimizer/search/matches.h"
#include "runtime/backend.h"

namespace mendel {
namespace {

SearchOptions WithBudget(double seconds) {
  SearchOptions options;
  options.budget_seconds = seconds;
  return options;
}

/// At most `candidates`, those of `rule` first.
SearchOptions Beginning(const Graph& graph, const Rule& rule, int64_t candidates) {
  SearchOptions options = WithBudget(20);
  options.max_candidates = candidates;
  for (int32_t node = 0; node < static_cast<int32_t>(graph.nodes().size()); ++node) {
    for (const Match& match : rule.match(graph, node, DefaultPredictor()))
      options.tried_first.insert(MatchName(rule.name, NodeNames(graph, match)));
  }
  return options;
}

/// An e-graph filled from one graph, without running anything.
struct Filled {
  Filled(const Graph& graph, double budget_seconds, SaturateLimits limits, EGraphLimits size = {})
      : Filled(graph, WithBudget(budget_seconds), limits, size) {}
  Filled(const Graph& graph, SearchOptions search, SaturateLimits limits, EGraphLimits size = {})
      : cache(*ProfileCache::Open(":memory:")),
        profiler(*FindBackend("reference"), *cache, {}),
        options(std::move(search)),
        session(graph, profiler, *cache, options),
        egraph(size) {
    limits.measure = false;
    profiles = *OperatorProfiles::Load(*cache, profiler.Device());
    EGraphContext start{graph, {}};
    const auto where = *egraph.AddGraph(graph, {}, -1, &start.nodes);
    for (const GraphOutput& output : graph.outputs()) {
      roots.push_back(
          where[static_cast<size_t>(output.value.node)][static_cast<size_t>(output.value.output)]);
    }
    costs.resize(egraph.node_space(), 0);
    const std::vector<double> seconds = profiles.NodeSeconds(graph);
    for (size_t i = 0; i < seconds.size(); ++i)
      costs[static_cast<size_t>(start.nodes[i])] = seconds[i];
    saturator = std::make_unique<Saturator>(session, egraph, costs, profiles, limits);
    status = saturator->Run(start, roots);
  }

  std::unique_ptr<ProfileCache> cache;
  Profiler profiler;
  SearchOptions options;
  SearchSession session;
  EGraph egraph;
  OperatorProfiles profiles;
  std::vector<ClassId> roots;
  std::vector<double> costs;
  std::unique_ptr<Saturator> saturator;
  absl::Status status;
};

/// `count` convolutions one after the other, all of one shape.
Graph Chain(int count) {
  GraphBuilder builder;
  ValueId x = builder.Input("x", {DType::kF32, {2, 4, 8, 8}});
  for (int k = 0; k < count; ++k) {
    const ValueId w =
        builder.Constant(Tensor::Filled({DType::kF32, {4, 4, 3, 3}}, 0.25), Cat("w", k));
    x = *builder.Add(
        "Conv", {x, w},
        {{"strides", Ints{1, 1}}, {"dilations", Ints{1, 1}}, {"pads", Ints{1, 1, 1, 1}}});
    x = *builder.Add("Relu", {x});
  }
  builder.Output("y", x);
  return *builder.Build();
}

/// Largest difference as a share of the largest element.
double Difference(const std::vector<HostValue>& want, const std::vector<HostValue>& have) {
  double worst = 0;
  for (size_t k = 0; k < want.size(); ++k) {
    EXPECT_EQ(want[k].type, have[k].type);
    double scale = 1e-30, difference = 0;
    for (int64_t i = 0; i < NumElements(want[k].type); ++i) {
      scale = std::max(scale, std::abs(want[k].At(i)));
      difference = std::max(difference, std::abs(want[k].At(i) - have[k].At(i)));
    }
    worst = std::max(worst, difference / scale);
  }
  return worst;
}

/// Whatever program is extracted - here under random costs that favor half of the alternatives -
/// computes what the graph does. Each rule's places come first, then what others make of them;
/// verifying takes nearly all of the time, so not all of it is verified.
TEST(Saturator, EveryExtractedProgramIsEqual) {
  constexpr uint64_t kSeed = 77;
  constexpr int64_t kCandidates[] = {8, 3};  // of the samples of a rule
  constexpr size_t kSamples = std::size(kCandidates);
  int other = 0;
  std::set<std::string> rules;
  for (size_t run = 0; run < kSamples * AllRules().size(); ++run) {
    const Rule* rule = AllRules()[run / kSamples];
    SCOPED_TRACE(Cat("rule ", rule->name, " seed ", kSeed + run));
    Rng rng(kSeed + run);
    const auto sample = rule->sample(rng);
    ASSERT_TRUE(sample.ok()) << sample.status();
    std::set<std::string> faults;
    const Graph graph = *Normalize(*sample, {}, faults);
    EXPECT_TRUE(faults.empty()) << *faults.begin();
    Filled filled(graph, Beginning(graph, *rule, kCandidates[run % kSamples]),
                  {.max_rounds = 2, .max_contexts = 3});
    ASSERT_TRUE(filled.status.ok()) << filled.status;
    ASSERT_TRUE(filled.egraph.CheckInvariants().ok()) << filled.egraph.CheckInvariants();
    const std::vector<HostValue> inputs = RandomInputs(rng, graph);
    const auto want = Evaluate(graph, inputs);
    ASSERT_TRUE(want.ok()) << want.status();
    for (int k = 0; k < 4; ++k) {
      std::vector<bool> wanted(filled.saturator->applications().size());
      for (size_t i = 0; i < wanted.size(); ++i) wanted[i] = rng.Flip();
      std::vector<double> costs(filled.egraph.node_space());
      for (size_t i = 0; i < costs.size(); ++i) {
        const int32_t origin = filled.egraph.node(static_cast<ENodeId>(i)).origin;
        costs[i] = rng.Unit() * (origin >= 0 && wanted[static_cast<size_t>(origin)] ? 0.01 : 1);
      }
      const auto found = ExtractProgram(filled.egraph, filled.roots, costs, {.seconds = 0});
      ASSERT_TRUE(found.ok()) << found.status();
      const auto program = ToGraph(filled.egraph, found->selection, filled.roots, graph);
      ASSERT_TRUE(program.ok()) << program.status();
      ASSERT_TRUE(CheckGraph(program->graph).ok());
      const auto have = Evaluate(program->graph, inputs);
      ASSERT_TRUE(have.ok()) << have.status();
      ASSERT_LT(Difference(*want, *have), 1e-9) << PrintGraph(program->graph);
      const std::vector<plan::AppliedMutant> mutants = filled.saturator->MutantsIn(program->nodes);
      other += mutants.empty() ? 0 : 1;
      for (const plan::AppliedMutant& mutant : mutants) rules.insert(mutant.rule());
    }
  }
  EXPECT_GT(other, 100);
  EXPECT_GT(rules.size(), AllRules().size() / 2);  // extracted programs hold mutants of most rules
}

TEST(Saturator, EqualMatchesAreVerifiedOnce) {
  const SaturateLimits limits{.max_rounds = 1};
  // No rule takes more than four convolutions at once: longer chains have more places, but none
  // that differs.
  Filled four(Chain(4), 60, limits), eight(Chain(8), 60, limits);
  ASSERT_TRUE(four.status.ok() && eight.status.ok());
  EXPECT_EQ(eight.session.result().counters.proposed(), four.session.result().counters.proposed());
  EXPECT_GT(eight.saturator->applications().size(), four.saturator->applications().size());
}

TEST(Saturator, LimitsAreReasons) {
  const Graph graph = Chain(3);
  Filled nodes(graph, 60, {}, {.nodes = 20});
  EXPECT_EQ(nodes.session.result().stop_reason, StopReason::kNodeLimit);
  Filled rounds(graph, 60, {.max_rounds = 0});
  EXPECT_EQ(rounds.session.result().stop_reason, StopReason::kRoundLimit);
  Filled time(graph, 0, {});
  EXPECT_EQ(time.session.result().stop_reason, StopReason::kBudget);
  EXPECT_TRUE(time.saturator->applications().empty());
}

TEST(BackoffScheduler, DoublesLimitAndBan) {
  BackoffScheduler scheduler(10, 1);
  EXPECT_TRUE(scheduler.Admit("r", 10, 0));
  EXPECT_FALSE(scheduler.Admit("r", 11, 1));  // until round 2, limit 20
  EXPECT_TRUE(scheduler.Banned("r", 1));
  EXPECT_FALSE(scheduler.Banned("r", 2));
  EXPECT_TRUE(scheduler.Admit("r", 20, 2));
  EXPECT_FALSE(scheduler.Admit("r", 21, 3));  // until round 5, limit 40
  EXPECT_TRUE(scheduler.Banned("r", 4));
  EXPECT_FALSE(scheduler.Banned("other", 4));
  EXPECT_TRUE(scheduler.Release(4));
  EXPECT_FALSE(scheduler.Banned("r", 4));
  EXPECT_FALSE(scheduler.Release(4));
  EXPECT_EQ(scheduler.bans(), 2);
}

}  // namespace
}  // namespace mendel
