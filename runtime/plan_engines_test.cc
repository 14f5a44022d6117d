#include "runtime/plan_engines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>

#include "base/hash.h"
#include "base/random.h"
#include "mendel/engines.pb.h"
#include "runtime/plan.h"
#include "runtime/session.h"
#include "runtime/test_backend.h"
#include "runtime/test_plan.h"

namespace mendel {
namespace {

using testing::HasSubstr;

constexpr int32_t kCall = 2;

Plan PlanWithEngine(const std::string& library = kTestLibrary) {
  Plan plan = SmallPlan(kTestBackend);
  (*plan.info.mutable_algorithms())[kCall] = "call:3";
  plan.engines[kCall] = {library, "sm_90", "3 nodes by {\"engineId\":4}"};
  return plan;
}

class PlanEngines : public testing::Test {
 protected:
  ~PlanEngines() override { std::filesystem::remove(path_); }
  absl::StatusOr<Plan> Again(const Plan& plan) const {
    const absl::Status written = WritePlan(plan, path_);
    return written.ok() ? ReadPlan(path_) : written;
  }
  const std::string path_ = TestPath("engines.plan");
};

TEST_F(PlanEngines, RoundTripAndSameBytes) {
  const Plan plan = PlanWithEngine();
  const auto read = Again(plan);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->engines, plan.engines);
  const std::vector<std::byte> bytes = FileBytes(path_);
  ASSERT_TRUE(WritePlan(*read, path_).ok());
  EXPECT_EQ(FileBytes(path_), bytes);
  const auto without = Again(SmallPlan(kTestBackend));
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_TRUE(without->engines.empty());
}

TEST_F(PlanEngines, AreWhatRunsUnlessAlgorithmsAreDropped) {
  EXPECT_TRUE(Session::Create(PlanWithEngine(), {}).ok());
  const Plan other = PlanWithEngine("test library 2");
  const absl::Status refused = Session::Create(other, {}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("'test library 2', and this is 'test library 1'"));
  EXPECT_TRUE(Session::Create(other, {.retune = true}).ok());
  EXPECT_TRUE(Session::Create(other, {.baseline = true}).ok());  // they are the chosen graph's
}

TEST_F(PlanEngines, WhatFitsNoAlgorithmOrIsTooLargeIsRefused) {
  Plan plan = PlanWithEngine();
  plan.engines[kCall + 1] = plan.engines[kCall];
  EXPECT_THAT(std::string(Again(plan).status().message()),
              HasSubstr("node 3, which has no algorithm"));
  plan = PlanWithEngine();
  plan.engines[kCall].text.assign(kMaxEngineText + 1, 'x');
  EXPECT_THAT(std::string(Again(plan).status().message()),
              HasSubstr("larger than a plan may hold"));
  plan.engines[kCall].text.assign(kMaxEngineText, 'x');
  EXPECT_TRUE(Again(plan).ok());
  for (std::string StoredEngine::*name : {&StoredEngine::library, &StoredEngine::device}) {
    plan = PlanWithEngine();
    (plan.engines[kCall].*name).assign(kMaxEngineName + 1, 'x');
    EXPECT_EQ(Again(plan).status().code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_THAT(
      std::string(ParseEngines(std::string(kMaxEnginesSection + 1, 'x')).status().message()),
      HasSubstr("too large"));
}

TEST_F(PlanEngines, DamageIsRefusedWhateverItIs) {
  const Plan plan = PlanWithEngine();
  const std::string bytes = SerializeEngines(plan.engines);
  ASSERT_EQ(*ParseEngines(bytes), plan.engines);
  const size_t text = bytes.find("engineId");
  ASSERT_NE(text, std::string::npos);
  std::string changed = bytes;
  changed[text] = 'x';
  EXPECT_THAT(std::string(ParseEngines(changed).status().message()),
              HasSubstr("the engine of node 2 does not have its hash"));
  // Any byte, and any length: refused, or a table that is checked like every other.
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    Rng rng(seed);
    std::string damaged =
        bytes.substr(0, static_cast<size_t>(rng.Between(0, static_cast<int64_t>(bytes.size()))));
    if (!damaged.empty()) {
      damaged[static_cast<size_t>(rng.Between(0, static_cast<int64_t>(damaged.size()) - 1))] =
          static_cast<char>(rng.Between(-128, 127));
    }
    const auto parsed = ParseEngines(damaged);
    EXPECT_TRUE(parsed.ok() || parsed.status().code() == absl::StatusCode::kInvalidArgument)
        << "seed " << seed;
    if (parsed.ok() && parsed->count(kCall) > 0) {
      EXPECT_EQ(parsed->at(kCall).text, plan.engines.at(kCall).text) << "seed " << seed;
    }
  }
}

TEST_F(PlanEngines, TwoOfANodeAndOtherVersionsAreRefused) {
  plan::EngineTable table;
  table.set_format_version(kPlanEnginesVersion);
  for (int k = 0; k < 2; ++k) {
    plan::EngineProto& entry = *table.add_engines();
    entry.set_node(7);
    entry.set_sha256(Sha256Hex(""));
  }
  EXPECT_THAT(std::string(ParseEngines(table.SerializeAsString()).status().message()),
              HasSubstr("two engines of node 7"));
  table.clear_engines();
  table.set_format_version(9);
  const std::string message(ParseEngines(table.SerializeAsString()).status().message());
  EXPECT_THAT(message, HasSubstr("version 9"));
  EXPECT_THAT(message, HasSubstr("version 1"));
}

}  // namespace
}  // namespace mendel
