// Claims: the order of jobs between clients, twins, and the devices of workers.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/status.h"
#include "server/store/conformance.h"

namespace mendel::server {
namespace {

TEST_P(JobStoreConformance, ClaimsAreFairBetweenClients) {
  const StoredJob a0 = Submit("alice");
  const StoredJob a1 = Submit("alice");
  const StoredJob a2 = Submit("alice", 9);
  const StoredJob b0 = Submit("bob", -1);
  const StoredJob b1 = Submit("bob");
  const StoredJob c0 = Submit("carol");
  std::vector<StoredJob> claimed;
  for (int i = 0; i < 6; ++i) claimed.push_back(Claim());
  // Clients in turn, each one's highest priority first.
  EXPECT_EQ(NamesOf(claimed), NamesOf({a2, b1, c0, a0, b0, a1}));
  EXPECT_FALSE(store_->Claim("worker", 1, {})->has_value());
}

TEST_P(JobStoreConformance, AFloodOfOneClientDelaysOthersByOneJobEach) {
  for (int i = 0; i < 200; ++i) Submit("flood", 10);
  // One worker: nobody holds a job when it claims.
  const auto run_next = [&] {
    const StoredJob job = Claim();
    EXPECT_TRUE(store_->Finish(job.job.name(), job.fence, {}).ok());
    return job.job.client();
  };
  for (int i = 0; i < 5; ++i) EXPECT_EQ(run_next(), "flood");
  for (const char* client : {"a", "b", "c"}) {
    for (int i = 0; i < 3; ++i) Submit(client);
  }
  std::map<std::string, int> served;
  for (int i = 0; i < 12; ++i) ++served[run_next()];
  EXPECT_EQ(served, (std::map<std::string, int>{{"a", 3}, {"b", 3}, {"c", 3}, {"flood", 3}}));
}

TEST_P(JobStoreConformance, ClientsShareSecondsAndNotJobs) {
  const auto submit = [&](const std::string& client, int64_t seconds) {
    v1::JobSpec spec = SpecOf(1);
    spec.mutable_optimize()->mutable_budget()->mutable_time()->set_seconds(seconds);
    EXPECT_TRUE(store_->Submit(spec, client, "", 0, {}).ok());
  };
  for (int i = 0; i < 10; ++i) submit("long", 100);
  for (int i = 0; i < 40; ++i) submit("short", 10);
  std::map<std::string, int> served;
  for (int i = 0; i < 33; ++i) ++served[Claim().job.client()];
  EXPECT_EQ(served, (std::map<std::string, int>{{"long", 3}, {"short", 30}}));
}

TEST_P(JobStoreConformance, AnEmptyQueueSavesNoCredit) {
  for (int i = 0; i < 40; ++i) Submit("steady");
  Submit("guest");
  for (int i = 0; i < 20; ++i) Claim();
  for (int i = 0; i < 10; ++i) Submit("guest");
  std::map<std::string, int> served;
  for (int i = 0; i < 6; ++i) ++served[Claim().job.client()];
  EXPECT_EQ(served, (std::map<std::string, int>{{"guest", 3}, {"steady", 3}}));
}

TEST_P(JobStoreConformance, AClientHasSoManyJobsInWork) {
  std::vector<StoredJob> mine;
  for (int i = 0; i < 3; ++i) mine.push_back(Submit("alice"));
  const StoredJob other = Submit("bob");
  const ClaimFilter filter{.devices = {}, .running_per_client = 2};
  const auto take = [&] {
    const auto job = store_->Claim("worker", clock_.WallMicros() + 60'000'000, filter);
    EXPECT_TRUE(job.ok()) << job.status();
    return job.ok() && job->has_value() ? **job : StoredJob{};
  };
  const StoredJob first = take();
  EXPECT_EQ(first.job.name(), mine[0].job.name());
  EXPECT_EQ(take().job.name(), other.job.name());
  EXPECT_EQ(take().job.name(), mine[1].job.name());
  EXPECT_EQ(take().job.name(), "") << "alice has two jobs in work";
  ASSERT_TRUE(store_->CancelJob(first.job.name()).ok());
  EXPECT_EQ(take().job.name(), "") << "a job that is being cancelled still has its worker";
  ASSERT_TRUE(store_->Finish(first.job.name(), first.fence, {}).ok());
  EXPECT_EQ(take().job.name(), mine[2].job.name());
}

TEST_P(JobStoreConformance, TwinsWaitForTheOneThatWorks) {
  const auto submit = [&](const std::string& client, const std::string& key) {
    const auto job = store_->Submit(SpecOf(1), client, "", 0, {.work_key = key});
    EXPECT_TRUE(job.ok()) << job.status();
    return job.ok() ? job->job.name() : "";
  };
  const auto take = [&] {
    const auto job = store_->Claim("worker", clock_.WallMicros() + 60'000'000, {});
    EXPECT_TRUE(job.ok()) << job.status();
    return job.ok() && job->has_value() ? **job : StoredJob{};
  };
  const std::string first = submit("alice", "key");
  const std::string twin = submit("bob", "key");
  EXPECT_EQ(store_->Events(first, 0, 9)->size(), 1u);
  EXPECT_EQ(store_->Events(twin, 1, 9)->at(0).warning(),
            "the same search is in flight; the job waits, and gets its plan");
  const std::string other = submit("bob", "other key");
  const std::string keyless = submit("bob", "");
  const StoredJob working = take();
  EXPECT_EQ(working.job.name(), first);
  EXPECT_EQ(take().job.name(), other) << "the older one waits for its twin";
  EXPECT_EQ(take().job.name(), keyless);
  EXPECT_EQ(take().job.name(), "");
  Outcome outcome = Succeeded(1);
  outcome.work_key = "key";
  ASSERT_TRUE(store_->Finish(first, working.fence, outcome).ok());
  EXPECT_EQ(store_->FindPlan("key")->value().name(), PlanOf(1).name())
      << "in one transaction with the end of the job";
  EXPECT_EQ(take().job.name(), twin);
}

TEST_P(JobStoreConformance, ATwinThatWasCancelledLeavesTheSearchToTheOther) {
  const auto submit = [&](const std::string& client) {
    return store_->Submit(SpecOf(1), client, "", 0, {.work_key = "key"})->job.name();
  };
  submit("alice");
  const std::string twin = submit("bob");
  const StoredJob working = Claim();
  ASSERT_TRUE(store_->CancelJob(working.job.name()).ok());
  EXPECT_FALSE(store_->Claim("worker", 1, {})->has_value()) << "it may still bring a plan";
  Outcome outcome;
  outcome.state = v1::JOB_STATE_CANCELLED;
  ASSERT_TRUE(store_->Finish(working.job.name(), working.fence, outcome).ok());
  EXPECT_EQ(Claim().job.name(), twin);
}

TEST_P(JobStoreConformance, TracesStayWithTheirJobs) {
  const std::string trace = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01";
  ASSERT_TRUE(store_->Submit(SpecOf(1), "alice", "", 0, {.trace_parent = trace}).ok());
  EXPECT_EQ(Claim().trace_parent, trace);
}

TEST_P(JobStoreConformance, QueuePositionsAreTheOrderOfClaims) {
  for (int i = 0; i < 30; ++i) {
    v1::JobSpec spec = SpecOf(1);
    spec.mutable_optimize()->mutable_budget()->mutable_time()->set_seconds(1 + i * 37 % 11);
    ASSERT_TRUE(store_->Submit(spec, Cat("client", i * i % 5), "", i % 3, {}).ok());
    if (i % 7 == 6) Claim();
  }
  std::vector<StoredJob> waiting =
      store_->ListJobs({.states = {v1::JOB_STATE_PENDING}, .client = ""}, 100, "")->items;
  ASSERT_EQ(waiting.size(), 26u);
  std::sort(waiting.begin(), waiting.end(), [](const StoredJob& a, const StoredJob& b) {
    return a.job.queue_position() < b.job.queue_position();
  });
  for (size_t i = 0; i < waiting.size(); ++i) {
    EXPECT_EQ(waiting[i].job.queue_position(), static_cast<int>(i));
    EXPECT_EQ(Claim().job.name(), waiting[i].job.name()) << "position " << i;
  }
}

TEST_P(JobStoreConformance, WorkersTakeWhatTheyHaveTheDeviceFor) {
  const auto submit = [&](const std::string& device) {
    v1::JobSpec spec = SpecOf(1);
    spec.mutable_optimize()->set_device(device);
    const auto job = store_->Submit(spec, "alice", "", 0, {});
    EXPECT_TRUE(job.ok()) << job.status();
    return *job;
  };
  const auto take = [&](const std::vector<std::string>& devices) {
    const auto job = store_->Claim("worker", clock_.WallMicros() + 60'000'000, {devices});
    EXPECT_TRUE(job.ok()) << job.status();
    return job.ok() && job->has_value() ? (*job)->job.name() : "";
  };
  const std::string gpu = submit("cuda").job.name();
  const std::string cpu = submit("cpu").job.name();
  const std::string absent = submit("cuda:sm_90").job.name();
  const std::string any = submit("").job.name();
  EXPECT_EQ(take({"cpu"}), cpu) << "the older one is for another worker";
  EXPECT_EQ(take({"cpu", "cuda:sm_75", "cuda:sm_90"}), absent);
  EXPECT_EQ(take({}), any);
  EXPECT_EQ(take({"cpu", "cuda:sm_90"}), "");
  EXPECT_EQ(StateOf(gpu), v1::JOB_STATE_PENDING);
  EXPECT_EQ(take({"cpu", "cuda"}), gpu);
}

TEST_P(JobStoreConformance, RebindsGoWhereTheirPlanCanBeGated) {
  uint64_t plans = 0;
  const auto rebind_of = [&](const std::string& device, bool unmeasured) {
    v1::JobSpec spec = SpecOf(1);
    EXPECT_TRUE(store_->Submit(spec, "maker", "", 10, {}).ok());
    const auto made = store_->Claim("worker", clock_.WallMicros() + 60'000'000, {});
    Outcome outcome = Succeeded(++plans);
    outcome.plan->set_device(device);
    outcome.plan->set_isa("sm_90");
    outcome.plan->set_unmeasured(unmeasured);
    EXPECT_TRUE(made.ok() && made->has_value() &&
                store_->Finish((*made)->job.name(), (*made)->fence, outcome).ok());
    spec.mutable_refit_plan()->set_plan(outcome.plan->name());
    spec.mutable_refit_plan()->set_model("models/m");
    const auto job = store_->Submit(spec, "alice", "", 0, {});
    EXPECT_TRUE(job.ok()) << job.status();
    return job.ok() ? *job : StoredJob{};
  };
  const StoredJob gpu = rebind_of("cuda", false);
  EXPECT_EQ(gpu.device, "cuda");
  EXPECT_FALSE(store_->Claim("worker", clock_.WallMicros() + 60'000'000, {{"cpu", "cuda:sm_90"}})
                   ->has_value())
      << "it has no GPU";
  const StoredJob predicted = rebind_of("cuda", true);
  const StoredJob cpu = rebind_of("cpu", false);
  EXPECT_EQ(*store_->CountPendingByDevice(),
            (std::map<std::string, int64_t>{{"cpu", 1}, {"cuda", 1}, {"cuda:sm_90", 1}}));
  const auto take = [&](const std::vector<std::string>& devices) {
    const auto job = store_->Claim("worker", clock_.WallMicros() + 60'000'000, {devices});
    return job.ok() && job->has_value() ? **job : StoredJob{};
  };
  const StoredJob first = take({"cpu", "cuda:sm_90"});
  EXPECT_EQ(first.job.name(), predicted.job.name());
  EXPECT_EQ(first.device, "cuda:sm_90");
  EXPECT_EQ(take({}).job.name(), cpu.job.name());
  EXPECT_EQ(take({"cpu", "cuda"}).job.name(), gpu.job.name());
  EXPECT_EQ(*store_->CountPendingByDevice(), (std::map<std::string, int64_t>()));
  v1::JobSpec none;
  none.mutable_refit_plan()->set_plan(PlanOf(1000).name());
  EXPECT_TRUE(absl::IsNotFound(store_->Submit(none, "alice", "", 0, {}).status()));
}

}  // namespace
}  // namespace mendel::server
