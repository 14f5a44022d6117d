#include "optimizer/search.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "optimizer/search_record.h"
#include "runtime/backend.h"

namespace mendel {
namespace {

/// Two convolutions on one input, which several rules match.
Graph Parallel() {
  GraphBuilder builder;
  const ValueId x = builder.Input("x", {DType::kF32, {1, 4, 8, 8}});
  std::vector<ValueId> parts;
  for (const char* name : {"a", "b"}) {
    const ValueId w = builder.Constant(Tensor::Filled({DType::kF32, {4, 4, 3, 3}}, 0.25), name);
    parts.push_back(*builder.Add("Conv", {x, w}, {{"strides", Ints{1, 1}}, {"dilations", Ints{1, 1}}, {"pads", Ints{1, 1, 1, 1}}}));
  }
  builder.Output("y", *builder.Add("Add", {parts[0], parts[1]}));
  return *builder.Build();
}

SearchOptions Options(double budget_seconds) {
  SearchOptions options;
  options.budget_seconds = budget_seconds;
  return options;
}

TEST(Search, WithoutTimeTheBaselineIsDelivered) {
  const auto cache = *ProfileCache::Open(":memory:");
  Profiler profiler(*FindBackend("reference"), *cache, {});
  const Graph graph = Parallel();
  const auto result = Search(graph, profiler, *cache, Options(0));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->stop_reason, StopReason::kBudget);
  EXPECT_EQ(result->counters.stop_reason(), "budget");
  EXPECT_EQ(result->counters.proposed(), 0);
  EXPECT_TRUE(result->mutants.empty());
  EXPECT_EQ(result->best.graph.nodes().size(), graph.nodes().size());
  EXPECT_GT(result->baseline_time.runs, 0);
}

TEST(Search, TheSecondRunReplaysTheFirst) {
  const auto cache = *ProfileCache::Open(":memory:");
  const Graph graph = Parallel();
  SearchOptions options = Options(20);
  options.max_candidates = 3;
  Profiler profiler(*FindBackend("reference"), *cache, {});
  const auto first = Search(graph, profiler, *cache, options);
  ASSERT_TRUE(first.ok()) << first.status();
  Profiler again(*FindBackend("reference"), *cache, {.error_on_miss = true});
  const auto second = Search(graph, again, *cache, options);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(again.measured(), 0);
  EXPECT_EQ(second->counters.SerializeAsString(), first->counters.SerializeAsString());
  EXPECT_EQ(second->mutants.size(), first->mutants.size());
}

TEST(SearchRecord, RoundTrip) {
  SearchRecord record;
  record.stop_reason = static_cast<int>(StopReason::kBudget);
  record.counters.set_proposed(7);
  record.counters.set_rounds(2);
  record.counters.set_wrong_numbers(3);
  record.accepted.push_back({"conv_merge", {{"axis", 1}}, "conv_merge axis=1 abc", 2, 10.5, 9.25});
  const auto again = ParseSearchRecord(PrintSearchRecord(record));
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->counters.wrong_numbers(), 3);
  EXPECT_EQ(again->counters.rounds(), 2);
  ASSERT_EQ(again->accepted.size(), 1u);
  EXPECT_EQ(again->accepted[0].key, record.accepted[0].key);
  EXPECT_EQ(again->accepted[0].choices, record.accepted[0].choices);
  EXPECT_EQ(again->accepted[0].mutant_ns, 9.25);
  EXPECT_FALSE(ParseSearchRecord("1 2 3").has_value());
}

}  // namespace
}  // namespace mendel
