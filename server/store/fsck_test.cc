// The checker of a data folder, and what collects its garbage.
#include "server/store/fsck.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/status.h"
#include "server/store/conformance.h"
#include "server/store/garbage.h"

namespace mendel::server {
namespace {

class DataFolder : public testing::Test {
 protected:
  void SetUp() override {
    auto jobs = OpenSqliteStore(folder_.path() + "/" + kJobStoreFile, clock_);
    auto blobs = OpenBlobStore(folder_.path(), {}, clock_);
    ASSERT_TRUE(jobs.ok() && blobs.ok());
    jobs_ = *std::move(jobs);
    blobs_ = *std::move(blobs);
  }
  BlobId Put(const std::string& bytes) {
    const BlobId blob = {Sha256Hex(bytes), static_cast<int64_t>(bytes.size())};
    const auto writer = blobs_->OpenUpload({"00000000-0000-4000-8000-000000000000", blob}, 0);
    EXPECT_TRUE(writer.ok() && (*writer)->Append(bytes).ok() && (*writer)->Finish().ok());
    return blob;
  }
  /// A job that ends with a plan of these bytes, which need not be there.
  StoredJob Finished(const BlobId& plan) {
    const auto job = jobs_->Submit(SpecOf(1), "a", "", 0, {});
    Outcome outcome;
    outcome.state = v1::JOB_STATE_SUCCEEDED;
    outcome.plan.emplace();
    outcome.plan->set_name("plans/" + plan.sha256);
    outcome.plan->set_blob(BlobName(plan));
    EXPECT_TRUE(jobs_->Finish(job->job.name(), (*jobs_->Claim("w", 1, {}))->fence, outcome).ok());
    return *job;
  }
  std::vector<std::string> Violations() { return Fsck(*jobs_, *blobs_)->violations; }

  TestClock clock_;
  TestFolder folder_;
  std::unique_ptr<JobStore> jobs_;
  std::unique_ptr<BlobStore> blobs_;
};

TEST_F(DataFolder, FsckCountsWhatIsThere) {
  Finished(Put("a plan"));
  Put("garbage");
  const auto report = Fsck(*jobs_, *blobs_);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->violations, std::vector<std::string>());
  EXPECT_EQ(report->jobs, 1);
  EXPECT_EQ(report->plans, 1);
  EXPECT_EQ(report->blobs, 2);
  EXPECT_EQ(report->bytes, 13);
  EXPECT_EQ(report->unreferenced, 1);
}

TEST_F(DataFolder, FsckFindsMissingBlobs) {
  const BlobId blob = Put("a plan");
  Finished(blob);
  Finished({std::string(64, 'e'), 3});
  v1::Model model;
  model.set_name("models/m");
  model.add_files()->mutable_digest()->set_sha256(std::string(64, 'f'));
  ASSERT_TRUE(jobs_->PutModel(model).ok());
  EXPECT_EQ(Violations().size(), 2U);
  ASSERT_EQ(unlink(blobs_->Path(blob)->c_str()), 0);
  EXPECT_EQ(Violations().size(), 3U);
}

TEST_F(DataFolder, GarbageGoesByAgeAndSize) {
  constexpr int64_t kHour = int64_t{3600} * 1'000'000;
  Finished(Put("needed"));
  Put("garbage");
  clock_.Advance(2 * kHour);
  Put("fresh");
  GarbagePolicy policy = {.retain_jobs_micros = 3 * kHour,
                          .retain_blobs_micros = 3 * kHour,
                          .target_bytes = 0,
                          .dry_run = false};
  EXPECT_EQ(CollectGarbage(*jobs_, *blobs_, policy, clock_.WallMicros())->bytes, 0) << "too young";
  policy.target_bytes = 12;
  policy.dry_run = true;
  EXPECT_EQ(CollectGarbage(*jobs_, *blobs_, policy, clock_.WallMicros())->bytes, 7)
      << "too much: older than an hour";
  EXPECT_EQ(blobs_->List()->size(), 3U) << "a dry run";
  policy.dry_run = false;
  EXPECT_EQ(CollectGarbage(*jobs_, *blobs_, policy, clock_.WallMicros())->bytes, 7);
  EXPECT_EQ(*blobs_->TotalBytes(), 11);
  clock_.Advance(4 * kHour);
  policy.dry_run = true;
  EXPECT_EQ(CollectGarbage(*jobs_, *blobs_, policy, clock_.WallMicros())->jobs, 1);
  policy.dry_run = false;
  const auto report = CollectGarbage(*jobs_, *blobs_, policy, clock_.WallMicros());
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->jobs, 1);
  EXPECT_EQ(report->bytes, 5) << "the plan's blob stays: the plan is there";
  EXPECT_EQ(report->bytes_before, 11);
  EXPECT_EQ(Violations(), std::vector<std::string>());
}

}  // namespace
}  // namespace mendel::server
