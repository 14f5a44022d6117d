#include "kernels/cuda/testing/guarded_cases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>

namespace mendel::cuda {
namespace {

using testing::HasSubstr;

/// The number of runs of each case, over all processes.
struct Counts {
  std::atomic<int> runs[8];
};

class Guarded : public testing::Test {
 protected:
  Guarded()
      : counts_(new (mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Counts{}) {}
  ~Guarded() override { munmap(counts_, sizeof(Counts)); }

  /// Runs five cases. The third one calls `third`; the output is kept.
  absl::StatusOr<int> RunFive(const GuardLimits& limits,
                              const std::function<absl::StatusOr<std::string>()>& third) {
    GuardedCases cases(limits);
    testing::internal::CaptureStdout();
    auto failures = cases.Run([&] {
      size_t done = 0;
      for (; done < 5 && cases.GoesOn(); ++done) {
        cases.Case("case " + std::to_string(done), [&, done]() -> absl::StatusOr<std::string> {
          ++counts_->runs[done];
          return done == 2 ? third() : "";
        });
      }
      cases.EndPart("five", done, 5);
    });
    printed_ = testing::internal::GetCapturedStdout();
    return failures;
  }
  void ExpectEachOnce() {
    for (int k = 0; k < 5; ++k) EXPECT_EQ(counts_->runs[k], 1) << k;
  }

  Counts* const counts_;
  std::string printed_;
};

TEST_F(Guarded, CountsWhatIsRight) {
  EXPECT_EQ(RunFive({}, [] { return ""; }).value(), 0);
  ExpectEachOnce();
  EXPECT_EQ(printed_, "five: 5 of 5, 5 runs, 0 wrong\n");
}

TEST_F(Guarded, ReportsWhatIsWrong) {
  EXPECT_EQ(RunFive({}, [] { return "element 3"; }).value(), 1);
  ExpectEachOnce();
  EXPECT_EQ(printed_, "FAILED: case 2: element 3\nfive: 5 of 5, 5 runs, 1 wrong\n");
}

TEST_F(Guarded, GoesOnAfterAnErrorInAnotherProcess) {
  const pid_t parent = getpid();
  EXPECT_EQ(RunFive({},
                    [&]() -> absl::StatusOr<std::string> {
                      EXPECT_NE(getpid(), parent);
                      return absl::InternalError("the context is lost");
                    })
                .value(),
            1);
  ExpectEachOnce();
  EXPECT_THAT(printed_, HasSubstr("FAILED: case 2: INTERNAL: the context is lost"));
  EXPECT_THAT(printed_, HasSubstr("five: 5 of 5, 5 runs, 1 wrong"));
}

TEST_F(Guarded, GoesOnAfterACrash) {
  EXPECT_EQ(RunFive({},
                    []() -> absl::StatusOr<std::string> {
                      raise(SIGKILL);
                      return "";
                    })
                .value(),
            1);
  ExpectEachOnce();
  EXPECT_THAT(printed_, HasSubstr("FAILED: case 2: the process ended by signal 9"));
}

TEST_F(Guarded, KillsWhatNeverEnds) {
  EXPECT_EQ(RunFive({.silent_seconds = 0.3},
                    []() -> absl::StatusOr<std::string> {
                      while (true) std::this_thread::sleep_for(std::chrono::seconds(1));
                    })
                .value(),
            1);
  ExpectEachOnce();
  EXPECT_THAT(printed_, HasSubstr("FAILED: case 2: took longer than 0.3"));
}

TEST_F(Guarded, EndsEarlyAndSaysWhy) {
  EXPECT_EQ(RunFive({.failures = 1}, [] { return "wrong"; }).value(), 1);
  EXPECT_EQ(counts_->runs[3], 0);
  EXPECT_THAT(printed_, HasSubstr("five: 3 of 5, 3 runs, 1 wrong; ended early: too many failures"));
  EXPECT_EQ(RunFive({.seconds = 0}, [] { return ""; }).value(), 0);
  EXPECT_THAT(printed_, HasSubstr("five: 0 of 5, 0 runs, 0 wrong; ended early: the time is over"));
}

TEST_F(Guarded, GivenUpByALaterProcess) {
  GuardedCases cases({});
  testing::internal::CaptureStdout();
  const auto failures = cases.Run([&] {
    if (++counts_->runs[0] == 2) cases.GiveUp("no device");
    if (cases.GoesOn()) cases.Case("first", [] { return absl::InternalError("lost"); });
    if (cases.GoesOn()) cases.Case("second", [] { return ""; });
    cases.EndPart("both", 1, 2);
  });
  EXPECT_EQ(failures.value(), 2);
  EXPECT_THAT(
      testing::internal::GetCapturedStdout(),
      HasSubstr("no more cases: no device\nboth: 1 of 2, 1 runs, 2 wrong; ended early: given up"));
}

TEST_F(Guarded, ExitCodesOfChildren) {
  EXPECT_EQ(ExitCodeInChild([] { return 77; }).value(), 77);
  EXPECT_THAT(ExitCodeInChild([] { return raise(SIGKILL); }).status().message(),
              HasSubstr("signal 9"));
}

TEST_F(Guarded, AProcessThatEndsOutsideACaseIsAnError) {
  GuardedCases cases({});
  const auto failures = cases.Run([&] {
    cases.Case("the only one", [] { return ""; });
    raise(SIGKILL);
  });
  EXPECT_THAT(failures.status().message(),
              HasSubstr("signal 9 outside a case, after 'the only one'"));
}

}  // namespace
}  // namespace mendel::cuda
