#include "runtime/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/evaluate.h"
#include "runtime/measure.h"
#include "runtime/test_backend.h"
#include "runtime/test_plan.h"

namespace mendel {
namespace {

using testing::HasSubstr;

TEST(Session, RunsByName) {
  const Plan plan = SmallPlan(kTestBackend);
  for (bool baseline : {false, true}) {
    auto session = Session::Create(plan, {.baseline = baseline});
    ASSERT_TRUE(session.ok()) << session.status();
    ASSERT_EQ((*session)->inputs().size(), 1u);
    EXPECT_EQ((*session)->inputs()[0].name, "x");
    EXPECT_EQ((*session)->outputs()[0].type, (TensorType{DType::kF32, {2, 3}}));
    const Tensor x = RandomInputs(plan.graph, 5)[0];
    const auto y = (*session)->Run({{"x", x}});
    ASSERT_TRUE(y.ok()) << y.status();
    const auto expected = Evaluate(plan.graph, std::vector<HostValue>{HostValue::FromTensor(x)});
    ASSERT_TRUE(expected.ok());
    EXPECT_EQ((*y)[0], (*expected)[0].ToTensor());
  }
}

TEST(Session, NamesTheWrongInput) {
  auto session = Session::Create(SmallPlan(kTestBackend), {});
  ASSERT_TRUE(session.ok());
  const Tensor x = Tensor::Filled({DType::kF32, {2, 8}}, 1);
  EXPECT_THAT(std::string((*session)->Run({}).status().message()),
              HasSubstr("'x' of type f32[2,8] is missing"));
  EXPECT_THAT(std::string((*session)->Run({{"x", x}, {"z", x}}).status().message()),
              HasSubstr("no input 'z'"));
  const auto wrong = (*session)->Run({{"x", Tensor::Filled({DType::kF32, {8}}, 1)}});
  EXPECT_THAT(std::string(wrong.status().message()), HasSubstr("f32[8] where f32[2,8]"));
}

TEST(Session, RefusesOtherMachinesUnlessRetuned) {
  Plan plan = SmallPlan(kTestBackend);
  plan.info.mutable_target()->set_identity("another machine");
  EXPECT_EQ(Session::Create(plan, {}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(Session::Create(plan, {.retune = true}).ok());
  plan.info.mutable_target()->set_backend("abacus");
  EXPECT_THAT(std::string(Session::Create(plan, {.retune = true}).status().message()),
              HasSubstr("abacus"));
  plan = SmallPlan(kTestBackend);
  plan.baseline = Graph();
  EXPECT_EQ(Session::Create(plan, {.baseline = true}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Session, OfflinePlansWhoseAlgorithmsAreNotHereAreRefusedUnlessRetuned) {
  Plan plan = SmallPlan(kTestBackend);
  plan.info.mutable_target()->set_identity("any machine of its kind");
  plan.info.mutable_target()->set_isa(FindBackend(kTestBackend)->Isa());
  plan.info.mutable_plan_ms()->set_median_ms(1);
  plan.info.mutable_plan_ms()->set_runs(0);
  plan.info.clear_algorithms();
  EXPECT_TRUE(Session::Create(plan, {}).ok());
  (*plan.info.mutable_algorithms())[1] = "assumed";
  const absl::Status refused = Session::Create(plan, {}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  for (const char* part : {"made offline", "node 1", "'assumed'", "--retune"}) {
    EXPECT_THAT(std::string(refused.message()), HasSubstr(part));
  }
  EXPECT_TRUE(Session::Create(plan, {.retune = true}).ok());
}

TEST(Session, AffinityIsRefusedWhereThreadsCannotBePinned) {
  const Plan plan = SmallPlan(kTestBackend);
  const absl::Status pinned = Session::Create(plan, {.affinity = "cores"}).status();
  EXPECT_EQ(pinned.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(pinned.message()),
              HasSubstr("threads of backend " + std::string(kTestBackend)));
  EXPECT_EQ(Session::Create(plan, {.affinity = "0 1"}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Session, ThreadsDefaultToThePlans) {
  Plan plan = SmallPlan(kTestBackend);
  plan.info.mutable_target()->set_threads(3);
  const auto as_planned = Session::Create(plan, {});
  const auto chosen = Session::Create(plan, {.threads = 2});
  ASSERT_TRUE(as_planned.ok() && chosen.ok());
  EXPECT_EQ((*as_planned)->threads(), 3);
  EXPECT_EQ((*chosen)->threads(), 2);
}

}  // namespace
}  // namespace mendel
