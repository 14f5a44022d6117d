#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/hash.h"
#include "base/status.h"
#include "server/store/blob_store.h"
#include "server/store/conformance.h"

namespace mendel::server {

TestFolder::TestFolder() {
  const bool in_memory = access("/dev/shm", W_OK) == 0;
  std::string pattern =
      Cat(in_memory ? std::string("/dev/shm/") : testing::TempDir(), "mendel_store_XXXXXX");
  const char* made = mkdtemp(pattern.data());
  EXPECT_NE(made, nullptr) << pattern;
  path_ = pattern;
}

TestFolder::~TestFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void JobStoreConformance::SetUp() {
  backend_ = GetParam().make();
  if (backend_ == nullptr) GTEST_SKIP();
  absl::StatusOr<std::unique_ptr<JobStore>> store = backend_->Open(clock_);
  ASSERT_TRUE(store.ok()) << store.status();
  store_ = *std::move(store);
}

void JobStoreConformance::TearDown() {
  if (backend_ == nullptr) return;
  if (store_ == nullptr) {
    absl::StatusOr<std::unique_ptr<JobStore>> store = backend_->Open(clock_);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }
  // Whatever a test did, the store is consistent afterwards.
  const auto violations = store_->Check();
  ASSERT_TRUE(violations.ok()) << violations.status();
  EXPECT_EQ(*violations, std::vector<std::string>());
}

StoredJob JobStoreConformance::Submit(const std::string& client, int32_t priority,
                                      const std::string& request_id) {
  const auto job = store_->Submit(SpecOf(1), client, request_id, priority, {});
  EXPECT_TRUE(job.ok()) << job.status();
  return job.value_or(StoredJob{});
}

StoredJob JobStoreConformance::Claim(const std::string& owner) {
  const auto job = store_->Claim(owner, clock_.WallMicros() + 60'000'000, {});
  EXPECT_TRUE(job.ok()) << job.status();
  EXPECT_TRUE(job.ok() && job->has_value()) << "nothing to claim";
  return job.ok() ? job->value_or(StoredJob{}) : StoredJob{};
}

v1::JobState JobStoreConformance::StateOf(const std::string& name) {
  const auto job = store_->GetJob(name);
  EXPECT_TRUE(job.ok()) << job.status();
  return job.ok() ? job->job.state() : v1::JOB_STATE_UNSPECIFIED;
}

v1::JobSpec SpecOf(uint64_t seed) {
  v1::JobSpec spec;
  spec.mutable_optimize()->set_model("models/m");
  spec.mutable_optimize()->set_seed(seed);
  return spec;
}

v1::Plan PlanOf(uint64_t seed, const std::string& model) {
  v1::Plan plan;
  const std::string digest = Sha256Hex(Cat("plan ", seed));
  plan.set_name("plans/" + digest);
  plan.set_blob(BlobName({digest, 7}));
  plan.set_size_bytes(7);
  plan.set_model(model);
  return plan;
}

Outcome Succeeded(uint64_t plan_seed) {
  Outcome outcome;
  outcome.state = v1::JOB_STATE_SUCCEEDED;
  outcome.plan = PlanOf(plan_seed);
  return outcome;
}

std::vector<std::string> NamesOf(const std::vector<StoredJob>& jobs) {
  std::vector<std::string> names;
  names.reserve(jobs.size());
  for (const StoredJob& job : jobs) names.push_back(job.job.name());
  return names;
}

void InThreads(int count, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) threads.emplace_back(body, i);
  for (std::thread& thread : threads) thread.join();
}

int InChild(const std::function<int()>& body) {
  const pid_t pid = fork();
  if (pid == 0) _exit(body());
  EXPECT_GT(pid, 0);
  return pid;
}

int WaitForChild(int pid) {
  int status = 0;
  if (waitpid(pid, &status, 0) != pid) return -1000;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace mendel::server
