#include "optimizer/optimize_bundle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "optimizer/search/matches.h"
#include "optimizer/search/search_session.h"
#include "runtime/backend.h"

namespace mendel {
namespace {

using testing::HasSubstr;

/// Two convolutions on one input, an activation and another convolution: several rules match.
Graph Network(int64_t batch) {
  GraphBuilder builder;
  const auto conv = [&](ValueId x, const std::string& name) {
    const ValueId w =
        builder.Constant(Tensor::Filled({DType::kF32, {4, 4, 3, 3}}, 0.25), "w" + name);
    return *builder.Add(
        "Conv", {x, w},
        {{"strides", Ints{1, 1}}, {"dilations", Ints{2, 2}}, {"pads", Ints{2, 2, 2, 2}}}, name);
  };
  const ValueId x = builder.Input("x", {DType::kF32, {batch, 4, 8, 8}});
  const ValueId sum = *builder.Add("Add", {conv(x, "a"), conv(x, "b")}, {}, "sum");
  builder.Output("y", conv(*builder.Add("Relu", {sum}, {}, "active"), "c"));
  return *builder.Build();
}

TEST(SplitBudget, GivesHalfEvenlyAndHalfByArithmetic) {
  const std::vector<double> shares = SplitBudget(60, {Network(1), Network(4), Network(16)});
  ASSERT_EQ(shares.size(), 3u);
  EXPECT_NEAR(std::accumulate(shares.begin(), shares.end(), 0.0), 60, 0.01);
  EXPECT_NEAR(shares[0], 10 + 30.0 / 21, 0.01);
  EXPECT_NEAR(shares[2], 10 + 30.0 * 16 / 21, 0.01);
  EXPECT_GT(SplitBudget(0, {Network(1), Network(2)})[0], 0);
}

TEST(OptimizeBundle, RefusesWhatABundleCannotOffer) {
  const auto cache = *ProfileCache::Open(":memory:");
  OptimizeOptions options;
  options.backend = "reference";
  const auto twice = OptimizeBundle({Network(1), Network(2), Network(1)}, options, *cache);
  EXPECT_EQ(twice.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(twice.status().message()),
              HasSubstr("members 0 and 2 of the bundle have the same input shapes"));
  EXPECT_EQ(OptimizeBundle({}, options, *cache).status().code(),
            absl::StatusCode::kInvalidArgument);
  options.gate.samples = {{{"x", Tensor::Filled({DType::kF32, {3, 4, 8, 8}}, 1)}}};
  const auto sample = OptimizeBundle({Network(1), Network(2)}, options, *cache);
  EXPECT_THAT(std::string(sample.status().message()),
              HasSubstr("sample 0 has the input shapes of no member"));
}

/// The rule that a search turns to first; "" when it finds no place.
std::string FirstRule(const Graph& graph, SearchMethod method,
                      const std::set<std::string>& tried_first) {
  const auto cache = *ProfileCache::Open(":memory:");
  Profiler profiler(*FindBackend("reference"), *cache, {});
  std::string first;
  std::atomic<bool> enough = false;
  SearchOptions options;
  options.method = method;
  options.interrupted = &enough;
  options.tried_first = tried_first;
  options.progress = [&](const ProgressEvent& event) {
    if (FindRule(event.detail) == nullptr || enough) return;
    first = event.detail;
    enough = true;
  };
  const auto result = Search(graph, profiler, *cache, options);
  EXPECT_TRUE(result.ok()) << result.status();
  return first;
}

TEST(TriedFirst, TheMatchesThatWonForOtherShapesComeFirst) {
  const Graph one = Network(1), four = Network(4);
  for (const SearchMethod method : {SearchMethod::kBeam, SearchMethod::kEGraph}) {
    std::set<std::string> rules;
    const std::string unguided = FirstRule(four, method, {});
    ASSERT_NE(unguided, "");
    for (const Rule* rule : RulesOfSearch({}, method == SearchMethod::kEGraph)) {
      for (int32_t node = 0; node < static_cast<int32_t>(one.nodes().size()); ++node) {
        for (const Match& match : rule->match(one, node, DefaultPredictor())) {
          if (rules.size() == 2 || rule->name == unguided ||
              !MakeMutant(one, *rule, match, DefaultPredictor()).ok())
            continue;
          if (!rules.insert(std::string(rule->name)).second) continue;
          EXPECT_EQ(FirstRule(four, method, {MatchName(rule->name, NodeNames(one, match))}),
                    rule->name);
        }
      }
    }
    EXPECT_EQ(rules.size(), 2u);
  }
}

TEST(TriedFirst, IsPartOfWhatAnOutcomeIsStoredUnder) {
  const auto cache = *ProfileCache::Open(":memory:");
  Profiler profiler(*FindBackend("reference"), *cache, {});
  const Graph graph = Network(1);
  SearchOptions plain, spared, guided;
  spared.spare_seconds = 10;
  guided.tried_first = {"conv_merge\na\nb"};
  const std::string key = SearchSession(graph, profiler, *cache, plain).Key("m");
  EXPECT_EQ(SearchSession(graph, profiler, *cache, spared).Key("m"), key);
  EXPECT_NE(SearchSession(graph, profiler, *cache, guided).Key("m"), key);
}

}  // namespace
}  // namespace mendel
