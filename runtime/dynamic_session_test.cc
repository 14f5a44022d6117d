#include "runtime/dynamic_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "graph/evaluate.h"
#include "runtime/measure.h"
#include "runtime/test_backend.h"
#include "runtime/test_plan.h"

namespace mendel {
namespace {

using testing::HasSubstr;

absl::StatusOr<DynamicSession::Specialized> Specialized(const NamedShapes& shapes,
                                                        const DynamicSession::Values& values) {
  const Shape& shape = shapes.at(0).second;
  if (shape.size() != 2 || shape[1] != 8) return InvalidInput("dimension 1 of input 'x' must be 8");
  DynamicSession::Specialized made{SmallPlan(kTestBackend, shape[0]), {}};
  if (values.count("rate") != 0) made.bound.insert("rate");
  return made;
}

DynamicSession::Model TestModel(std::vector<std::string> inputs) {
  return {std::move(inputs), SmallPlan(kTestBackend).info.model_hash(), {}, &Specialized};
}

DynamicSession Make(DynamicLimits limits) { return {TestModel({"x"}), {}, limits}; }

NamedShapes Rows(int64_t rows) { return {{"x", {rows, 8}}}; }

TEST(DynamicSession, RunsEveryShapeAndKeepsThePlansUsedLast) {
  DynamicSession dynamic = Make({.plans = 2});
  for (const int64_t rows : {2, 3, 2, 5, 2, 3}) {
    const auto session = dynamic.ForInputs(Rows(rows), {});
    ASSERT_TRUE(session.ok()) << session.status();
    const Graph graph = SmallPlan(kTestBackend, rows).graph;
    const Tensor x = RandomInputs(graph, 5)[0];
    const auto y = (*session)->Run({{"x", x}});
    ASSERT_TRUE(y.ok()) << y.status();
    const auto expected = Evaluate(graph, std::vector<HostValue>{HostValue::FromTensor(x)});
    EXPECT_EQ((*y)[0], (*expected)[0].ToTensor()) << rows;
  }
  const DynamicUse use = dynamic.use();  // 3 is dropped for 5, and 5 for 3
  EXPECT_EQ(use.plans, 2u);
  EXPECT_EQ(use.hits, 2);
  EXPECT_EQ(use.made, 4);
  EXPECT_EQ(use.dropped, 2);
}

TEST(DynamicSession, APlanAboveTheBytesStaysAlone) {
  DynamicSession dynamic = Make({.bytes = 0});
  ASSERT_TRUE(dynamic.ForInputs(Rows(2), {}).ok());
  ASSERT_TRUE(dynamic.ForInputs(Rows(3), {}).ok());
  EXPECT_EQ(dynamic.use().plans, 1u);
  EXPECT_GT(dynamic.use().bytes, 0);
}

TEST(DynamicSession, APlanOfASearchReplacesAndStays) {
  DynamicSession dynamic = Make({.plans = 2});
  ASSERT_TRUE(dynamic.ForInputs(Rows(2), {}).ok());
  ASSERT_TRUE(dynamic.Adopt(SmallPlan(kTestBackend, 2)).ok());
  EXPECT_EQ(dynamic.use().plans, 1u);
  for (const int64_t rows : {3, 4, 5}) ASSERT_TRUE(dynamic.ForInputs(Rows(rows), {}).ok());
  ASSERT_TRUE(dynamic.ForInputs(Rows(2), {}).ok());
  EXPECT_EQ(dynamic.use().hits, 1);
  DynamicSession other(TestModel({"x", "mask"}), {}, {});
  EXPECT_THAT(std::string(other.Adopt(SmallPlan(kTestBackend, 2)).message()),
              HasSubstr("does not have the model's input 'mask'"));
  DynamicSession stranger({{"x"}, "another", {}, &Specialized}, {}, {});
  EXPECT_THAT(std::string(stranger.Adopt(SmallPlan(kTestBackend, 2)).message()),
              HasSubstr("not of this one, another"));
}

TEST(DynamicSession, ValuesThatAPlanContainsChooseIt) {
  DynamicSession dynamic = Make({});
  const Tensor slow = Tensor::Ints({8000}), fast = Tensor::Ints({16000});
  for (const Tensor& rate : {slow, fast, slow, fast})
    ASSERT_TRUE(dynamic.ForInputs(Rows(2), {{"rate", rate}}).ok());
  EXPECT_EQ(dynamic.use().made, 2);
  EXPECT_EQ(dynamic.use().hits, 2);
}

TEST(DynamicSession, ErrorsOfShapesKeepThePlans) {
  DynamicSession dynamic = Make({});
  ASSERT_TRUE(dynamic.ForInputs(Rows(2), {}).ok());
  EXPECT_THAT(std::string(dynamic.ForInputs({{"x", {2, 7}}}, {}).status().message()),
              HasSubstr("dimension 1 of input 'x'"));
  EXPECT_EQ(dynamic.use().plans, 1u);
}

}  // namespace
}  // namespace mendel
