// Kinds of algorithms by region, measured: a backend whose times are made up, conversions where
// neighbors differ in kind included.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/random.h"
#include "base/status.h"
#include "optimizer/profile/profiler.h"
#include "optimizer/profile/region_choices.h"

namespace mendel {
namespace {

constexpr int kCalls = 6;  // three a region
constexpr char kTurned[] = "turned", kFast[] = "fast";

/// Costs of the program. Turned calls want their values turned; all others, inputs, outputs and
/// the barrier between the regions have them as they are.
struct CallCosts {
  double plain[kCalls] = {1, 1, 1, 1, 1, 1};
  double fast[kCalls] = {2, 2, 2, 2, 2, 2};
  double turned[kCalls] = {};
  double conversion = 0;
};

/// x -> six operators, a Softmax after the third.
struct Chain {
  Graph graph;
  std::vector<int32_t> calls;
};
Chain MakeChain() {
  GraphBuilder builder;
  ValueId value = builder.Input("x", {DType::kF32, {2, 3}});
  std::vector<int32_t> calls;
  for (const char* op : {"Relu", "Abs", "Neg", "Sigmoid", "Tanh", "Exp"}) {
    if (calls.size() == kCalls / 2)
      value = *builder.Add("Softmax", {value}, {{"axis", int64_t{1}}});
    value = *builder.Add(op, {value});
    calls.push_back(value.node);
  }
  builder.Output("y", value);
  return {*builder.Build(), calls};
}

std::string ChoiceFor(const Algorithms& algorithms, int32_t node) {
  const auto it = algorithms.find(node);
  return it == algorithms.end() ? "" : it->second;
}

/// Steps in the order in which a backend that arranges them by levels may have them: all
/// conversions first.
void MakeSteps(const Chain& chain, const CallCosts& costs, const Algorithms& algorithms,
               std::vector<Step>& steps, std::vector<double>& seconds) {
  const auto convert = [&](std::vector<int32_t> requested_by) {
    steps.push_back({.name = "conversion",
                     .nodes = {},
                     .kernel = "",
                     .flops = 0,
                     .requested_by = std::move(requested_by)});
    seconds.push_back(costs.conversion);
  };
  bool turned = false;
  for (int k = 0; k <= kCalls; ++k) {
    if (k % (kCalls / 2) == 0 && std::exchange(turned, false))
      convert({chain.calls[static_cast<size_t>(k - 1)]});
    if (k == kCalls) break;
    const int32_t call = chain.calls[static_cast<size_t>(k)];
    const bool now = ChoiceFor(algorithms, call) == kTurned;
    if (now != turned) convert({now ? call : chain.calls[static_cast<size_t>(k - 1)]});
    turned = now;
  }
  for (int k = 0; k < kCalls; ++k) {
    const int32_t call = chain.calls[static_cast<size_t>(k)];
    const std::string name = ChoiceFor(algorithms, call);
    steps.push_back({.name = "call", .nodes = {call}, .kernel = name, .flops = 1});
    seconds.push_back(name == kTurned ? costs.turned[k]
                                      : (name == kFast ? costs.fast[k] : costs.plain[k]));
  }
}

double TotalOf(const Chain& chain, const CallCosts& costs, const Algorithms& algorithms) {
  std::vector<Step> steps;
  std::vector<double> seconds;
  MakeSteps(chain, costs, algorithms, steps, seconds);
  double sum = 0;
  for (const double value : seconds) sum += value;
  return sum;
}

/// Computes by the definition, and reports made-up times.
class TimedExecutable final : public Executable {
 public:
  TimedExecutable(std::unique_ptr<Executable> definition, const Chain& chain,
                  const CallCosts& costs, const Algorithms& algorithms)
      : definition_(std::move(definition)) {
    MakeSteps(chain, costs, algorithms, steps_, seconds_);
  }
  absl::Status Run(std::span<const std::span<const std::byte>> inputs,
                   std::span<const std::span<std::byte>> outputs) override {
    return definition_->Run(inputs, outputs);
  }
  const std::vector<Step>& steps() const override { return steps_; }
  absl::Status RunTimed(std::span<const std::span<const std::byte>> inputs,
                        std::span<const std::span<std::byte>> outputs,
                        std::vector<double>& seconds) override {
    seconds = seconds_;
    return Run(inputs, outputs);
  }
  MemoryReport memory() const override { return {}; }

