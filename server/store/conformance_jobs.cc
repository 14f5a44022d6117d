// Submitting, listing, canceling, and the journal.
#include <set>

#include "absl/status/status.h"
#include "base/status.h"
#include "server/store/conformance.h"

namespace mendel::server {
namespace {

TEST_P(JobStoreConformance, SubmittedJobIsPendingWithItsFirstEvent) {
  const StoredJob job = Submit("alice", 3);
  EXPECT_EQ(job.job.state(), v1::JOB_STATE_PENDING);
  EXPECT_EQ(job.job.name().size(), 41U) << job.job.name();
  EXPECT_EQ(job.job.client(), "alice");
  EXPECT_EQ(job.job.priority(), 3);
  EXPECT_EQ(job.job.create_time().seconds(), clock_.WallMicros() / 1'000'000);
  const auto read = store_->GetJob(job.job.name());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->job.SerializeAsString(), job.job.SerializeAsString());
  const auto events = store_->Events(job.job.name(), 0, 10);
  ASSERT_TRUE(events.ok()) << events.status();
  ASSERT_EQ(events->size(), 1U);
  EXPECT_EQ(events->front().sequence(), 1);
  EXPECT_EQ(events->front().state(), v1::JOB_STATE_PENDING);
}

TEST_P(JobStoreConformance, UnknownJobsAreNotFound) {
  const std::string name = "jobs/none";
  EXPECT_EQ(store_->GetJob(name).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store_->CancelJob(name).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store_->DeleteJob(name).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store_->Events(name, 0, 1).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store_->Renew(name, 1, 1).status().code(), absl::StatusCode::kNotFound);
}

TEST_P(JobStoreConformance, SameRequestIdGivesTheSameJob) {
  const StoredJob first = Submit("alice", 0, "once");
  EXPECT_EQ(Submit("alice", 0, "once").job.name(), first.job.name());
  EXPECT_NE(Submit("bob", 0, "once").job.name(), first.job.name())
      << "request ids belong to a client";
  EXPECT_NE(Submit().job.name(), Submit().job.name()) << "an empty id is never the same";
  EXPECT_EQ(store_->Submit(SpecOf(2), "alice", "once", 0, {}).status().code(),
            absl::StatusCode::kAlreadyExists);
  // Whatever became of it, and however full the queue is.
  ASSERT_TRUE(store_->CancelJob(first.job.name()).ok());
  const auto again =
      store_->Submit(SpecOf(1), "alice", "once", 0, {.pending_total = 1, .pending_per_client = 1});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->job.name(), first.job.name());
  EXPECT_EQ(again->job.state(), v1::JOB_STATE_CANCELLED);
}

TEST_P(JobStoreConformance, SameRequestIdAtOnceGivesOneJob) {
  std::vector<std::string> names(8);
  InThreads(8,
            [&](int i) { names[static_cast<size_t>(i)] = Submit("alice", 0, "once").job.name(); });
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), 1U);
}

TEST_P(JobStoreConformance, RequestsAnsweredWithoutAJobAreRemembered) {
  EXPECT_EQ(*store_->FindRequest("alice", "", SpecOf(1)), std::nullopt);
  EXPECT_EQ(*store_->RememberRequest("alice", "", SpecOf(1), "plans/p"), "plans/p")
      << "an empty id is never known";
  EXPECT_EQ(*store_->RememberRequest("alice", "once", SpecOf(1), "plans/p"), "plans/p");
  EXPECT_EQ(*store_->RememberRequest("alice", "once", SpecOf(1), "plans/q"), "plans/p")
      << "the first answer counts";
  EXPECT_EQ(**store_->FindRequest("alice", "once", SpecOf(1)), "plans/p");
  EXPECT_EQ(*store_->FindRequest("bob", "once", SpecOf(1)), std::nullopt);
  for (const auto code :
       {store_->FindRequest("alice", "once", SpecOf(2)).status().code(),
        store_->RememberRequest("alice", "once", SpecOf(2), "plans/q").status().code(),
        store_->Submit(SpecOf(2), "alice", "once", 0, {}).status().code()}) {
    EXPECT_EQ(code, absl::StatusCode::kAlreadyExists);
  }
  const std::string job = Submit("alice", 0, "twice").job.name();
  EXPECT_EQ(**store_->FindRequest("alice", "twice", SpecOf(1)), job);
  EXPECT_EQ(*store_->RememberRequest("alice", "twice", SpecOf(1), "plans/p"), job);
  EXPECT_EQ(store_->FindRequest("alice", "twice", SpecOf(2)).status().code(),
            absl::StatusCode::kAlreadyExists);
  clock_.Advance(1'000'000);
  ASSERT_TRUE(store_->DeleteEndedBefore(clock_.WallMicros()).ok());
  EXPECT_EQ(*store_->FindRequest("alice", "once", SpecOf(2)), std::nullopt);
  EXPECT_EQ(**store_->FindRequest("alice", "twice", SpecOf(1)), job) << "it has not ended";
}

