// Leases, fences, events, and many workers at once.
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/status.h"
#include "server/store/conformance.h"

namespace mendel::server {
namespace {

TEST_P(JobStoreConformance, ClaimCountsAttemptsAndRaisesTheFence) {
  const StoredJob job = Submit();
  const StoredJob first = Claim("w1");
  EXPECT_EQ(first.job.attempts(), 1);
  EXPECT_EQ(first.lease_owner, "w1");
  EXPECT_EQ(first.job.state(), v1::JOB_STATE_RUNNING);
  ASSERT_TRUE(store_->Release(job.job.name(), first.fence, false).ok());
  EXPECT_EQ(StateOf(job.job.name()), v1::JOB_STATE_PENDING);
  const StoredJob second = Claim("w2");
  EXPECT_EQ(second.job.attempts(), 1) << "a release is no attempt";
  EXPECT_GT(second.fence, first.fence);
}

TEST_P(JobStoreConformance, LateWorkersAreRefused) {
  const StoredJob job = Submit();
  const StoredJob late = Claim("late");
  clock_.Advance(61'000'000);
  EXPECT_EQ(store_->ExpireLeases(clock_.WallMicros(), 3).value_or(std::vector<std::string>{}),
            NamesOf({job}));
  const auto refused = [&](int64_t fence) {
    v1::JobEvent event;
    event.set_warning("late");
    EXPECT_EQ(store_->Renew(job.job.name(), fence, 1).status().code(), absl::StatusCode::kAborted);
    EXPECT_EQ(store_->AppendEvent(job.job.name(), fence, event).code(), absl::StatusCode::kAborted);
    EXPECT_EQ(store_->Finish(job.job.name(), fence, Succeeded(1)).code(),
              absl::StatusCode::kAborted);
    EXPECT_EQ(store_->Release(job.job.name(), fence, false).code(), absl::StatusCode::kAborted);
  };
  refused(late.fence);
  const StoredJob next = Claim("next");
  refused(late.fence);
  EXPECT_EQ(store_->GetPlan(PlanOf(1).name()).status().code(), absl::StatusCode::kNotFound)
      << "a refused result leaves nothing";
  ASSERT_TRUE(store_->Finish(job.job.name(), next.fence, Succeeded(2)).ok());
  refused(late.fence);
  EXPECT_EQ(store_->GetJob(job.job.name())->job.plan(), PlanOf(2).name());
}

TEST_P(JobStoreConformance, FinishStoresThePlanWithTheOutcome) {
  const StoredJob job = Submit();
  const StoredJob held = Claim();
  EXPECT_EQ(store_
                ->Finish(job.job.name(), held.fence,
                         {.state = v1::JOB_STATE_RUNNING,
                          .error = {},
                          .plan = {},
                          .verdict = {},
                          .bundle = {}})
                .code(),
            absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(store_->Finish(job.job.name(), held.fence, Succeeded(4)).ok());
  EXPECT_TRUE(store_->Finish(job.job.name(), held.fence, Succeeded(4)).ok())
      << "again, because the answer was lost";
  const auto plan = store_->GetPlan(PlanOf(4).name());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->job(), job.job.name());
  const auto ended = store_->GetJob(job.job.name());
  EXPECT_EQ(ended->job.state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(ended->lease_owner, "");
  const auto events = store_->Events(job.job.name(), 1, 10);
  ASSERT_EQ(events->size(), 2U);
  EXPECT_EQ(events->back().state(), v1::JOB_STATE_SUCCEEDED);
}

TEST_P(JobStoreConformance, FailuresKeepTheirReason) {
  const StoredJob job = Submit();
  const StoredJob held = Claim();
  Outcome outcome;
  outcome.error.set_code(8);
  outcome.error.set_message("out of memory");
  outcome.bundle = Cat("blobs/", std::string(64, 'b'), "/5");
  ASSERT_TRUE(store_->Finish(job.job.name(), held.fence, outcome).ok());
  const auto ended = store_->GetJob(job.job.name());
  EXPECT_EQ(ended->job.error().message(), "out of memory");
  EXPECT_EQ(store_->ReferencedBlobs().value_or(std::vector<std::string>{}),
            std::vector<std::string>{std::string(64, 'b')});
}

TEST_P(JobStoreConformance, LostWorkersAreRetriedThenFail) {
  const StoredJob job = Submit();
  for (int attempt = 1; attempt <= 2; ++attempt) {
    EXPECT_EQ(Claim().job.attempts(), attempt);
    EXPECT_TRUE(store_->ExpireLeases(clock_.WallMicros(), 2)->empty()) << "the lease holds";
    clock_.Advance(61'000'000);
    EXPECT_EQ(store_->ExpireLeases(clock_.WallMicros(), 2)->size(), 1U);
  }
  const auto failed = store_->GetJob(job.job.name());
  EXPECT_EQ(failed->job.state(), v1::JOB_STATE_FAILED);
  EXPECT_NE(failed->job.error().message(), "");
  // One that is being canceled is not tried again.
  const StoredJob other = Submit();
  Claim();
  ASSERT_TRUE(store_->CancelJob(other.job.name()).ok());
  clock_.Advance(61'000'000);
  EXPECT_EQ(store_->ExpireLeases(clock_.WallMicros(), 2)->size(), 1U);
  EXPECT_EQ(StateOf(other.job.name()), v1::JOB_STATE_CANCELLED);
}

TEST_P(JobStoreConformance, RenewedLeasesHold) {
  const StoredJob job = Submit();
  const StoredJob held = Claim();
  clock_.Advance(50'000'000);
  ASSERT_TRUE(store_->Renew(job.job.name(), held.fence, clock_.WallMicros() + 60'000'000).ok());
  clock_.Advance(50'000'000);
  EXPECT_TRUE(store_->ExpireLeases(clock_.WallMicros(), 3)->empty());
}

TEST_P(JobStoreConformance, ClockJumpsNeverGiveTwoResults) {
  const StoredJob job = Submit();
  const StoredJob first = Claim("first");
  // A day ahead: the lease seems over although its worker lives.
  clock_.Advance(86'400'000'000);
  EXPECT_EQ(store_->ExpireLeases(clock_.WallMicros(), 3)->size(), 1U);
  const StoredJob second = Claim("second");
  // Two days back, before 1970 even: nothing ends early, nothing is refused to its holder.
  clock_.Set(clock_.WallMicros() - 172'800'000'000);
  EXPECT_TRUE(store_->ExpireLeases(clock_.WallMicros(), 3)->empty());
  clock_.Set(-5'000'001);
  EXPECT_TRUE(store_->ExpireLeases(clock_.WallMicros(), 3)->empty());
  EXPECT_EQ(store_->Finish(job.job.name(), first.fence, Succeeded(1)).code(),
            absl::StatusCode::kAborted);
  EXPECT_TRUE(store_->Finish(job.job.name(), second.fence, Succeeded(2)).ok());
  // A job of the past is listed after one of the future: order is that of submission.
  const StoredJob newer = Submit();
  EXPECT_EQ(store_->ListJobs({}, 1, "")->items.front().job.name(), newer.job.name());
  EXPECT_LT(newer.job.create_time().seconds(), 0);
  EXPECT_GE(newer.job.create_time().nanos(), 0);
}

TEST_P(JobStoreConformance, EventsAreNumberedAndThinnedOut) {
  const StoredJob job = Submit();
  const StoredJob held = Claim();
  v1::JobEvent warning;
  warning.set_warning("careful");
  ASSERT_TRUE(store_->AppendEvent(job.job.name(), held.fence, warning).ok());
  for (int i = 0; i < 640; ++i) {
    v1::JobEvent event;
    event.mutable_progress()->set_candidates(i);
    ASSERT_TRUE(store_->AppendEvent(job.job.name(), held.fence, event).ok());
  }
  v1::JobEvent state;
  state.set_state(v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(store_->AppendEvent(job.job.name(), held.fence, state).code(),
            absl::StatusCode::kInvalidArgument);
  const auto events = store_->Events(job.job.name(), 0, 10'000);
  ASSERT_TRUE(events.ok()) << events.status();
  EXPECT_LT(events->size(), 600U) << "old progress goes";
  ASSERT_GT(events->size(), 500U) << "new progress stays";
  EXPECT_EQ((*events)[0].state(), v1::JOB_STATE_PENDING);
  EXPECT_EQ((*events)[1].state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ((*events)[2].warning(), "careful");
  for (size_t i = 1; i < events->size(); ++i)
    EXPECT_GT((*events)[i].sequence(), (*events)[i - 1].sequence());
  EXPECT_EQ(events->back().sequence(), 643);
  const auto read = store_->GetJob(job.job.name());
  EXPECT_EQ(read->job.last_sequence(), 643);
  EXPECT_EQ(read->job.progress().candidates(), 639);
  const auto tail = store_->Events(job.job.name(), 640, 2);
  ASSERT_EQ(tail->size(), 2U);
  EXPECT_EQ(tail->front().sequence(), 641);
}

/// Claims and finishes until nothing is left; calls `done` for each.
void Work(JobStore& store, const std::string& owner,
          const std::function<void(const StoredJob&)>& done) {
  for (;;) {
    const auto job = store.Claim(owner, 4'000'000'000'000'000, {});
    ASSERT_TRUE(job.ok()) << job.status();
    if (!job->has_value()) return;
    ASSERT_TRUE(store
                    .Finish((*job)->job.name(), (*job)->fence,
                            Succeeded(static_cast<uint64_t>((*job)->job.priority())))
                    .ok());
    done(**job);
  }
}

TEST_P(JobStoreConformance, ConcurrentThreadsClaimEachJobOnce) {
  constexpr int kJobs = 60;
  for (int i = 0; i < kJobs; ++i) Submit(Cat("client", i % 3));
  std::mutex mutex;
  std::multiset<std::string> claimed;
  InThreads(6, [&](int i) {
    Work(*store_, Cat("worker", i), [&](const StoredJob& job) {
      const std::scoped_lock lock(mutex);
      claimed.insert(job.job.name());
    });
  });
  EXPECT_EQ(claimed.size(), size_t{kJobs});
  EXPECT_EQ(std::set<std::string>(claimed.begin(), claimed.end()).size(), size_t{kJobs});
}

TEST_P(JobStoreConformance, ConcurrentProcessesClaimEachJobOnce) {
  constexpr int kJobs = 60;
  for (int i = 0; i < kJobs; ++i) Submit(Cat("client", i % 3));
  store_.reset();
  std::vector<int> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(InChild([&, i] {
      const auto store = backend_->Open(clock_);
      if (!store.ok()) return 1;
      Work(**store, Cat("process", i), [](const StoredJob&) {});
      return HasFailure() ? 2 : 0;
    }));
  }
  for (const int child : children) EXPECT_EQ(WaitForChild(child), 0);
  store_ = *backend_->Open(clock_);
  const auto page = store_->ListJobs({}, 1000, "");
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->items.size(), size_t{kJobs});
  for (const StoredJob& job : page->items) {
    EXPECT_EQ(job.job.state(), v1::JOB_STATE_SUCCEEDED);
    EXPECT_EQ(job.job.attempts(), 1) << "claimed once";
    EXPECT_EQ(job.job.last_sequence(), 3) << "queued, begun, ended";
  }
}

}  // namespace
}  // namespace mendel::server
