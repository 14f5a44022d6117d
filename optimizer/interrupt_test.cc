// An interrupt of the whole optimizer, and the limit of its gate.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>

#include "optimizer/pipeline.h"
#include "optimizer/profile/clocked_executable.h"
#include "runtime/backend.h"

namespace mendel {
namespace {

using testing::Contains;
using testing::HasSubstr;

/// Two convolutions on one input, which several rules match, and their sum.
Graph Parallel() {
  GraphBuilder builder;
  const ValueId x = builder.Input("x", {DType::kF32, {1, 4, 8, 8}});
  const auto conv = [&](const std::string& name) {
    const ValueId w = builder.Constant(Tensor::Filled({DType::kF32, {4, 4, 3, 3}}, 0.25), name);
    return *builder.Add(
        "Conv", {x, w},
        {{"strides", Ints{1, 1}}, {"dilations", Ints{1, 1}}, {"pads", Ints{1, 1, 1, 1}}});
  };
  const ValueId sum = *builder.Add("Add", {conv("a"), conv("b")});
  builder.Output("y", *builder.Add("Relu", {sum}));
  return *builder.Build();
}

/// "reference" with a clock, by which a program of one convolution takes half the time of two.
class Clocked final : public ClockedBackend {
 public:
  Clocked() : ClockedBackend("clocked") {}
  std::unique_ptr<Executable> WithClock(const Graph& graph,
                                        std::unique_ptr<Executable> program) const override {
    const auto convolutions =
        std::count_if(graph.nodes().begin(), graph.nodes().end(),
                      [](const Node& node) { return node.op->name == "Conv"; });
    return std::make_unique<ClockedExecutable>(std::move(program), convolutions == 2 ? 1 : 0.5);
  }
};

OptimizeOptions Options(const Backend& backend) {
  OptimizeOptions options;
  options.backend = "clocked";
  options.device = &backend;
  options.search.budget_seconds = 60;
  return options;
}

TEST(Interrupt, OfTheSearchDeliversTheBestSoFarWithACertificate) {
  const auto cache = *ProfileCache::Open(":memory:");
  const Clocked backend;
  OptimizeOptions options = Options(backend);
  std::atomic<bool> interrupted = false;
  options.search.interrupted = &interrupted;
  options.search.progress = [&](const ProgressEvent& event) {
    if (!event.last && event.best_speedup > 1) interrupted = true;
  };
  const auto result = Optimize(Parallel(), options, *cache);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_TRUE(interrupted);
  EXPECT_EQ(result->search.stop_reason, StopReason::kInterrupted);
  EXPECT_FALSE(result->search.mutants.empty());
  EXPECT_EQ(result->search.best_time.median_ms, 500);
  EXPECT_TRUE(Replay(Parallel(), result->plan.graph, result->certificate).ok());
  EXPECT_EQ(result->gate.inputs, 1);
  EXPECT_THAT(result->notices, Contains(HasSubstr("because the run was interrupted")));
}

TEST(Interrupt, BeforeTheSearchDeliversTheBaseline) {
  const auto cache = *ProfileCache::Open(":memory:");
  const Clocked backend;
  OptimizeOptions options = Options(backend);
  const std::atomic<bool> interrupted = true;
  options.search.interrupted = &interrupted;
  const auto result = Optimize(Parallel(), options, *cache);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->search.mutants.empty());
  EXPECT_TRUE(Replay(Parallel(), result->plan.graph, result->certificate).ok());
}

TEST(GateLimit, LeavesOutInputsAndDropsMutantsThatWereNotCompared) {
  const auto cache = *ProfileCache::Open(":memory:");
  const Clocked backend;
  OptimizeOptions options = Options(backend);
  const auto all = Optimize(Parallel(), options, *cache);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->gate.left_out, 0);
  EXPECT_FALSE(all->search.mutants.empty());
  options.gate_seconds = 1e-9;
  const auto none = Optimize(Parallel(), options, *cache);
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ(none->gate.inputs, 0);
  EXPECT_EQ(none->gate.left_out, all->gate.inputs);
  EXPECT_TRUE(none->search.mutants.empty());
  EXPECT_THAT(none->notices, Contains(HasSubstr("the plan is the baseline, because the numeric "
                                                "gate")));
  EXPECT_THAT(none->notices, Contains(HasSubstr("compares 0 of")));
}

}  // namespace
}  // namespace mendel
