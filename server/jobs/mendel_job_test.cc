// The real `mendel` as a worker: every kind of job, and a search that survives kill -9 of the
// server and a drain.
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/status.h"
#include "runtime/plan.h"
#include "server/jobs/job_test_support.h"

namespace mendel::server {
namespace {

/// A lease that outlives a machine's pauses, for a server that is not killed.
constexpr int64_t kLongLeaseMicros = 15'000'000;
/// A lease that soon expires, for a server that is killed.
constexpr int64_t kShortLeaseMicros = 1'000'000;

RunnerOptions Options(const JobWorld& world, int64_t lease_micros = kLongLeaseMicros) {
  RunnerOptions options;
  options.executable = MENDEL_BINARY;
  options.work_folder = world.folder() + "/work";
  options.lease_micros = lease_micros;
  options.max_attempts = 10;
  options.max_memory_bytes = int64_t{4} << 30;
  return options;
}

std::unique_ptr<JobRunner> Start(JobWorld& world, const RunnerOptions& options) {
  auto runner = StartJobRunner(options, world.jobs(), world.blobs(), SystemClock());
  EXPECT_TRUE(runner.ok()) << runner.status();
  return runner.ok() ? *std::move(runner) : nullptr;
}

std::string ExampleModel(JobWorld& world) {
  std::ifstream file(MENDEL_EXAMPLE, std::ios::binary);
  return world.AddModel("squeezenet.onnx", {std::istreambuf_iterator<char>(file), {}});
}

v1::JobSpec SmallSearch(const std::string& model) {
  v1::JobSpec spec = OptimizeJob(model);
  v1::OptimizeSpec& work = *spec.mutable_optimize();
  work.set_threads(1);
  work.mutable_budget()->set_candidates(2);
  work.mutable_budget()->mutable_time()->set_seconds(600);
  return spec;
}

/// Hash of everything in a job's plan but its certificate.
std::string ContentOf(JobWorld& world, const v1::Job& job) {
  const auto plan = world.jobs().GetPlan(job.plan());
  if (!plan.ok()) return "";
  const auto path = world.blobs().Path(*ParseBlobName(plan->blob()));
  const auto header = path.ok() ? ReadPlanHeader(*path) : path.status();
  EXPECT_TRUE(header.ok()) << header.status();
  return header.ok() ? header->content_hash : "";
}

/// A server to be killed: this executable, running the test below.
pid_t StartServer(const std::string& folder) {
  setenv("MENDEL_JOB_WORLD", folder.c_str(), 1);
  const std::string program = std::filesystem::canonical("/proc/self/exe");
  std::string name = program;
  std::string filter = "--gtest_filter=Server.DISABLED_RunsJobsUntilItIsKilled";
  std::string disabled = "--gtest_also_run_disabled_tests";
  char* words[] = {name.data(), filter.data(), disabled.data(), nullptr};
  pid_t pid = -1;
  EXPECT_EQ(posix_spawn(&pid, program.c_str(), nullptr, nullptr, words, environ), 0);
  return pid;
}

TEST(Server, DISABLED_RunsJobsUntilItIsKilled) {
  const char* folder = std::getenv("MENDEL_JOB_WORLD");
  ASSERT_NE(folder, nullptr);
  JobWorld world{std::string(folder)};
  const auto runner = Start(world, Options(world, kShortLeaseMicros));
  while (runner != nullptr) pause();
}

TEST(MendelJobs, ASearchThatWasKilledAndDrainedEndsWithTheUndisturbedPlan) {
  JobWorld world;
  const std::string model = ExampleModel(world);
  const std::string job = world.Submit(SmallSearch(model));
  const pid_t server = StartServer(world.folder());
  world.AwaitPhase(job, "search");
  ASSERT_EQ(kill(server, SIGKILL), 0);
  waitpid(server, nullptr, 0);
  // The killed server may itself have begun twice: its lease is short.
  const int begun = world.Get(job).attempts();
  const std::string kept = world.folder() + "/work/" + job + "/cache/profiles.sqlite";
  EXPECT_TRUE(std::filesystem::exists(kept)) << "no journal to go on from";
  {
    const auto drained = Start(world, Options(world));
    ASSERT_NE(drained, nullptr);
    while (world.Get(job).attempts() <= begun || world.Get(job).state() != v1::JOB_STATE_RUNNING)
      usleep(10'000);
    world.AwaitPhase(job, "search");
    drained->Drain(60'000'000);
    EXPECT_EQ(world.Get(job).state(), v1::JOB_STATE_PENDING)
        << "leases lost: " << drained->Stats().lost << "\n"
        << world.Get(job).DebugString();
    EXPECT_TRUE(std::filesystem::exists(kept));
  }
  v1::Job ended;
  {
    const auto runner = Start(world, Options(world));
    ended = world.Await(job);
    ASSERT_EQ(ended.state(), v1::JOB_STATE_SUCCEEDED) << ended.DebugString();
    EXPECT_GT(ended.attempts(), begun);
  }
  EXPECT_FALSE(std::filesystem::exists(kept));

  JobWorld undisturbed;
  RunnerOptions options = Options(undisturbed);
  options.cache = world.folder() + "/work/profiles.sqlite";
  const auto runner = Start(undisturbed, options);
  const v1::Job other =
      undisturbed.Await(undisturbed.Submit(SmallSearch(ExampleModel(undisturbed))));
  ASSERT_EQ(other.state(), v1::JOB_STATE_SUCCEEDED) << other.DebugString();
  EXPECT_EQ(other.attempts(), 1);
  EXPECT_EQ(ContentOf(undisturbed, other), ContentOf(world, ended));
  EXPECT_NE(ContentOf(world, ended), "");
}

TEST(MendelJobs, EveryKindOfWork) {
  JobWorld world;
  const auto runner = Start(world, Options(world));
  ASSERT_NE(runner, nullptr);
  const std::string model = ExampleModel(world);
  v1::JobSpec search = SmallSearch(model);
  search.mutable_optimize()->mutable_budget()->set_candidates(1);
  const v1::Job optimized = world.Await(world.Submit(search));
  ASSERT_EQ(optimized.state(), v1::JOB_STATE_SUCCEEDED) << optimized.DebugString();
  const auto plan = world.jobs().GetPlan(optimized.plan());
  ASSERT_TRUE(plan.ok());
  EXPECT_LE(plan->bound_log2(), -80);
  EXPECT_EQ(plan->weights(), "symbolic");
  EXPECT_GT(plan->baseline_ms(), 0);

  v1::JobSpec verify;
  verify.mutable_verify_plan()->set_plan(plan->name());
  verify.mutable_verify_plan()->set_model(model);
  const v1::Job verified = world.Await(world.Submit(verify));
  EXPECT_EQ(verified.verdict().kind(), v1::Verdict::KIND_EQUIVALENT) << verified.DebugString();

  v1::JobSpec rebind;
  rebind.mutable_refit_plan()->set_plan(plan->name());
  rebind.mutable_refit_plan()->set_model(model);
  const v1::Job rebound = world.Await(world.Submit(rebind));
  EXPECT_EQ(rebound.state(), v1::JOB_STATE_SUCCEEDED) << rebound.DebugString();
  EXPECT_LE(world.jobs().GetPlan(rebound.plan())->bound_log2(), -80);

  v1::JobSpec compare;
  compare.mutable_compare_pair()->set_model_a(model);
  compare.mutable_compare_pair()->set_model_b(model);
  EXPECT_EQ(world.Await(world.Submit(compare)).verdict().kind(), v1::Verdict::KIND_EQUIVALENT);

  const v1::Job bad =
      world.Await(world.Submit(OptimizeJob(world.AddModel("bad.onnx", "this is no model"))));
  EXPECT_EQ(ReasonOf(bad), "INVALID_INPUT") << bad.DebugString();
  EXPECT_EQ(bad.error().message().find(world.folder()), std::string::npos) << bad.error().message();
}

TEST(MendelJobs, AnUnmeasuredPlanIsReboundWithoutItsDevice) {
  JobWorld world;
  RunnerOptions options = Options(world);
  options.devices = {{"cpu", "", ""}, {"cuda:sm_90", "", "sm_90", true}};
  const auto runner = Start(world, options);
  ASSERT_NE(runner, nullptr);
  const std::string model = ExampleModel(world);
  v1::JobSpec search = SmallSearch(model);
  search.mutable_optimize()->set_device("cuda:sm_90");
  search.mutable_optimize()->mutable_budget()->set_candidates(1);
  const v1::Job optimized = world.Await(world.Submit(search));
  ASSERT_EQ(optimized.state(), v1::JOB_STATE_SUCCEEDED) << optimized.DebugString();
  EXPECT_TRUE(world.jobs().GetPlan(optimized.plan())->unmeasured());
  v1::JobSpec rebind;
  rebind.mutable_refit_plan()->set_plan(optimized.plan());
  rebind.mutable_refit_plan()->set_model(model);
  const v1::Job rebound = world.Await(world.Submit(rebind));
  ASSERT_EQ(rebound.state(), v1::JOB_STATE_SUCCEEDED) << rebound.DebugString();
  const auto plan = world.jobs().GetPlan(rebound.plan());
  EXPECT_TRUE(plan->unmeasured());
  EXPECT_EQ(plan->device(), "cuda");
  EXPECT_EQ(plan->isa(), "sm_90");
  EXPECT_LE(plan->bound_log2(), -80);
}

}  // namespace
}  // namespace mendel::server
