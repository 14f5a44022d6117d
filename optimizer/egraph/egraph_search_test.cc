#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "graph/text.h"
#include "optimizer/egraph/egraph_record.h"
#include "optimizer/search/search.h"
#include "runtime/backend.h"

namespace mendel {
namespace {

/// Six products of one matrix with six others: one product with all of them side by side is faster
/// wherever a call costs anything.
Graph Projections() {
  GraphBuilder builder;
  const ValueId x = builder.Input("x", {DType::kF32, {8, 16}});
  for (int k = 0; k < 6; ++k) {
    const ValueId w = builder.Constant(Tensor::Filled({DType::kF32, {16, 16}}, 0.125 * k),
                                       "w" + std::to_string(k));
    builder.Output("y" + std::to_string(k), *builder.Add("MatMul", {x, w}));
  }
  return *builder.Build();
}

SearchOptions Options() {
  SearchOptions options;
  options.method = SearchMethod::kEGraph;
  options.budget_seconds = 20;
  options.max_rounds = 2;
  options.max_candidates = 6;
  return options;
}

TEST(EGraphSearch, ReportsAndReplays) {
  const auto cache = *ProfileCache::Open(":memory:");
  const Graph graph = Projections();
  Profiler profiler(*FindBackend("reference"), *cache, {});
  const auto first = Search(graph, profiler, *cache, Options());
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(first->egraph.has_value());
  EXPECT_GT(first->egraph->applications, 0);
  EXPECT_GT(first->egraph->extractions, 0);
  EXPECT_EQ(first->egraph->gap, 0);
  EXPECT_LE(first->best_time.median_ms, first->baseline_time.median_ms);
  Profiler again(*FindBackend("reference"), *cache, {.error_on_miss = true});
  const auto second = Search(graph, again, *cache, Options());
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(again.measured(), 0);
  EXPECT_EQ(PrintGraph(second->best.graph), PrintGraph(first->best.graph));
  EXPECT_EQ(second->counters.SerializeAsString(), first->counters.SerializeAsString());
  EXPECT_EQ(second->mutants.size(), first->mutants.size());
  EXPECT_EQ(second->egraph->nodes, first->egraph->nodes);
}

TEST(EGraphSearch, WithoutTimeTheBaselineIsExtractedAndDelivered) {
  const auto cache = *ProfileCache::Open(":memory:");
  Profiler profiler(*FindBackend("reference"), *cache, {});
  SearchOptions options = Options();
  options.budget_seconds = 0;
  const auto result = Search(Projections(), profiler, *cache, options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->stop_reason, StopReason::kBudget);
  EXPECT_EQ(result->egraph->applications, 0);
  EXPECT_EQ(result->egraph->extractions, 1);
  EXPECT_EQ(result->egraph->gap, 0);
  EXPECT_EQ(PrintGraph(result->best.graph), PrintGraph(Projections()));
}

TEST(EGraphSearch, InterruptedDeliversTheBaseline) {
  const auto cache = *ProfileCache::Open(":memory:");
  Profiler profiler(*FindBackend("reference"), *cache, {});
  const std::atomic<bool> interrupted = true;
  SearchOptions options = Options();
  options.interrupted = &interrupted;
  const auto result = Search(Projections(), profiler, *cache, options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->stop_reason, StopReason::kInterrupted);
  EXPECT_TRUE(result->mutants.empty());
}

TEST(EGraphSearch, AnImpossibleMemoryLimitIsRefused) {
  const auto cache = *ProfileCache::Open(":memory:");
  Profiler profiler(*FindBackend("reference"), *cache, {});
  SearchOptions options = Options();
  options.max_peak_bytes = 100;
  EXPECT_TRUE(absl::IsResourceExhausted(Search(Projections(), profiler, *cache, options).status()));
  options.method = SearchMethod::kBeam;
  EXPECT_TRUE(absl::IsUnimplemented(Search(Projections(), profiler, *cache, options).status()));
}

TEST(EGraphRecord, AWeightThatIsMissingIsNoRecord) {
  SearchResult result;
  result.best.graph = Projections();
  result.egraph = EGraphReport();
  result.egraph->nodes = 7;
  result.stop_reason = StopReason::kNodeLimit;
  const auto text = PrintEGraphRecord(result);
  ASSERT_TRUE(text.has_value());
  const auto again = ParseEGraphRecord(*text, result.best.graph);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->egraph->nodes, 7);
  EXPECT_EQ(again->stop_reason, StopReason::kNodeLimit);
  EXPECT_EQ(PrintGraph(again->best.graph), PrintGraph(result.best.graph));
  EXPECT_FALSE(ParseEGraphRecord(*text, Graph()).has_value());
  EXPECT_FALSE(ParseEGraphRecord("1 2", result.best.graph).has_value());
}

}  // namespace
}  // namespace mendel
