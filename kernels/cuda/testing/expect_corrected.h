// Tests of corrected plans in the emulator: what each yields against what its graph means.
#ifndef MENDEL_KERNELS_CUDA_TESTING_EXPECT_CORRECTED_H_
#define MENDEL_KERNELS_CUDA_TESTING_EXPECT_CORRECTED_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "kernels/cuda/testing/corrected_plan.h"
#include "kernels/cuda/testing/fake/fake_driver.h"

namespace mendel::cuda {

/// Runs all plans as one module on one driver.
inline void ExpectAllRight(const std::vector<CorrectedPlan>& plans) {
  FakeDriver driver;
  const absl::Status prepared = driver.Prepare(ModuleOf(plans));
  ASSERT_TRUE(prepared.ok()) << std::string(prepared.message()).substr(0, 4000);
  for (const CorrectedPlan& plan : plans)
    EXPECT_EQ(FailureOf(driver.table(), plan), "") << plan.description;
  EXPECT_EQ(driver.Leaks(), "");
}

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TESTING_EXPECT_CORRECTED_H_
