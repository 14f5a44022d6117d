// Jobs whose workers misbehave (fake_worker.cc), in both sandboxes: each ends as documented, and
// the others continue.
#include "server/jobs/job_runner.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>
#include <vector>

#include "base/status.h"
#include "server/jobs/job_test_support.h"

namespace mendel::server {
namespace {

struct Expected {
  v1::JobState state;
  std::string reason;
  absl::StatusCode code = absl::StatusCode::kOk;
  bool bundle = false;
};

class Runners : public testing::TestWithParam<const char*> {
 protected:
  RunnerOptions Options() const {
    RunnerOptions options;
    options.executable = MENDEL_FAKE_WORKER;
    options.work_folder = world_.folder() + "/work";
    options.sandbox = GetParam();
    options.lease_micros = 5'000'000;
    options.concurrent_jobs = 3;
    options.max_memory_bytes = 128 << 20;
    options.max_output_bytes = 16 << 20;
    options.max_answer_bytes = 4 << 20;
    options.cancel_grace_micros = 10'000'000;
    options.version = "test";
    return options;
  }
  /// Skips the test where this machine lacks the sandbox.
  std::unique_ptr<JobRunner> Start(const RunnerOptions& options) {
    auto runner = StartJobRunner(options, world_.jobs(), world_.blobs(), SystemClock());
    if (runner.ok()) return *std::move(runner);
    no_sandbox_ = std::string(runner.status().message());
    return nullptr;
  }

