#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "graph/evaluate.h"
#include "runtime/measure.h"
#include "runtime/mendel.h"
#include "runtime/plan_bundle.h"
#include "runtime/test_backend.h"
#include "runtime/test_plan.h"

namespace mendel {
namespace {

class CApi : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "/" + std::to_string(::getpid()) + "-c.plan";
    ASSERT_TRUE(WritePlan(SmallPlan(kTestBackend), path_).ok());
  }
  void TearDown() override { std::filesystem::remove(path_); }
  std::string path_;
};

TEST_F(CApi, LoadsDescribesAndRuns) {
  mendel_plan* plan = mendel_load(path_.c_str(), 0);
  ASSERT_NE(plan, nullptr) << mendel_last_error();
  EXPECT_EQ(mendel_input_count(plan), 1);
  EXPECT_EQ(mendel_output_count(plan), 1);
  mendel_value value;
  ASSERT_EQ(mendel_input(plan, 0, &value), MENDEL_OK);
  EXPECT_STREQ(value.name, "x");
  EXPECT_EQ(value.dtype, MENDEL_F32);
  ASSERT_EQ(value.rank, 2);
  EXPECT_EQ(value.shape[1], 8);
  EXPECT_EQ(value.bytes, 64u);
  ASSERT_EQ(mendel_output(plan, 0, &value), MENDEL_OK);
  EXPECT_STREQ(value.name, "y");

  const Tensor x = RandomInputs(SmallPlan(kTestBackend).graph, 3)[0];
  std::vector<float> y(6);
  const void* inputs[] = {x.bytes().data()};
  void* outputs[] = {y.data()};
  ASSERT_EQ(mendel_run(plan, inputs, outputs), MENDEL_OK) << mendel_last_error();
  const auto expected = Evaluate(SmallPlan(kTestBackend).graph, std::vector<HostValue>{HostValue::FromTensor(x)});
  ASSERT_TRUE(expected.ok());
  const Tensor wanted = (*expected)[0].ToTensor();
  EXPECT_THAT(y, testing::ElementsAreArray(wanted.As<float>()));
  mendel_free(plan);
}

TEST_F(CApi, ChoosesTheMemberOfABundle) {
  const std::vector<Plan> members = SmallBundle(kTestBackend);
  ASSERT_TRUE(WritePlanBundle(members, path_).ok());
  mendel_plan* plan = mendel_load(path_.c_str(), 0);
  ASSERT_NE(plan, nullptr) << mendel_last_error();
  EXPECT_EQ(mendel_member_count(plan), 3);
  mendel_value first;
  ASSERT_EQ(mendel_input(plan, 0, &first), MENDEL_OK);
  for (const size_t number : {2, 0, 1}) {
    const Graph& graph = members[number].graph;
    const Tensor x = RandomInputs(graph, 3 + number)[0];
    const auto expected = Evaluate(graph, std::vector<HostValue>{HostValue::FromTensor(x)});
    ASSERT_TRUE(expected.ok());
    const Tensor wanted = (*expected)[0].ToTensor();
    std::vector<float> y(wanted.As<float>().size());
    const int rank = 2;
    const int64_t* shape = x.shape().data();
    const void* inputs[] = {x.bytes().data()};
    void* outputs[] = {y.data()};
    ASSERT_EQ(mendel_run_shapes(plan, &rank, &shape, inputs, outputs), MENDEL_OK) << mendel_last_error();
    EXPECT_THAT(y, testing::ElementsAreArray(wanted.As<float>()));
    mendel_value value;
    ASSERT_EQ(mendel_input(plan, 0, &value), MENDEL_OK);
    EXPECT_EQ(value.shape[0], x.shape()[0]);
    std::fill(y.begin(), y.end(), 0.0f);
    ASSERT_EQ(mendel_select(plan, static_cast<int>(number)), MENDEL_OK);
    ASSERT_EQ(mendel_run(plan, inputs, outputs), MENDEL_OK);
    EXPECT_THAT(y, testing::ElementsAreArray(wanted.As<float>()));
  }
  EXPECT_EQ(first.shape[0], 2);  // descriptions outlive other selections
  mendel_free(plan);
}

TEST_F(CApi, RefusesAMemberThatIsNotThere) {
  ASSERT_TRUE(WritePlanBundle(SmallBundle(kTestBackend), path_).ok());
  mendel_plan* plan = mendel_load(path_.c_str(), 0);
  ASSERT_NE(plan, nullptr) << mendel_last_error();
  ASSERT_EQ(mendel_select(plan, 1), MENDEL_OK);
  const int64_t extents[] = {3, 8};
  const int64_t* shape = extents;
  int rank = 2;
  EXPECT_EQ(mendel_select_shapes(plan, &rank, &shape), MENDEL_INVALID);
  EXPECT_THAT(mendel_last_error(), testing::HasSubstr("x:3x8; it offers x:2x8; x:4x8; x:16x8"));
  for (const int bad : {-1, 1000}) {
    rank = bad;
    EXPECT_EQ(mendel_select_shapes(plan, &rank, &shape), MENDEL_INVALID);
  }
  EXPECT_EQ(mendel_select_shapes(plan, nullptr, nullptr), MENDEL_INVALID);
  EXPECT_EQ(mendel_select(plan, 3), MENDEL_INVALID);
  EXPECT_EQ(mendel_select(plan, -1), MENDEL_INVALID);
  EXPECT_EQ(mendel_select(nullptr, 0), MENDEL_INVALID);
  EXPECT_EQ(mendel_member_count(nullptr), -1);
  mendel_value value;
  ASSERT_EQ(mendel_input(plan, 0, &value), MENDEL_OK);
  EXPECT_EQ(value.shape[0], 4);  // the selection stays
  mendel_free(plan);
}

TEST_F(CApi, ErrorsAreToldPerThread) {
  EXPECT_EQ(mendel_load((path_ + ".none").c_str(), 0), nullptr);
  EXPECT_THAT(mendel_last_error(), testing::HasSubstr("none"));
  std::thread([] { EXPECT_STREQ(mendel_last_error(), ""); }).join();
  EXPECT_EQ(mendel_load(nullptr, 0), nullptr);
  EXPECT_EQ(mendel_load(path_.c_str(), -1), nullptr);
  EXPECT_EQ(mendel_input_count(nullptr), -1);
  EXPECT_EQ(mendel_run(nullptr, nullptr, nullptr), MENDEL_INVALID);
  mendel_plan* plan = mendel_load(path_.c_str(), 2);
  ASSERT_NE(plan, nullptr);
  EXPECT_STREQ(mendel_last_error(), "");
  mendel_value value;
  EXPECT_EQ(mendel_input(plan, 1, &value), MENDEL_INVALID);
  EXPECT_EQ(mendel_input(plan, -1, &value), MENDEL_INVALID);
  EXPECT_EQ(mendel_input(plan, 0, nullptr), MENDEL_INVALID);
  EXPECT_EQ(mendel_run(plan, nullptr, nullptr), MENDEL_INVALID);
  mendel_free(plan);
  mendel_free(nullptr);
  EXPECT_STRNE(mendel_version(), "");
}

}  // namespace
}  // namespace mendel
