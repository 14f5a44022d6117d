// Models, plans, remembered work, and noticing changes.
#include <algorithm>
#include <chrono>
#include <thread>

#include "absl/status/status.h"
#include "base/hash.h"
#include "base/status.h"
#include "server/store/blob_store.h"
#include "server/store/conformance.h"
#include "server/store/project_name.h"

namespace mendel::server {
namespace {

v1::Model ModelOf(int number) {
  v1::Model model;
  model.set_name(number == 0 ? "models/m" : Cat("models/", number));
  v1::ModelFile* file = model.add_files();
  file->set_path("model.onnx");
  file->mutable_digest()->set_sha256(Sha256Hex(Cat("model ", number)));
  file->mutable_digest()->set_size_bytes(3);
  return model;
}

TEST_P(JobStoreConformance, ModelsAreStoredOnce) {
  const auto first = store_->PutModel(ModelOf(1));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_TRUE(first->has_create_time());
  clock_.Advance(5'000'000);
  EXPECT_EQ(store_->PutModel(ModelOf(1))->SerializeAsString(), first->SerializeAsString())
      << "what exists is returned";
  EXPECT_EQ(store_->GetModel("models/1")->SerializeAsString(), first->SerializeAsString());
  for (int i = 2; i < 6; ++i) ASSERT_TRUE(store_->PutModel(ModelOf(i)).ok());
  const auto page = store_->ListModels("", 2, "");
  ASSERT_EQ(page->items.size(), 2U);
  EXPECT_EQ(page->items[0].name(), "models/5");
  const auto rest = store_->ListModels("", 10, page->next_token);
  EXPECT_EQ(rest->items.size(), 3U);
  EXPECT_EQ(rest->next_token, "");
  EXPECT_EQ(store_->GetModel("models/9").status().code(), absl::StatusCode::kNotFound);
}

TEST_P(JobStoreConformance, ModelsInUseAreNotDeleted) {
  ASSERT_TRUE(store_->PutModel(ModelOf(0)).ok());
  const StoredJob job = Submit();
  EXPECT_EQ(store_->DeleteModel("models/m").code(), absl::StatusCode::kFailedPrecondition);
  Claim();
  EXPECT_EQ(store_->DeleteModel("models/m").code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(
      store_->Finish(job.job.name(), store_->GetJob(job.job.name())->fence, Succeeded(1)).ok());
  EXPECT_TRUE(store_->DeleteModel("models/m").ok());
  EXPECT_EQ(store_->DeleteModel("models/m").code(), absl::StatusCode::kNotFound);
}

TEST_P(JobStoreConformance, PlansAreListedByModelAndRememberedByWork) {
  for (uint64_t i = 0; i < 3; ++i) {
    const StoredJob job = Submit();
    Outcome outcome = Succeeded(i);
    outcome.plan = PlanOf(i, i == 2 ? "models/other" : "models/m");
    ASSERT_TRUE(store_->Finish(job.job.name(), Claim().fence, outcome).ok());
  }
  const auto page = store_->ListPlans("", "models/m", 1, "");
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(page->items.front().name(), PlanOf(1).name());
  EXPECT_EQ(store_->ListPlans("", "models/m", 1, page->next_token)->items.front().name(),
            PlanOf(0).name());
  EXPECT_EQ(store_->ListPlans("", "", 10, "")->items.size(), 3U);
  EXPECT_EQ(store_->ListPlans("", "", 10, page->next_token).status().code(),
            absl::StatusCode::kInvalidArgument);

  EXPECT_FALSE(store_->FindPlan("work")->has_value());
  EXPECT_EQ(store_->RememberPlan("work", "plans/none").code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(store_->RememberPlan("work", PlanOf(0).name()).ok());
  ASSERT_TRUE(store_->RememberPlan("work", PlanOf(1).name()).ok());
  ASSERT_TRUE(store_->FindPlan("work")->has_value());
  EXPECT_EQ((**store_->FindPlan("work")).name(), PlanOf(1).name());
  ASSERT_TRUE(store_->DeletePlan(PlanOf(1).name()).ok());
  EXPECT_FALSE(store_->FindPlan("work")->has_value()) << "forgotten with its plan";
  EXPECT_EQ(store_->DeletePlan(PlanOf(1).name()).code(), absl::StatusCode::kNotFound);
}

TEST_P(JobStoreConformance, ReferencedBlobsAreThoseOfModelsPlansAndBundles) {
  EXPECT_TRUE(store_->ReferencedBlobs()->empty());
  ASSERT_TRUE(store_->PutModel(ModelOf(1)).ok());
  const StoredJob job = Submit();
  Outcome outcome = Succeeded(7);
  outcome.bundle = Cat("blobs/", std::string(64, 'c'), "/5");
  ASSERT_TRUE(store_->Finish(job.job.name(), Claim().fence, outcome).ok());
  std::vector<std::string> expected = {Sha256Hex("model 1"), Sha256Hex("plan 7"),
                                       std::string(64, 'c')};
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(store_->ReferencedBlobs().value_or(std::vector<std::string>{}), expected);
}

TEST_P(JobStoreConformance, ChangesOfThisProcessAreNoticed) {
  const uint64_t seen = store_->WaitForChange(0, 0);
  EXPECT_NE(seen, 0U);
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    Submit();
  });
  EXPECT_NE(store_->WaitForChange(seen, 60'000'000), seen);
  other.join();
}

TEST_P(JobStoreConformance, UploadsCountOnceUntilTheirFilesAreGone) {
  const std::string a = Sha256Hex(std::string_view("a")), b = Sha256Hex(std::string_view("b"));
  EXPECT_TRUE(store_->ChargeUpload("alice", a, 60, 100).ok());
  EXPECT_TRUE(store_->ChargeUpload("alice", a, 60, 100).ok()) << "a resumed upload counts once";
  const absl::Status full = store_->ChargeUpload("alice", b, 41, 100);
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(full.GetPayload(kQuotaFull).has_value());
  EXPECT_TRUE(store_->ChargeUpload("bob", b, 41, 100).ok()) << "another's quota";
  EXPECT_TRUE(store_->ForgetUploadsBefore(clock_.WallMicros() + 1, {a, b}).ok());
  EXPECT_FALSE(store_->ChargeUpload("alice", b, 41, 100).ok()) << "the file is still there";
  EXPECT_TRUE(store_->ForgetUploadsBefore(clock_.WallMicros(), {}).ok());
  EXPECT_FALSE(store_->ChargeUpload("alice", b, 41, 100).ok()) << "the upload is too young";
  EXPECT_TRUE(store_->ForgetUploadsBefore(clock_.WallMicros() + 1, {b}).ok());
  EXPECT_TRUE(store_->ChargeUpload("alice", b, 100, 100).ok());
  EXPECT_TRUE(store_->ForgetUpload("alice", b).ok());
  EXPECT_TRUE(store_->ChargeUpload("alice", a, 100, 100).ok());
}

TEST_P(JobStoreConformance, UploadsAtOnceStayWithinTheQuota) {
  std::atomic<int> charged = 0;
  InThreads(8, [&](int i) {
    if (store_->ChargeUpload("alice", Sha256Hex(Cat("file ", i)), 30, 100).ok()) ++charged;
  });
  EXPECT_EQ(charged, 3);
}

v1::JobSpec SpecIn(const std::string& project) {
  v1::JobSpec spec = SpecOf(1);
  spec.mutable_optimize()->set_model(JoinName(project, "models/m"));
  return spec;
}

/// Ends the next job with a plan of its own project.
std::string FinishNext(JobStore& store, int64_t until, const std::string& work_key) {
  const auto job = store.Claim("worker", until, {});
  if (!job.ok() || !job->has_value()) return "";
  const std::string project = ProjectOf((*job)->job.name());
  Outcome outcome = Succeeded(1);
  outcome.plan->set_name(JoinName(project, outcome.plan->name()));
  outcome.plan->set_blob(JoinName(project, outcome.plan->blob()));
  outcome.plan->set_model((*job)->job.spec().optimize().model());
  outcome.work_key = work_key;
  EXPECT_TRUE(store.Finish((*job)->job.name(), (*job)->fence, outcome).ok());
  return outcome.plan->name();
}

TEST_P(JobStoreConformance, ProjectsShareNothing) {
  for (const char* project : {"", "a", "b"}) {
    v1::Model model = ModelOf(0);
    model.set_name(JoinName(project, model.name()));
    ASSERT_TRUE(store_->PutModel(model).ok());
    const auto job = store_->Submit(SpecIn(project), "alice", "same id", 0, {});
    ASSERT_TRUE(job.ok()) << job.status();
    EXPECT_EQ(ProjectOf(job->job.name()), project);
    EXPECT_EQ(FinishNext(*store_, clock_.WallMicros() + 60'000'000, Cat("work ", project)),
              JoinName(project, PlanOf(1).name()));
    EXPECT_EQ(*store_->RememberRequest("alice", "answered", SpecIn(project), job->job.name()),
              job->job.name());
    EXPECT_EQ(**store_->FindRequest("alice", "same id", SpecIn(project)), job->job.name());
    EXPECT_EQ(**store_->FindRequest("alice", "answered", SpecIn(project)), job->job.name());
  }
  for (const char* project : {"", "a", "b", "none"}) {
    const size_t count = std::string(project) == "none" ? 0 : 1;
    EXPECT_EQ(store_->ListModels(project, 10, "")->items.size(), count) << project;
    EXPECT_EQ(store_->ListPlans(project, "", 10, "")->items.size(), count) << project;
    EXPECT_EQ(
        store_->ListJobs({.states = {}, .client = "", .project = project}, 10, "")->items.size(),
        count)
        << project;
  }
  EXPECT_EQ(store_->ListModels(std::nullopt, 10, "")->items.size(), 3U);
  EXPECT_EQ(store_->ListPlans(std::nullopt, "", 10, "")->items.size(), 3U);
  EXPECT_EQ(store_->ListJobs({}, 10, "")->items.size(), 3U);
  EXPECT_EQ(store_->FindPlan("work a")->value().name(), JoinName("a", PlanOf(1).name()));
  const std::string digest = Sha256Hex("plan 1");
  const std::vector<std::string> keys = *store_->ReferencedBlobs();
  for (const char* project : {"", "a", "b"})
    EXPECT_EQ(std::count(keys.begin(), keys.end(), BlobKey({digest, 7, project})), 1) << project;
  EXPECT_TRUE(store_->DeletePlan(JoinName("a", PlanOf(1).name())).ok());
  EXPECT_TRUE(store_->GetPlan(JoinName("b", PlanOf(1).name())).ok());
}

TEST_P(JobStoreConformance, AJobHasOneProject) {
  v1::JobSpec spec;
  spec.mutable_compare_pair()->set_model_a("models/m");
  spec.mutable_compare_pair()->set_model_b("projects/a/models/m");
  EXPECT_EQ(store_->Submit(spec, "alice", "", 0, {}).status().code(),
            absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(store_->Submit(SpecIn("a"), "alice", "", 0, {}).ok());
  const auto job = store_->Claim("worker", clock_.WallMicros() + 60'000'000, {});
  EXPECT_EQ(store_->Finish((*job)->job.name(), (*job)->fence, Succeeded(1)).code(),
            absl::StatusCode::kInternal)
      << "a plan of another project";
}

TEST_P(JobStoreConformance, WaitingEndsWithoutAChange) {
  uint64_t seen = store_->WaitForChange(0, 0);
  // A store may wake without need, but not for ever.
  for (int i = 0; i < 50; ++i) {
    const uint64_t now = store_->WaitForChange(seen, 20'000);
    if (now == seen) return;
    seen = now;
  }
  ADD_FAILURE() << "a quiet store keeps changing";
}

TEST_P(JobStoreConformance, ChangesOfOtherProcessesAreNoticed) {
  store_.reset();
  const int child = InChild([&] {
    const auto store = backend_->Open(clock_);
    if (!store.ok()) return 1;
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    return (*store)->Submit(SpecOf(1), "child", "", 0, {}).ok() ? 0 : 2;
  });
  store_ = *backend_->Open(clock_);
  uint64_t seen = store_->WaitForChange(0, 0);
  bool found = false;
  for (int i = 0; i < 60 && !found; ++i) {
    seen = store_->WaitForChange(seen, 1'000'000);
    const auto page = store_->ListJobs({.states = {}, .client = "child"}, 1, "");
    found = page.ok() && !page->items.empty();
  }
  EXPECT_TRUE(found);
  EXPECT_EQ(WaitForChild(child), 0);
}

}  // namespace
}  // namespace mendel::server
