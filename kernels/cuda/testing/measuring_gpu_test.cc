// The lock and the conditions of a GPU.

#include "kernels/cuda/backend/measuring_gpu.h"

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cuda/testing/fake/fake_driver.h"
#include "kernels/cuda/testing/fake/fake_nvml.h"

namespace mendel::cuda {
namespace {

using testing::HasSubstr;

constexpr char kUuid[] = "GPU-00112233-4455-6677-8899-0a1b2c3d4e5f";  // the fake driver's

TEST(MeasuringGpu, ReportsClockAndPower) {
  FakeDriver driver;
  FakeNvml nvml(kUuid);
  const MeasuringGpu gpu(driver.table(), &nvml.table());
  const auto conditions = gpu.Conditions();
  ASSERT_TRUE(conditions.ok()) << conditions.status();
  EXPECT_EQ(ConditionsText(*conditions),
            "1500 of 1980 MHz, memory 2619 MHz, 313 of 700 W, 54 C, throttled by the power limit "
            "and heat");
  EXPECT_EQ(ConditionsText({}), "nothing reported");
  DeviceConditions little;
  little.celsius = 40;
  little.held_by.emplace();
  EXPECT_EQ(ConditionsText(little), "40 C, not throttled");
}

TEST(MeasuringGpu, WhatIsNotReportedIsAbsent) {
  FakeDriver driver;
  FakeNvml nvml(kUuid);
  const MeasuringGpu gpu(driver.table(), &nvml.table());
  nvml.FailAt(1);
  EXPECT_TRUE(absl::IsUnavailable(gpu.Conditions().status())) << "no handle";
  const char* const missing[] = {"1500", "1980", "memory", "313", "700", "54 C", "throttled"};
  for (int64_t call = 2; call <= 8; ++call) {
    nvml.FailAt(call);
    const auto conditions = gpu.Conditions();
    ASSERT_TRUE(conditions.ok()) << conditions.status();
    for (int64_t other = 2; other <= 8; ++other) {
      const bool reported =
          ConditionsText(*conditions).find(missing[other - 2]) != std::string::npos;
      // A limit is reported with the value that it limits.
      const bool wanted = other != call && !(call == 2 && other == 3) && !(call == 5 && other == 6);
      EXPECT_EQ(reported, wanted) << call << " " << ConditionsText(*conditions);
    }
  }
}

TEST(MeasuringGpu, AbsentOrBrokenNvmlIsReportedByName) {
  FakeDriver driver;
  const MeasuringGpu none(driver.table(), absl::NotFoundError("no libnvidia-ml.so.1"));
  EXPECT_EQ(none.Conditions().status().message(), "no libnvidia-ml.so.1");
  FakeNvml other("GPU-another");
  const MeasuringGpu gpu(driver.table(), &other.table());
  EXPECT_THAT(std::string(gpu.Conditions().status().message()),
              HasSubstr("nvmlDeviceGetHandleByUUID: Not Found (6)"));
  driver.FailAt(2);
  EXPECT_THAT(std::string(gpu.Conditions().status().message()), HasSubstr("cuDeviceGetUuid"));
  Nvml table = other.table();
  for (const int64_t call : {1, 2}) {
    other.FailAt(call);
    EXPECT_TRUE(absl::IsUnavailable(table.Start())) << call;
  }
  EXPECT_TRUE(table.Start().ok());
  EXPECT_EQ(table.driver_version, "580.65.06");
}

TEST(MeasuringGpu, OneProcessAGpu) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / Cat("gpu-locks-", ::getpid());
  std::filesystem::create_directories(folder);
  ::setenv("MENDEL_LOCK_DIR", folder.c_str(), 1);
  FakeDriver driver;
  const MeasuringGpu gpu(driver.table(), absl::NotFoundError("no NVML"));
  {
    const auto lock = gpu.Lock({.seconds = 0});
    ASSERT_TRUE(lock.ok()) << lock.status();
    EXPECT_TRUE(std::filesystem::exists(folder / Cat("mendel-", kUuid, ".lock")));
    EXPECT_THAT(std::string(gpu.Lock({.seconds = 0}).status().message()), HasSubstr(kUuid));
  }
  EXPECT_TRUE(gpu.Lock({.seconds = 0}).ok());
  driver.FailAt(1);
  EXPECT_FALSE(gpu.Lock({.seconds = 0}).ok());
  ::unsetenv("MENDEL_LOCK_DIR");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace mendel::cuda