 private:
  std::unique_ptr<Executable> definition_;
  std::vector<Step> steps_;
  std::vector<double> seconds_;
};

class TurningBackend : public Backend {
 public:
  TurningBackend(const Chain& chain, const CallCosts& costs) : chain_(chain), costs_(costs) {}

  std::string_view name() const override { return "turning"; }
  absl::Status Probe() const override { return absl::OkStatus(); }
  std::string Identity() const override { return "turning"; }
  std::vector<std::string> Algorithms(const Graph&, int32_t node, Numerics) const override {
    const bool is_call = std::count(chain_.calls.begin(), chain_.calls.end(), node) > 0;
    return is_call ? std::vector<std::string>{kFast, kTurned} : std::vector<std::string>{};
  }
  std::string AlgorithmKind(std::string_view algorithm) const override {
    return algorithm == kTurned ? "turned" : "";
  }
  std::vector<std::vector<int32_t>> KindRegions(const Graph&,
                                                const std::set<int32_t>& nodes) const override {
    if (!reports_regions) return {};
    const auto middle = std::next(nodes.begin(), kCalls / 2);
    return {{nodes.begin(), middle}, {middle, nodes.end()}};
  }
  absl::StatusOr<std::unique_ptr<Executable>> Compile(
      const Graph& graph, const CompileOptions& options) const override {
    MENDEL_ASSIGN_OR_RETURN(auto definition, FindBackend("reference")->Compile(graph, {}));
    programs.push_back(options.algorithms);
    return std::make_unique<TimedExecutable>(std::move(definition), chain_, costs_,
                                             options.algorithms);
  }

  bool reports_regions = true;
  mutable std::vector<mendel::Algorithms> programs;

