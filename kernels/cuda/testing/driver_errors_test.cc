// Errors of the driver: each call's once, those that stay, those of another machine than the
// plan's.

#include <atomic>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cuda/testing/device_run_case.h"
#include "kernels/cuda/testing/fake/fake_driver.h"

namespace mendel::cuda {
namespace {

using device_run_case::Caller;
using device_run_case::Chain;
using device_run_case::Compile;
using device_run_case::Prepare;
using device_run_case::Time;
using testing::HasSubstr;

/// One executable's whole life.
absl::Status MakeTimeAndRun(const Driver& table, const Caller& caller) {
  MENDEL_ASSIGN_OR_RETURN(const auto executable, Compile(table));
  for (const bool cold : {false, true}) MENDEL_RETURN_IF_ERROR(Time(*executable, 1, cold).status());
  return caller.Run(*executable);
}

bool GivesBack(const std::string& entry) {
  return entry.find("Destroy") != std::string::npos || entry.find("Free") != std::string::npos ||
         entry == "ModuleUnload" || entry == "DevicePrimaryCtxRelease" || entry == "CtxPopCurrent";
}

TEST(DeviceRun, EveryCallMayFail) {
  FakeDriver driver;
  Prepare(driver);
  int64_t calls = 0;
  {
    Caller caller(driver.table());
    driver.FailAt(0);
    const absl::Status right = MakeTimeAndRun(driver.table(), caller);
    ASSERT_TRUE(right.ok()) << right;
    calls = driver.Calls();
  }
  ASSERT_EQ(driver.Leaks(), "");
  for (int64_t call = 1; call <= calls; ++call) {
    {
      Caller caller(driver.table());
      driver.FailAt(call, 999);
      const absl::Status status = MakeTimeAndRun(driver.table(), caller);
      ASSERT_TRUE(driver.HasFailed()) << call;
      const std::string entry = driver.FailedCall();
      // The destructor makes its context current and waits, too.
      const bool may_be_last = entry == "CtxSetCurrent" || entry == "EventSynchronize";
      EXPECT_TRUE(status.ok() == GivesBack(entry) || (may_be_last && status.ok()))
          << call << " " << entry;
      EXPECT_TRUE(status.ok() || status.message().find("cu" + entry) != absl::string_view::npos)
          << call << " " << status;
    }
    EXPECT_EQ(driver.Leaks(), "") << call << " " << driver.FailedCall();
  }
  EXPECT_TRUE(driver.table().CheckUsable().ok()) << "none of these stays";
}

/// The number of the first call of `entry` while `what` is done; 0: there was none.
int64_t CallOf(FakeDriver& driver, const std::string& entry, const std::function<void()>& what) {
  for (int64_t call = 1;; ++call) {
    driver.FailAt(call);
    what();
    if (!driver.HasFailed()) return 0;
    if (driver.FailedCall() == entry) return call;
  }
}

TEST(StickyErrors, AreNamedByEveryLaterCall) {
  for (const int error : {700, 214}) {
    const std::string text = error == 700 ? "an illegal memory access was encountered (700)"
                                          : "uncorrectable ECC error encountered (214)";
    const absl::StatusCode code =
        error == 700 ? absl::StatusCode::kInternal : absl::StatusCode::kUnavailable;
    FakeDriver driver;
    Prepare(driver);
    {
      const auto first = Compile(driver.table()), second = Compile(driver.table());
      ASSERT_TRUE(first.ok() && second.ok());
      Caller caller(driver.table());
      const auto host_run = [&](Executable& executable) {
        return Time(executable, 1, false).status();
      };
      EXPECT_TRUE(host_run(**first).ok());  // what is made once is there
      const int64_t wait = CallOf(driver, "StreamSynchronize", [&] { (void)host_run(**first); });
      ASSERT_GT(wait, 0);
      driver.FailAt(wait, error);
      const auto reported = [&](const absl::Status& status, const char* what) {
        EXPECT_EQ(status.code(), code) << what << status;
        EXPECT_THAT(std::string(status.message()),
                    testing::AllOf(HasSubstr(text), HasSubstr("must be started again")))
            << what;
      };
      const absl::Status failed = host_run(**first);
      reported(failed, "the call itself");
      EXPECT_THAT(std::string(failed.message()), HasSubstr("cuStreamSynchronize"));
      reported(host_run(**first), "the same plan");
      reported(host_run(**second), "another plan");
      reported(caller.Run(**second), "on a stream");
      reported(Compile(driver.table()).status(), "a new plan");
      reported(driver.table().CheckUsable(), "asked");
    }
    EXPECT_EQ(driver.Leaks(), "") << "what there was is given back all the same";
  }
}

TEST(StickyErrors, AKernelsFaultIsOne) {
  FakeDriver driver;
  std::atomic<int> planted = 0;
  const auto image = [&](const std::string& text) -> absl::StatusOr<std::vector<char>> {
    std::string wrong = text;
    const size_t at = wrong.find("k < 40");
    if (at == std::string::npos) return TextImage(text);
    ++planted;
    return TextImage(wrong.replace(at, 6, "k < 4000"));
  };
  const auto executable =
      MakeExecutable(driver.table(), *LowerToDevice(Chain(), {.reuse_memory = false}), image);
  ASSERT_TRUE(executable.ok()) << executable.status();
  ASSERT_GT(planted, 0) << "the text has changed";
  const auto failed = Time(**executable, 1, false);
  EXPECT_THAT(std::string(failed.status().message()),
              testing::AllOf(HasSubstr("out of bounds"), HasSubstr("started again")));
  EXPECT_THAT(std::string(Compile(driver.table()).status().message()),
              HasSubstr("a kernel failed earlier"));
}

TEST(DriverErrors, CodeForAnotherArchitectureOrANewerDriver) {
  FakeDriver driver;
  Prepare(driver);
  const int64_t load = CallOf(driver, "ModuleLoadData", [&] { (void)Compile(driver.table()); });
  ASSERT_GT(load, 0);
  for (const auto& [error, reported] :
       {std::pair(209, "another architecture"), std::pair(222, "supports CUDA 13.0, is older")}) {
    driver.FailAt(load, error);
    const absl::Status status = Compile(driver.table()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
    EXPECT_THAT(std::string(status.message()),
                testing::AllOf(HasSubstr("cuModuleLoadData"), HasSubstr(reported)));
    EXPECT_TRUE(driver.table().CheckUsable().ok());
  }
  EXPECT_EQ(driver.Leaks(), "");
}

TEST(DriverErrors, StartReportsWhyThereIsNoGpu) {
  FakeDriver fake;
  Driver driver = fake.table();
  driver.version = 0;
  EXPECT_TRUE(driver.Start().ok());
  EXPECT_EQ(driver.version, 13000);
  fake.FailAt(1, 999);
  EXPECT_EQ(driver.Start().code(), absl::StatusCode::kUnavailable) << "cuInit";
  fake.FailAt(3, 999);
  EXPECT_THAT(std::string(driver.Start().message()), HasSubstr("cuDeviceGetCount"));
  fake.FailAt(0);
  fake.SetVersion(11030);
  const absl::Status old = driver.Start();
  EXPECT_EQ(old.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(old.message()),
              HasSubstr("too old: it supports CUDA 11.3, and 11.4 is needed"));
}

}  // namespace
}  // namespace mendel::cuda