TEST_P(JobStoreConformance, WritersAtOnceDoNotDisturbEachOther) {
  // More writers than connections, a third of them refused: whatever shares a commit, each gets its
  // own answer.
  constexpr int kWriters = 24;
  constexpr int kRounds = 5;
  Submit();
  const std::string running = Claim().job.name();
  InThreads(kWriters, [&](int i) {
    for (int round = 0; round < kRounds; ++round) {
      if (i % 3 == 0) {
        EXPECT_EQ(store_->DeleteJob(running).code(), absl::StatusCode::kFailedPrecondition);
      } else {
        const std::string name = Submit(Cat("client", i)).job.name();
        if (i % 3 == 1) {
          EXPECT_EQ(store_->CancelJob(name)->job.state(), v1::JOB_STATE_CANCELLED);
        }
      }
    }
  });
  auto counts = *store_->CountJobs();
  EXPECT_EQ(counts[v1::JOB_STATE_PENDING], kWriters / 3 * kRounds);
  EXPECT_EQ(counts[v1::JOB_STATE_CANCELLED], kWriters / 3 * kRounds);
  EXPECT_EQ(*store_->Check(), std::vector<std::string>());
}

TEST_P(JobStoreConformance, NamesOfClientsMayBeOdd) {
  const std::string odd("o'dd\0\xc3\xa9\"%\n", 10);
  const StoredJob job = Submit(odd, 0, odd);
  EXPECT_EQ(Submit(odd, 0, odd).job.name(), job.job.name());
  const auto page = store_->ListJobs({.states = {}, .client = odd}, 10, "");
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(NamesOf(page->items), std::vector<std::string>{job.job.name()});
}

TEST_P(JobStoreConformance, TextThatIsNoUtf8IsRefusedOrCleaned) {
  EXPECT_EQ(store_->Submit(SpecOf(1), "a\xff", "", 0, {}).status().code(),
            absl::StatusCode::kInvalidArgument);
  const StoredJob job = Submit();
  const StoredJob held = Claim();
  EXPECT_EQ(held.job.name(), job.job.name()) << "the refused one is not there";
  v1::JobEvent event;
  event.set_warning("b\xe2\x82 c\xe2\x82\xac");
  ASSERT_TRUE(store_->AppendEvent(job.job.name(), held.fence, event).ok());
  EXPECT_EQ(store_->Events(job.job.name(), 2, 1)->front().warning(), "b?? c\xe2\x82\xac");
  Outcome outcome;
  outcome.error.set_message("segmentation\xc0\x80 fault\xed\xa0\x80\xf5");
  ASSERT_TRUE(store_->Finish(job.job.name(), held.fence, outcome).ok());
  EXPECT_EQ(store_->GetJob(job.job.name())->job.error().message(), "segmentation?? fault????");
}

TEST_P(JobStoreConformance, LimitsHoldUnderConcurrentSubmissions) {
  std::atomic<int> accepted = 0;
  InThreads(6, [&](int i) {
    for (int k = 0; k < 6; ++k) {
      const auto job = store_->Submit(SpecOf(1), Cat("client", i % 2), "", 0,
                                      {.pending_total = 12, .pending_per_client = 7});
      if (job.ok()) {
        ++accepted;
      } else {
        EXPECT_EQ(job.status().code(), absl::StatusCode::kResourceExhausted) << job.status();
      }
    }
  });
  EXPECT_EQ(accepted, 12);
  for (const char* client : {"client0", "client1"}) {
    const auto page = store_->ListJobs({.states = {}, .client = client}, 100, "");
    ASSERT_TRUE(page.ok());
    EXPECT_LE(page->items.size(), 7U);
  }
}

TEST_P(JobStoreConformance, PagesAreStableWhileJobsAreAdded) {
  std::vector<std::string> expected;
  for (int i = 0; i < 10; ++i) expected.insert(expected.begin(), Submit().job.name());
  std::vector<std::string> seen;
  std::string token;
  do {
    const auto page = store_->ListJobs({}, 3, token);
    ASSERT_TRUE(page.ok()) << page.status();
    for (const StoredJob& job : page->items) seen.push_back(job.job.name());
    token = page->next_token;
    Submit("bob");
  } while (!token.empty());
  EXPECT_EQ(seen, expected)
      << "newest first; what came after the first page does not disturb the others";
}

TEST_P(JobStoreConformance, TheLastPageHasNoToken) {
  for (int i = 0; i < 4; ++i) Submit();
  EXPECT_EQ(store_->ListJobs({}, 4, "")->next_token, "");
  EXPECT_NE(store_->ListJobs({}, 3, "")->next_token, "");
}

