// The whole optimizer on small networks built here: what it promises about every plan, and that it
// repeats.

#include "optimizer/pipeline.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "graph/emitter.h"
#include "graph/evaluate.h"
#include "graph/text.h"
#include "optimizer/certificate_proto.h"

namespace mendel {
namespace {

ValueId Weight(Emitter& e, Rng& rng, const Shape& shape, const std::string& name) {
  std::vector<double> values(static_cast<size_t>(NumElements(shape)));
  for (double& value : values) value = rng.Normal() / 8;
  return e.Constant(Tensor::FromDoubles({DType::kF32, shape}, values), name);
}

/// A recurrent cell over three steps: products that can be merged and batched, and views between
/// them.
Graph RecurrentNetwork() {
  Emitter e("cell");
  Rng rng(11);
  constexpr int64_t kWidth = 96;
  const ValueId x = e.Input("x", {DType::kF32, {3, 1, kWidth}});
  ValueId h = e.Constant(Tensor::Filled({DType::kF32, {1, kWidth}}, 0));
  for (int64_t step = 0; step < 3; ++step) {
    const ValueId now = e.Reshape(e.Slice(x, 0, step, step + 1), {1, kWidth});
    std::vector<ValueId> gates;
    for (const std::string name : {"a", "b", "c"}) {
      const ValueId w = Weight(e, rng, {kWidth, kWidth}, "w" + name);
      const ValueId u = Weight(e, rng, {kWidth, kWidth}, "u" + name);
      gates.push_back(e.Add(e.MatMul(now, w), e.MatMul(h, u)));
    }
    h = e.Mul(e.Op("Tanh", {gates[0]}),
              e.Op("Sigmoid", {e.Add(gates[1], e.Op("Relu", {gates[2]}))}));
  }
  e.Output("h", h);
  auto graph = e.Finish();
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

/// Convolution, batch norm, dilated convolutions, residual add, pool.
Graph ConvolutionalNetwork() {
  Emitter e("net");
  Rng rng(12);
  const auto conv = [&](ValueId x, int64_t dilation, const std::string& name) {
    return e.Op("Conv", {x, Weight(e, rng, {16, 16, 3, 3}, name)},
                {{"strides", Ints{1, 1}},
                 {"dilations", Ints{dilation, dilation}},
                 {"pads", Ints(4, dilation)}});
  };
  const ValueId x = e.Input("x", {DType::kF32, {2, 16, 20, 20}});
  const ValueId positive = e.Constant(Tensor::Filled({DType::kF32, {16}}, 1.5), "variance");
  const ValueId normed =
      e.Op("BatchNormalization",
           {conv(x, 1, "w0"), Weight(e, rng, {16}, "scale"), Weight(e, rng, {16}, "shift"),
            Weight(e, rng, {16}, "mean"), positive});
  const ValueId y = e.Op("Relu", {normed});
  const ValueId z = e.Op("Relu", {conv(e.Op("Relu", {conv(y, 2, "w1")}), 2, "w2")});
  e.Output("out", e.Op("ReduceMean", {e.Add(y, z)}, {{"axes", Ints{2, 3}}}));
  auto graph = e.Finish();
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

std::string Bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

OptimizeOptions Options() {
  OptimizeOptions options;
  options.threads = 1;
  options.search.budget_seconds = 60;
  options.model_name = "test";
  return options;
}

class Pipeline : public testing::TestWithParam<Graph (*)()> {};

TEST_P(Pipeline, PlanIsCertifiedRepeatableAndRight) {
  const Graph graph = GetParam()();
  const std::string folder = testing::TempDir() + "/pipeline_" + graph.name();
  std::filesystem::remove_all(folder);
  auto cache = ProfileCache::Open(folder + "/cache.sqlite");
  ASSERT_TRUE(cache.ok()) << cache.status();
  const auto first = Optimize(graph, Options(), **cache);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_LE(first->certificate.bound_log2, -80);
  EXPECT_TRUE(Replay(graph, first->plan.graph, first->certificate).ok());
  EXPECT_GT(first->search.counters.proposed(), 0);
  EXPECT_LE(first->search.best_time.median_ms, first->search.baseline_time.median_ms);
  ASSERT_EQ(first->gate.outputs.size(), 1u);
  EXPECT_LT(first->gate.outputs[0].plan_max(), 1e-5);

  // The same cache and seed: nothing is measured, and the plan is the same byte for byte but for
  // its certificate.
  OptimizeOptions warm_options = Options();
  warm_options.error_on_cache_miss = true;
  const auto second = Optimize(graph, warm_options, **cache);
  ASSERT_TRUE(second.ok()) << second.status();
  Plan a = first->plan, b = second->plan;
  a.certificate_bytes.clear();
  b.certificate_bytes.clear();
  ASSERT_TRUE(WritePlan(a, folder + "/a.plan").ok());
  ASSERT_TRUE(WritePlan(b, folder + "/b.plan").ok());
  EXPECT_EQ(Bytes(folder + "/a.plan"), Bytes(folder + "/b.plan"));

  // A plan of the file is the plan that was certified.
  const auto read = ReadPlan(folder + "/a.plan");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(GraphHash(read->graph, WeightMode::kSymbolic), first->certificate.plan_hash);
}

INSTANTIATE_TEST_SUITE_P(Networks, Pipeline,
                         testing::Values(&RecurrentNetwork, &ConvolutionalNetwork),
                         [](const auto& info) {
                           return info.index == 0 ? std::string("Recurrent")
                                                  : std::string("Convolutional");
                         });

TEST(PipelineCases, RefusesACertificateOfAnotherPlan) {
  const Graph graph = RecurrentNetwork();
  auto cache = ProfileCache::Open(":memory:");
  ASSERT_TRUE(cache.ok());
  const auto result = Optimize(graph, Options(), **cache);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_FALSE(Replay(ConvolutionalNetwork(), result->plan.graph, result->certificate).ok());
}

TEST(PipelineCases, InterruptedSearchDeliversTheBestSoFar) {
  const Graph graph = RecurrentNetwork();
  auto cache = ProfileCache::Open(":memory:");
  ASSERT_TRUE(cache.ok());
  std::atomic<bool> interrupted = true;
  OptimizeOptions options = Options();
  options.search.interrupted = &interrupted;
  const auto result = Optimize(graph, options, **cache);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->search.stop_reason, StopReason::kInterrupted);
  EXPECT_EQ(result->search.counters.proposed(), 0);
  EXPECT_LE(result->certificate.bound_log2, -80);
}

TEST(PipelineCases, ACertificateHasALimitOfItsOwn) {
  auto cache = ProfileCache::Open(":memory:");
  ASSERT_TRUE(cache.ok());
  OptimizeOptions options = Options();
  options.search.baseline_only = true;
  options.certify_seconds = 1e-9;
  EXPECT_TRUE(
      absl::IsDeadlineExceeded(Optimize(ConvolutionalNetwork(), options, **cache).status()));
}

TEST(PipelineCases, WithoutABudgetThePlanIsTheBaselineAndSaysSo) {
  auto cache = ProfileCache::Open(":memory:");
  ASSERT_TRUE(cache.ok());
  OptimizeOptions options = Options();
  options.search.budget_seconds = 0;
  ProgressEvent last;
  options.search.progress = [&](const ProgressEvent& event) {
    if (event.last) last = event;
  };
  const auto result = Optimize(RecurrentNetwork(), options, **cache);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(PrintGraph(result->plan.graph), PrintGraph(result->plan.baseline));
  EXPECT_EQ(result->search.counters.proposed(), 0);
  EXPECT_EQ(last.phase, "search");
  EXPECT_EQ(last.best_speedup, 1);
}

/// The last report states what the plan states.
TEST(PipelineCases, TheLastReportIsTheMeasuredSpeedup) {
  auto cache = ProfileCache::Open(":memory:");
  ASSERT_TRUE(cache.ok());
  OptimizeOptions options = Options();
  ProgressEvent last;
  options.search.progress = [&](const ProgressEvent& event) {
    if (event.last) last = event;
  };
  const auto result = Optimize(RecurrentNetwork(), options, **cache);
  ASSERT_TRUE(result.ok()) << result.status();
  const SearchResult& search = result->search;
  EXPECT_DOUBLE_EQ(last.best_speedup, search.baseline_time.median_ms / search.best_time.median_ms);
  EXPECT_EQ(last.candidates, search.counters.proposed());
}

TEST(PipelineCases, NamesAnUnknownBackend) {
  auto cache = ProfileCache::Open(":memory:");
  ASSERT_TRUE(cache.ok());
  OptimizeOptions options = Options();
  options.backend = "abacus";
  EXPECT_EQ(Optimize(RecurrentNetwork(), options, **cache).status().code(),
            absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace mendel