 private:
  const Chain& chain_;
  const CallCosts& costs_;
};

Algorithms ChosenFor(const Chain& chain, const TurningBackend& backend) {
  const auto cache = *ProfileCache::Open(":memory:");
  Profiler profiler(backend, *cache, {});
  const auto chosen = profiler.ChooseAlgorithms(chain.graph, 0.01);
  EXPECT_TRUE(chosen.ok()) << chosen.status();
  return *chosen;
}

/// Least over all programs that give each call its default or one of its algorithms.
double LeastOfAll(const Chain& chain, const CallCosts& costs) {
  const std::string names[] = {"", kFast, kTurned};
  double least = TotalOf(chain, costs, {});
  for (int code = 1; code < 729; ++code) {  // 3^6
    Algorithms algorithms;
    for (int k = 0, rest = code; k < kCalls; ++k, rest /= 3) {
      if (rest % 3 > 0) algorithms[chain.calls[static_cast<size_t>(k)]] = names[rest % 3];
    }
    least = std::min(least, TotalOf(chain, costs, algorithms));
  }
  return least;
}

/// A kind's first algorithm is timed before another kind's second: a short budget sees all kinds.
/// The backend's favorites come first.
TEST(ProfilerRegions, FirstAlgorithmsOfAllKindsAreTimedFirst) {
  const Chain chain = MakeChain();
  class Many final : public TurningBackend {
   public:
    using TurningBackend::TurningBackend;
    std::vector<std::string> Algorithms(const Graph& graph, int32_t node,
                                        Numerics numerics) const override {
      if (TurningBackend::Algorithms(graph, node, numerics).empty()) return {};
      return {kFast, "fast:1", "fast:2", "fast:3", kTurned};
    }
  };
  const CallCosts costs = {};
  const Many backend(chain, costs);
  ChosenFor(chain, backend);
  std::vector<std::string> order;
  for (const mendel::Algorithms& program : backend.programs) {
    if (!program.empty()) order.push_back(program.begin()->second);
  }
  ASSERT_GE(order.size(), 5u);
  order.resize(5);
  EXPECT_THAT(order, testing::ElementsAre(kFast, kTurned, "fast:1", "fast:2", "fast:3"));
}

/// One turned call alone pays for two conversions, the middle one alone looks cheap for what its
/// neighbors pay, and all six lose by the second region.
TEST(ProfilerRegions, OnlyAWholeRegionWins) {
  const Chain chain = MakeChain();
  const CallCosts costs{.turned = {0.6, 0.6, 0.6, 1.4, 1.4, 1.4}, .conversion = 0.55};
  TurningBackend backend(chain, costs);
  const Algorithms chosen = ChosenFor(chain, backend);
  EXPECT_EQ(chosen,
            (Algorithms{
                {chain.calls[0], kTurned}, {chain.calls[1], kTurned}, {chain.calls[2], kTurned}}));
  EXPECT_DOUBLE_EQ(TotalOf(chain, costs, chosen), LeastOfAll(chain, costs));
  // No other way finds it.
  TurningBackend without(chain, costs);
  without.reports_regions = false;
  EXPECT_EQ(ChosenFor(chain, without), Algorithms{});
  EXPECT_LT(without.programs.size(), backend.programs.size());
}

/// Calls of a region gain or lose alike, and conversions cost more than one of them gains: the best
/// program is made of whole regions, whichever they are.
TEST(ProfilerRegions, TheBestOfAllProgramsIsFound) {
  const Chain chain = MakeChain();
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Rng rng(seed);
    CallCosts costs;
    costs.conversion = 0.3 + 0.2 * rng.Unit();
    for (int region = 0; region < 2; ++region) {
      const double turned = 0.4 + rng.Unit(), fast = 0.8 + 0.5 * rng.Unit();
      for (int k = 3 * region; k < 3 * region + 3; ++k)
        costs.turned[k] = turned, costs.fast[k] = fast;
    }
    TurningBackend backend(chain, costs);
    EXPECT_NEAR(TotalOf(chain, costs, ChosenFor(chain, backend)), LeastOfAll(chain, costs),
                0.03 * kCalls)
        << "seed " << seed;
    // The seeming best is confirmed; no region runs what ran.
    for (const Algorithms& program : backend.programs) {
      EXPECT_LE(std::count(backend.programs.begin(), backend.programs.end(), program),
                program.empty() ? 1 : 3)
          << "seed " << seed;
    }
  }
}

/// Only conversions on both sides distinguish the times of the program's calls.
TEST(ProfilerRegions, ConversionsCountForTheCallsThatAskForThem) {
  const std::vector<Step> steps = {
      {.name = "in", .nodes = {}, .kernel = "", .flops = 0, .requested_by = {5, 7}},
      {.name = "other", .nodes = {3}, .kernel = ""},
      {.name = "reorder", .nodes = {}, .kernel = ""},
      {.name = "out", .nodes = {}, .kernel = "", .flops = 0, .requested_by = {5}},
      {.name = "call", .nodes = {5, 6}, .kernel = ""}};
  const std::vector<double> seconds = {1, 2, 4, 8, 16};
  EXPECT_EQ(SecondsOfNodes(steps, seconds, {5}), 0.5 + 4 + 8 + 16);
  EXPECT_EQ(SecondsOfNodes(steps, seconds, {6}), 4 + 16);
  EXPECT_EQ(SecondsOfNodes(steps, seconds, {7}), 0.5);
  EXPECT_EQ(SecondsOfNodes(steps, seconds, {5, 7}), 1 + 4 + 8 + 16);
  EXPECT_EQ(SecondsOfNodes(steps, seconds, {3}), 2);
}

TEST(RegionChoices, EndsWithWhatWasFound) {
  const std::vector<RegionChoices> regions = {{{1}, {{}, {{1, "a"}}}}, {{2}, {{}, {{2, "b"}}}}};
  int asked = 0;
  const auto cost = [&](const Algorithms&) -> absl::StatusOr<std::optional<double>> {
    return ++asked > 1 ? std::nullopt : std::optional(0.5);
  };
  EXPECT_EQ(*CheapestByRegion(regions, {{0, "known"}}, 1, cost),
            (Algorithms{{0, "known"}, {1, "a"}}));
  EXPECT_EQ(asked, 2);
  const auto fails = [](const Algorithms&) -> absl::StatusOr<std::optional<double>> {
    return absl::InternalError("lost device");
  };
  EXPECT_EQ(CheapestByRegion(regions, {}, 1, fails).status().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace mendel
