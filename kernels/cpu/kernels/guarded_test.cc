// The guards themselves: an access outside must end the process or fail the test.

#include "kernels/cpu/testing/guarded.h"

#include <gtest/gtest-spi.h>

#include <cstdint>

#include "gtest/gtest.h"

namespace mendel::cpu {
namespace {

TEST(GuardedDeathTest, APageLiesNextToTheElements) {
  constexpr int64_t kCount = 24;
  const auto read = [](const GuardedFloats& floats, int64_t at) {
    const volatile float* element = floats.data() + at;
    return *element;
  };
  const GuardedFloats end(kCount, Guard::kEnd), crooked(kCount, Guard::kCrooked),
      begin(kCount, Guard::kBegin);
  for (int64_t at = 0; at < kCount; ++at)
    EXPECT_EQ(read(end, at) + read(crooked, at) + read(begin, at), 0.0f);
  EXPECT_DEATH(read(end, kCount), "");
  EXPECT_DEATH(read(crooked, kCount + 1), "");
  EXPECT_DEATH(read(begin, -1), "");
}

#if !defined(__SANITIZE_ADDRESS__)  // it forbids what is done here
TEST(Guarded, WritesBesideTheElementsAreSeen) {
  const auto write = [](Guard guard, int64_t at) {
    GuardedFloats floats(20, guard);
    volatile float* element = floats.data() + at;
    *element = 1;
  };
  EXPECT_NONFATAL_FAILURE(write(Guard::kEnd, -1), "written outside");
  EXPECT_NONFATAL_FAILURE(write(Guard::kCrooked, 20), "written outside");
  EXPECT_NONFATAL_FAILURE(write(Guard::kBegin, 20), "written outside");
  write(Guard::kEnd, 19);
  write(Guard::kBegin, 0);
}
#endif

TEST(Guarded, CrookedElementsStartOffTheBoundaryOfVectors) {
  const auto offset = [](Guard guard) {
    const GuardedFloats floats(48, guard);
    return reinterpret_cast<uintptr_t>(floats.data()) % 64;
  };
  EXPECT_EQ(offset(Guard::kEnd), 0u);
  EXPECT_EQ(offset(Guard::kCrooked), 60u);
  const GuardedFloats aligned(17, Guard::kEnd, 64);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(aligned.data()) % 64, 0u);
}

}  // namespace
}  // namespace mendel::cpu
