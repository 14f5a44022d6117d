#include "base/random.h"

#include <gtest/gtest.h>

namespace mendel {
namespace {

TEST(Rng, RepeatsBySeedAndStaysInRange) {
  Rng a(7), b(7), c(8);
  EXPECT_EQ(a.Next(), b.Next());
  EXPECT_NE(a.Next(), c.Next());
  for (int i = 0; i < 1000; ++i) {
    EXPECT_LT(a.Below(3), 3u);
    const int64_t value = a.Between(-2, 2);
    EXPECT_TRUE(value >= -2 && value <= 2);
    const double unit = a.Unit();
    EXPECT_TRUE(unit >= 0 && unit < 1);
  }
}

TEST(Rng, FreshEntropyDiffers) { EXPECT_NE(FreshEntropy(), FreshEntropy()); }

}  // namespace
}  // namespace mendel