  mutable JobWorld world_;
  std::string no_sandbox_;
};

TEST_P(Runners, EveryMisbehaviorFailsItsJobAlone) {
  RunnerOptions options = Options();
  options.max_wall_seconds = 20;
  const auto runner = Start(options);
  if (runner == nullptr) GTEST_SKIP() << no_sandbox_;
  const auto failed = v1::JOB_STATE_FAILED;
  using Code = absl::StatusCode;
  const std::map<std::string, Expected> expected = {
      {"good", {v1::JOB_STATE_SUCCEEDED, ""}},
      {"crash", {failed, "WORKER_CRASHED", Code::kInternal, true}},
      {"abort", {failed, "WORKER_CRASHED", Code::kInternal, true}},
      {"allocate", {failed, "WORKER_OUT_OF_MEMORY", Code::kResourceExhausted, true}},
      {"share", {failed, "WORKER_OUT_OF_MEMORY", Code::kResourceExhausted, true}},
      {"flood_answer", {failed, "WORKER_OUTPUT", Code::kResourceExhausted, true}},
      {"flood_log", {failed, "WORKER_OUTPUT", Code::kResourceExhausted, true}},
      {"flood_progress", {failed, "WORKER_OUTPUT", Code::kResourceExhausted, true}},
      {"flood_line", {failed, "WORKER_OUTPUT", Code::kResourceExhausted, true}},
      {"fill", {failed, "WORKER_OUTPUT", Code::kResourceExhausted, true}},
      {"large_file", {failed, "WORKER_OUTPUT", Code::kResourceExhausted, true}},
      {"link", {failed, "WORKER_INTERNAL", Code::kInternal, true}},
      {"garbage", {failed, "WORKER_INTERNAL", Code::kInternal, true}},
      {"silent", {failed, "WORKER_INTERNAL", Code::kInternal, true}},
      {"internal", {failed, "WORKER_INTERNAL", Code::kInternal, true}},
      {"code_9", {failed, "WORKER_INTERNAL", Code::kInternal, true}},
      {"bad_input", {failed, "INVALID_INPUT", Code::kInvalidArgument}},
      {"undecided", {failed, "UNDECIDED", Code::kAborted}},
      {"disk", {failed, "INPUT_OUTPUT", Code::kUnavailable}},
  };
  std::map<std::string, std::string> names;
  for (const auto& [behavior, outcome] : expected) names[behavior] = world_.SubmitFake(behavior);
  for (const auto& [behavior, outcome] : expected) {
    SCOPED_TRACE(behavior);
    const v1::Job job = world_.Await(names[behavior]);
    EXPECT_EQ(job.state(), outcome.state) << job.DebugString();
    EXPECT_EQ(ReasonOf(job), outcome.reason);
    EXPECT_EQ(job.error().code(), static_cast<int>(outcome.code));
    EXPECT_EQ(!job.bundle().empty(), outcome.bundle) << job.bundle();
    EXPECT_EQ(job.error().message().find(world_.folder()), std::string::npos)
        << job.error().message();
    EXPECT_EQ(job.attempts(), behavior == "disk" ? options.max_attempts : 1);
    if (behavior == "code_9") {
      EXPECT_EQ(job.error().message(),
                "the worker ended with code 9; it said: bwrap: cannot start");
    }
    if (!outcome.bundle) continue;
    const std::string bundle = world_.BlobBytes(job.bundle());
    EXPECT_NE(bundle.find("report.txt"), std::string::npos);
    EXPECT_NE(bundle.find(job.name()), std::string::npos);
    EXPECT_EQ(bundle.find(world_.folder()), std::string::npos);
  }
  runner->Drain(20'000'000);
  EXPECT_EQ(runner->Stats().failed, 18);
  EXPECT_EQ(runner->Stats().succeeded, 1);
  for (const auto& left :
       std::filesystem::recursive_directory_iterator(world_.folder() + "/work/jobs")) {
    ADD_FAILURE() << "left behind: " << left.path();
  }
}

TEST_P(Runners, WorkersReachNothingButTheirFolder) {
  setenv("MENDEL_TEST_SECRET", "1", 1);
  const std::string secret = world_.folder() + "/secret";
  std::ofstream(secret) << "secret";
  const auto runner = Start(Options());
  if (runner == nullptr) GTEST_SKIP() << no_sandbox_;
  if (runner->Stats().sandbox == "rlimits+seccomp") GTEST_SKIP() << "this kernel has no Landlock";
  const v1::Job job = world_.Await(world_.SubmitFake("escape", secret));
  EXPECT_EQ(job.state(), v1::JOB_STATE_SUCCEEDED) << job.error().message();
}

TEST_P(Runners, PlansVerdictsAndProgressAreReported) {
  const auto runner = Start(Options());
  if (runner == nullptr) GTEST_SKIP() << no_sandbox_;
  const v1::Job good = world_.Await(world_.SubmitFake("good"));
  const auto plan = world_.jobs().GetPlan(good.plan());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(world_.BlobBytes(plan->blob()), "a plan, stopped: saturated");
  EXPECT_EQ(plan->speedup(), 1.5);
  EXPECT_EQ(plan->bound_log2(), -100.5);
  EXPECT_EQ(plan->weights(), "symbolic");
  EXPECT_EQ(plan->threads(), 2);
  EXPECT_EQ(plan->mutants().at("conv_merge"), 2);
  EXPECT_EQ(plan->job(), good.name());
  bool warned = false;
  const auto events = world_.jobs().Events(good.name(), 0, 1000);
  ASSERT_TRUE(events.ok());
  for (const v1::JobEvent& event : *events) warned = warned || event.warning() == "a warning";
  EXPECT_TRUE(warned);

  v1::JobSpec compare;
  compare.mutable_compare_pair()->set_model_a(world_.AddModel("different", "a"));
  compare.mutable_compare_pair()->set_model_b(world_.AddModel("b", "b"));
  const v1::Job answer = world_.Await(world_.Submit(compare));
  EXPECT_EQ(answer.state(), v1::JOB_STATE_SUCCEEDED) << answer.DebugString();
  EXPECT_EQ(answer.verdict().kind(), v1::Verdict::KIND_DIFFERENT);
  ASSERT_EQ(answer.verdict().outputs_size(), 1);
  EXPECT_EQ(answer.verdict().outputs(0).boxes(0).end(1), 2);
}

TEST_P(Runners, AWorkerThatIsKilledFromOutsideIsStartedAgain) {
  RunnerOptions options = Options();
  options.max_attempts = 3;
  const auto runner = Start(options);
  if (runner == nullptr) GTEST_SKIP() << no_sandbox_;
  const v1::Job job = world_.Await(world_.SubmitFake("killed"));
  EXPECT_EQ(job.state(), v1::JOB_STATE_FAILED) << job.DebugString();
  EXPECT_EQ(ReasonOf(job), "WORKER_KILLED");
  EXPECT_EQ(job.error().code(), static_cast<int>(absl::StatusCode::kUnavailable));
  EXPECT_THAT(job.error().message(), ::testing::HasSubstr("attempt 3: the worker was killed"));
  EXPECT_THAT(job.error().message(), ::testing::HasSubstr("signal 9"));
  EXPECT_EQ(job.attempts(), 3);
  EXPECT_FALSE(job.bundle().empty());
  EXPECT_EQ(runner->Stats().retried, 2);
  int warnings = 0;
  const auto events = world_.jobs().Events(job.name(), 0, 100);
  ASSERT_TRUE(events.ok());
  for (const v1::JobEvent& event : *events) warnings += event.warning().empty() ? 0 : 1;
  EXPECT_EQ(warnings, 2) << "its owner reads of each";
}

TEST_P(Runners, AJobWaitsForRoomOnAFullDisk) {
  std::atomic<int> asked = 0;
  std::atomic<int64_t> room = 0;
  RunnerOptions options = Options();
  options.max_attempts = 2;
  options.free_bytes = [&](const std::string&) {
    ++asked;
    return room.load();
  };
  const auto runner = Start(options);
  if (runner == nullptr) GTEST_SKIP() << no_sandbox_;
  const std::string name = world_.SubmitFake("disk");
  while (asked < 3) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(world_.Get(name).state(), v1::JOB_STATE_RUNNING);
  room = int64_t{1} << 40;
  const v1::Job job = world_.Await(name);
  EXPECT_EQ(job.state(), v1::JOB_STATE_FAILED) << "by its own fault, twice";
  EXPECT_EQ(job.attempts(), 2) << "the one on the full disk does not count";
  EXPECT_EQ(runner->Stats().retried, 2);
}

TEST_P(Runners, AJobThatWaitsForRoomCanBeCancelled) {
  std::atomic<int> asked = 0;
  RunnerOptions options = Options();
  options.free_bytes = [&](const std::string&) { return ++asked, int64_t{0}; };
  const auto runner = Start(options);
  if (runner == nullptr) GTEST_SKIP() << no_sandbox_;
  const std::string name = world_.SubmitFake("disk");
  while (asked < 3) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ASSERT_TRUE(world_.jobs().CancelJob(name).ok());
  EXPECT_EQ(world_.Await(name).state(), v1::JOB_STATE_CANCELLED);
}

TEST_P(Runners, CancelledJobsKeepTheirBestSoFarAndHungOnesAreKilled) {
  RunnerOptions options = Options();
  options.cancel_grace_micros = 1'000'000;
  const auto runner = Start(options);
  if (runner == nullptr) GTEST_SKIP() << no_sandbox_;
  const std::string slow = world_.SubmitFake("slow");
  const std::string hung = world_.SubmitFake("hang");
  world_.AwaitPhase(slow, "search");
  while (world_.Get(hung).state() == v1::JOB_STATE_PENDING) continue;
  ASSERT_TRUE(world_.jobs().CancelJob(slow).ok());
  ASSERT_TRUE(world_.jobs().CancelJob(hung).ok());
  const v1::Job best = world_.Await(slow);
  EXPECT_EQ(best.state(), v1::JOB_STATE_SUCCEEDED) << best.DebugString();
  EXPECT_EQ(world_.jobs().GetPlan(best.plan())->stop_reason(), "interrupted");
  EXPECT_EQ(world_.Await(hung).state(), v1::JOB_STATE_CANCELLED);
}

TEST_P(Runners, AHungWorkerEndsWithItsWallTimeWhileOthersGoOn) {
  RunnerOptions options = Options();
  options.max_wall_seconds = 2;
  const auto runner = Start(options);
  if (runner == nullptr) GTEST_SKIP() << no_sandbox_;
  const std::string hung = world_.SubmitFake("hang");
  while (world_.Get(hung).state() == v1::JOB_STATE_PENDING) continue;
  EXPECT_EQ(world_.Await(world_.SubmitFake("good")).state(), v1::JOB_STATE_SUCCEEDED);
  const v1::Job job = world_.Await(hung);
  EXPECT_EQ(ReasonOf(job), "WORKER_TIMEOUT");
  EXPECT_EQ(job.error().code(), static_cast<int>(absl::StatusCode::kDeadlineExceeded));
}

TEST_P(Runners, ADrainedRunnersJobsGoBackToTheQueue) {
  const std::string slow = world_.SubmitFake("slow");
  {
    const auto runner = Start(Options());
    if (runner == nullptr) GTEST_SKIP() << no_sandbox_;
    world_.AwaitPhase(slow, "search");
    runner->Drain(20'000'000);
    EXPECT_EQ(world_.Get(slow).state(), v1::JOB_STATE_PENDING);
    EXPECT_EQ(runner->Stats().running, 0);
  }
  const auto next = Start(Options());
  world_.AwaitPhase(slow, "search");
  ASSERT_TRUE(world_.jobs().CancelJob(slow).ok());
  EXPECT_EQ(world_.Await(slow).state(), v1::JOB_STATE_SUCCEEDED);
}

TEST_P(Runners, ARunnerThatTakesNoMoreJobsFinishesTheRunningOne) {
  const std::string slow = world_.SubmitFake("slow");
  const auto runner = Start(Options());
  if (runner == nullptr) GTEST_SKIP() << no_sandbox_;
  world_.AwaitPhase(slow, "search");
  runner->StopClaiming();
  const std::string next = world_.SubmitFake("good");
  EXPECT_EQ(world_.Get(slow).state(), v1::JOB_STATE_RUNNING);
  EXPECT_FALSE(runner->Finished());
  ASSERT_TRUE(world_.jobs().CancelJob(slow).ok());
  EXPECT_EQ(world_.Await(slow).state(), v1::JOB_STATE_SUCCEEDED);
  while (!runner->Finished()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(world_.Get(next).state(), v1::JOB_STATE_PENDING);
}

TEST_P(Runners, APlanFoundOnceIsServedAgain) {
  const auto runner = Start(Options());
  if (runner == nullptr) GTEST_SKIP() << no_sandbox_;
  const v1::Job first = world_.Await(world_.SubmitFake("good"));
  const v1::Job second = world_.Await(world_.SubmitFake("good"));
  EXPECT_EQ(second.state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(second.plan(), first.plan());
  EXPECT_EQ(second.progress().phase(), "stored plan");
  v1::JobSpec other = OptimizeJob(world_.AddModel("good", "bytes of a model"));
  other.mutable_optimize()->set_seed(2);
  EXPECT_EQ(world_.Await(world_.Submit(other)).progress().phase(), "search");
}

/// A process like a bubblewrap whose parent was killed too early: it waits forever.
class Stray {
 public:
  explicit Stray(const std::string& folder) {
    EXPECT_EQ(pipe2(ends_.data(), O_CLOEXEC), 0);
    const std::string out = folder + "/out";
    pid_ = fork();
    if (pid_ == 0) {
      dup2(ends_[0], 0);
      execl("/bin/cat", "/usr/bin/bwrap", "-", out.c_str(), nullptr);
      _exit(127);
    }
    while (Name() != "/usr/bin/bwrap") std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ~Stray() {
    kill(pid_, SIGKILL);
    if (!ended_) waitpid(pid_, nullptr, 0);
    for (const int end : ends_) close(end);
  }
  Stray(const Stray&) = delete;
  Stray& operator=(const Stray&) = delete;

  bool Lives() {
    ended_ = ended_ || waitpid(pid_, nullptr, WNOHANG) == pid_;
    return !ended_;
  }

 private:
  std::string Name() const {
    std::ifstream file("/proc/" + std::to_string(pid_) + "/cmdline");
    std::string text;
    std::getline(file, text, '\0');
    return text;
  }

  std::array<int, 2> ends_{};
  pid_t pid_ = 0;
  bool ended_ = false;
};

TEST_P(Runners, WhatAnEarlierAttemptLeftIsEnded) {
  if (GetParam() != std::string("bubblewrap")) GTEST_SKIP() << "of bubblewrap alone";
  const std::string retried = world_.SubmitFake("good");
  const auto earlier = world_.jobs().Claim("earlier", SystemClock().WallMicros() + 60'000'000, {});
  ASSERT_TRUE(earlier.ok() && earlier->has_value());
  ASSERT_TRUE(world_.jobs().Release(retried, (*earlier)->fence, false).ok());
  v1::JobSpec spec = OptimizeJob(world_.AddModel("good", "bytes of a model"));
  spec.mutable_optimize()->set_seed(2);
  const std::string first = world_.Submit(spec);
  Stray of_retried(Options().work_folder + "/" + retried);
  Stray of_first(Options().work_folder + "/" + first);
  const auto runner = Start(Options());
  if (runner == nullptr) GTEST_SKIP() << no_sandbox_;
  EXPECT_EQ(world_.Await(retried).state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(world_.Await(first).state(), v1::JOB_STATE_SUCCEEDED);
  while (of_retried.Lives()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(of_first.Lives()) << "nobody looked: a first attempt has no predecessor";
}

TEST_P(Runners, WhatIsLeftOfAJobThatNobodyBeginsAgainIsEnded) {
  if (GetParam() != std::string("bubblewrap")) GTEST_SKIP() << "of bubblewrap alone";
  const std::string folder =
      Options().work_folder +
      "/jobs/probe-1";  // as a server that is killed while it starts leaves it
  std::filesystem::create_directories(folder);
  Stray of_probe(folder);
  const auto runner = Start(Options());
  if (runner == nullptr) GTEST_SKIP() << no_sandbox_;
  while (of_probe.Lives() || std::filesystem::exists(folder))
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST_P(Runners, AnAttemptWhoseLeaseIsGoneEnds) {
  const std::string slow = world_.SubmitFake("slow");
  const auto runner = Start(Options());
  if (runner == nullptr) GTEST_SKIP() << no_sandbox_;
  world_.AwaitPhase(slow, "search");
  // The lease is taken away, and the job goes to the queue.
  ASSERT_TRUE(world_.jobs().ExpireLeases(SystemClock().WallMicros() + 3'600'000'000, 10).ok());
  while (runner->Stats().lost == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(runner->Stats().refused, 0) << "it reported nothing";
  runner->Drain(20'000'000);
  EXPECT_EQ(world_.Get(slow).state(), v1::JOB_STATE_PENDING);
}

TEST_P(Runners, AJobWhoseModelIsGoneFails) {
  const std::string job = world_.Submit(OptimizeJob("models/" + std::string(64, 'a')));
  const auto runner = Start(Options());
  if (runner == nullptr) GTEST_SKIP() << no_sandbox_;
  EXPECT_EQ(ReasonOf(world_.Await(job)), "MISSING");
}

INSTANTIATE_TEST_SUITE_P(Sandboxes, Runners, testing::Values("bubblewrap", "rlimits"),
                         [](const auto& test) { return test.param; });

TEST(StartJobRunner, RefusesWhatCannotWork) {
  JobWorld world;
  const auto start = [&](const std::string& executable, const std::string& sandbox,
                         const std::string& folder) {
    RunnerOptions options;
    options.executable = executable;
    options.sandbox = sandbox;
    options.work_folder = folder;
    return StartJobRunner(options, world.jobs(), world.blobs(), SystemClock()).status();
  };
  EXPECT_EQ(start("/not/there", "rlimits", world.folder() + "/work").code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(start(MENDEL_FAKE_WORKER, "castle", world.folder() + "/work").code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(start(MENDEL_FAKE_WORKER, "rlimits", "").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(start(MENDEL_FAKE_WORKER, "rlimits", "/dev/null/work").code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(start("/usr/bin/false", "rlimits", world.folder() + "/work").code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace mendel::server
