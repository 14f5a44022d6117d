// Tests whole programs in the emulator: compares the result of each case with its graph's
// definition.
#ifndef MENDEL_KERNELS_CUDA_TESTING_EXPECT_RIGHT_H_
#define MENDEL_KERNELS_CUDA_TESTING_EXPECT_RIGHT_H_

#include <string>
#include <vector>

#include "base/status.h"
#include "gtest/gtest.h"
#include "kernels/cuda/testing/device_case.h"
#include "kernels/cuda/testing/fake/fake_driver.h"

namespace mendel::cuda {

/// The names of the program's kernels, launch by launch.
inline std::string KernelsOf(const DeviceCase& one) {
  std::string kernels;
  for (const DeviceLaunch& launch : one.program.launches)
    kernels += Cat(kernels.empty() ? "" : ", ", launch.info.kernel);
  return kernels;
}

/// Runs all cases on one fake driver, with their kernels in one module. A failure reports the case
/// and its first kernel. After 12 failures it stops.
inline void ExpectAllRight(const std::vector<DeviceCase>& cases) {
  constexpr int kEnough = 12;
  FakeDriver driver;
  const absl::Status prepared = driver.Prepare(ModuleOf(cases));
  ASSERT_TRUE(prepared.ok()) << std::string(prepared.message()).substr(0, 4000);
  int wrong = 0;
  for (const DeviceCase& one : cases) {
    const std::string failure = FailureOn(driver.table(), &TextImage, one);
    EXPECT_EQ(failure, "") << one.description << "\n"
                           << (one.program.texts.empty() ? "" : one.program.texts[0]);
    if (!failure.empty() && ++wrong == kEnough) FAIL() << "and so on";
  }
  EXPECT_EQ(driver.Leaks(), "");
}

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TESTING_EXPECT_RIGHT_H_