TEST_P(JobStoreConformance, ForeignPageTokensAreRefused) {
  for (int i = 0; i < 3; ++i) Submit();
  const std::string token = store_->ListJobs({}, 1, "")->next_token;
  ASSERT_FALSE(token.empty());
  const auto refuses = [&](const JobFilter& filter, const std::string& bad) {
    return store_->ListJobs(filter, 1, bad).status().code() == absl::StatusCode::kInvalidArgument;
  };
  EXPECT_TRUE(refuses({}, "1")) << "not a token";
  EXPECT_TRUE(refuses({}, token + "0"));
  EXPECT_TRUE(refuses({.states = {}, .client = "bob"}, token)) << "another filter";
  EXPECT_TRUE(refuses({.states = {v1::JOB_STATE_FAILED}, .client = ""}, token)) << "another filter";
  std::string changed = token;
  changed[10] = changed[10] == '0' ? '1' : '0';
  EXPECT_TRUE(refuses({}, changed));
  EXPECT_EQ(store_->ListJobs({}, -1, "").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(store_->ListModels("", 1, token).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_P(JobStoreConformance, ListsByStateAndClient) {
  const StoredJob cancelled = Submit("alice");
  const StoredJob pending = Submit("alice");
  Submit("bob");
  ASSERT_TRUE(store_->CancelJob(cancelled.job.name()).ok());
  const auto page = store_->ListJobs({.states = {v1::JOB_STATE_CANCELLED}, .client = ""}, 0, "");
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(NamesOf(page->items), std::vector<std::string>{cancelled.job.name()});
  const auto two = store_->ListJobs(
      {.states = {v1::JOB_STATE_CANCELLED, v1::JOB_STATE_PENDING}, .client = "alice"}, 0, "");
  ASSERT_TRUE(two.ok()) << two.status();
  EXPECT_EQ(NamesOf(two->items),
            (std::vector<std::string>{pending.job.name(), cancelled.job.name()}));
  const auto counts = store_->CountJobs();
  ASSERT_TRUE(counts.ok());
  EXPECT_EQ(*counts, (std::map<v1::JobState, int64_t>{{v1::JOB_STATE_PENDING, 2},
                                                      {v1::JOB_STATE_CANCELLED, 1}}));
}

TEST_P(JobStoreConformance, QueuePositionsTakeClientsInTurn) {
  const StoredJob a0 = Submit("alice");
  const StoredJob a1 = Submit("alice");
  const StoredJob a2 = Submit("alice", 5);
  const StoredJob b0 = Submit("bob");
  EXPECT_EQ(store_->GetJob(a2.job.name())->job.queue_position(), 0)
      << "the highest priority of its client";
  EXPECT_EQ(store_->GetJob(b0.job.name())->job.queue_position(), 1);
  EXPECT_EQ(store_->GetJob(a0.job.name())->job.queue_position(), 2) << "after a2 and b0";
  EXPECT_EQ(store_->GetJob(a1.job.name())->job.queue_position(), 3);
}

TEST_P(JobStoreConformance, CancelInEveryState) {
  const StoredJob pending = Submit();
  EXPECT_EQ(store_->CancelJob(pending.job.name())->job.state(), v1::JOB_STATE_CANCELLED);
  EXPECT_TRUE(store_->GetJob(pending.job.name())->job.has_end_time());
  const StoredJob running = Submit();
  const StoredJob held = Claim();
  EXPECT_EQ(held.job.name(), running.job.name()) << "a cancelled job is not claimed";
  EXPECT_EQ(store_->CancelJob(running.job.name())->job.state(), v1::JOB_STATE_CANCELLING);
  EXPECT_EQ(store_->CancelJob(running.job.name())->job.state(), v1::JOB_STATE_CANCELLING)
      << "twice is once";
  EXPECT_EQ(store_->Renew(running.job.name(), held.fence, 9).value_or(v1::JOB_STATE_UNSPECIFIED),
            v1::JOB_STATE_CANCELLING);
  ASSERT_TRUE(store_->Finish(running.job.name(), held.fence, Succeeded(1)).ok())
      << "the best so far is kept";
  EXPECT_EQ(store_->CancelJob(running.job.name())->job.state(), v1::JOB_STATE_SUCCEEDED)
      << "an ended job stays";
}

TEST_P(JobStoreConformance, DeleteOnlyWhatHasEnded) {
  const StoredJob job = Submit("alice", 0, "id");
  EXPECT_EQ(store_->DeleteJob(job.job.name()).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(store_->CancelJob(job.job.name()).ok());
  EXPECT_TRUE(store_->DeleteJob(job.job.name()).ok());
  EXPECT_EQ(store_->GetJob(job.job.name()).status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(Submit("alice", 0, "id").job.name(), job.job.name()) << "its request id is free again";
}

TEST_P(JobStoreConformance, RetentionDeletesEndedJobsOnly) {
  const StoredJob ended = Submit();
  const StoredJob pending = Submit();
  ASSERT_TRUE(store_->CancelJob(ended.job.name()).ok());
  EXPECT_EQ(store_->DeleteEndedBefore(clock_.WallMicros()).value_or(-1), 0) << "not older";
  EXPECT_EQ(store_->DeleteEndedBefore(clock_.WallMicros() + 1).value_or(-1), 1);
  EXPECT_EQ(store_->GetJob(ended.job.name()).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(StateOf(pending.job.name()), v1::JOB_STATE_PENDING);
}

}  // namespace
}  // namespace mendel::server
