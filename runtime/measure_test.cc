#include "runtime/measure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/text.h"
#include "runtime/test_backend.h"
#include "runtime/test_plan.h"

namespace mendel {
namespace {

/// Records its letter at every run.
class Recorder final : public Executable {
 public:
  Recorder(char letter, std::string& log) : letter_(letter), log_(log) {}
  absl::Status Run(std::span<const std::span<const std::byte>>,
                   std::span<const std::span<std::byte>>) override {
    log_ += letter_;
    return fail_at_ > 0 && --fail_at_ == 0 ? absl::InternalError("kernel") : absl::OkStatus();
  }
  const std::vector<Step>& steps() const override { return steps_; }
  absl::Status RunTimed(std::span<const std::span<const std::byte>> inputs,
                        std::span<const std::span<std::byte>> outputs,
                        std::vector<double>&) override {
    return Run(inputs, outputs);
  }
  MemoryReport memory() const override { return {}; }
  void FailAt(int run) { fail_at_ = run; }

 private:
  char letter_;
  std::string& log_;
  int fail_at_ = 0;
  std::vector<Step> steps_;
};

MeasureOptions Rounds(int rounds) {
  MeasureOptions options;
  options.min_seconds = 0;
  options.min_runs = rounds;
  options.warmup = 1;
  return options;
}

TEST(Measure, InterleavesAndCounts) {
  const Plan plan = SmallPlan(kTestBackend);
  const std::vector<Tensor> inputs = RandomInputs(plan.graph, 1);
  std::string log;
  Recorder a('A', log);
  Recorder b('B', log);
  const std::vector<Executable*> both = {&a, &b};
  for (bool cold : {false, true}) {
    log.clear();
    MeasureOptions options = Rounds(3);
    options.cold = cold;
    const auto timings = MeasureInterleaved(both, plan.graph, inputs, options);
    ASSERT_TRUE(timings.ok());
    EXPECT_EQ(log, "ABABABAB");
    EXPECT_EQ((*timings)[0].runs, 3);
    EXPECT_EQ((*timings)[1].runs, 3);
  }
}

TEST(Measure, LimitsAndErrors) {
  const Plan plan = SmallPlan(kTestBackend);
  const std::vector<Tensor> inputs = RandomInputs(plan.graph, 1);
  std::string log;
  Recorder a('A', log);
  const std::vector<Executable*> one = {&a};
  MeasureOptions options = Rounds(1000);
  options.deadline = Deadline::After(-1);
  auto timings = MeasureInterleaved(one, plan.graph, inputs, options);
  ASSERT_TRUE(timings.ok());
  EXPECT_EQ((*timings)[0].runs, 1);
  options = Rounds(1000);
  options.max_runs = 4;
  timings = MeasureInterleaved(one, plan.graph, inputs, options);
  ASSERT_TRUE(timings.ok());
  EXPECT_EQ((*timings)[0].runs, 4);
  a.FailAt(3);
  EXPECT_EQ(MeasureInterleaved(one, plan.graph, inputs, Rounds(5)).status().code(),
            absl::StatusCode::kInternal);
}

TEST(Measure, UndecidedRoundsGoOn) {
  const Plan plan = SmallPlan(kTestBackend);
  const std::vector<Tensor> inputs = RandomInputs(plan.graph, 1);
  std::string log;
  Recorder a('A', log), b('B', log);
  const std::vector<Executable*> both = {&a, &b};
  std::vector<size_t> asked;  // rounds so far
  double more_seconds = 0.2;
  MeasureOptions options = Rounds(3);
  options.warmup = 0;
  options.more_seconds = [&](const MeasureOptions::Rounds& rounds) {
    asked.push_back(rounds[1].size());
    return more_seconds;
  };
  EXPECT_GT((*MeasureRounds(both, plan.graph, inputs, options))[0].size(), 3u);
  EXPECT_EQ(asked, (std::vector<size_t>{3}));  // once
  EXPECT_EQ(log.substr(0, 10), "ABABABABAB");  // nothing before
  more_seconds = 0;
  EXPECT_EQ((*MeasureRounds(both, plan.graph, inputs, options))[0].size(), 3u);
  more_seconds = 1e9;
  options.deadline = Deadline::After(-1);
  EXPECT_EQ((*MeasureRounds(both, plan.graph, inputs, options))[0].size(), 1u);
}

TEST(Measure, Summarizes) {
  const Timing timing = Summarize({5, 1, 2, 4, 3});
  EXPECT_DOUBLE_EQ(timing.median_ms, 3);
  EXPECT_DOUBLE_EQ(timing.min_ms, 1);
  EXPECT_DOUBLE_EQ(timing.p90_ms, 4.6);
  EXPECT_DOUBLE_EQ(timing.spread, 2.0 / 3.0);
  EXPECT_EQ(timing.runs, 5);
  EXPECT_DOUBLE_EQ(Summarize({7}).p90_ms, 7);
}

TEST(RandomInputs, RepeatBySeedAndStayInTables) {
  if (FindOp("Gather") == nullptr) GTEST_SKIP() << "SKIP: no Gather";
  const auto graph = ParseGraph(R"(graph "g" {
    %0 = Input() {dtype = "i64", name = "ids", shape = [4, 5]}
    %1 = Input() {dtype = "i64", name = "mask", shape = [100]}
    %2 = Input() {name = "x", shape = [100]}
    %3 = Input() {dtype = "bool", name = "b", shape = [100]}
    %4 = Constant() {value = f32[7,2]{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}}
    %5 = Reshape(%0) {shape = [20]}
    %6 = Gather(%4, %5) {axis = 0}
    return "y" = %6, "m" = %1, "x" = %2, "b" = %3
  })");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(IndexLimit(*graph, 0), 7);
  EXPECT_EQ(IndexLimit(*graph, 1), 2);
  const std::vector<Tensor> first = RandomInputs(*graph, 9);
  EXPECT_EQ(first, RandomInputs(*graph, 9));
  EXPECT_NE(first, RandomInputs(*graph, 10));
  EXPECT_THAT(first[0].ToInts(), testing::Each(testing::AllOf(testing::Ge(0), testing::Lt(7))));
  EXPECT_THAT(first[1].ToInts(), testing::Each(testing::AllOf(testing::Ge(0), testing::Lt(2))));
  EXPECT_THAT(first[3].ToInts(), testing::Contains(1));
}

}  // namespace
}  // namespace mendel
