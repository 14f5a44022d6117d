// Tests of mended plans in the emulator: what each yields against what its graph means.
#ifndef MENDEL_KERNELS_CUDA_EXPECT_MENDED_H_
#define MENDEL_KERNELS_CUDA_EXPECT_MENDED_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "kernels/cuda/fake/fake_driver.h"
#include "kernels/cuda/mended_plan.h"

namespace mendel::cuda {

/// Runs all plans as one module on one driver.
inline void ExpectAllRight(const std::vector<MendedPlan>& plans) {
  FakeDriver driver;
  const absl::Status prepared = driver.Prepare(ModuleOf(plans));
  ASSERT_TRUE(prepared.ok()) << std::string(prepared.message()).substr(0, 4000);
  for (const MendedPlan& plan : plans) EXPECT_EQ(FailureOf(driver.table(), plan), "") << plan.told;
  EXPECT_EQ(driver.Leaks(), "");
}

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_EXPECT_MENDED_H_
