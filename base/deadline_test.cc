#include "base/deadline.h"

#include <gtest/gtest.h>

namespace mendel {
namespace {

TEST(Deadline, AStopTokenMakesItPass) {
  std::atomic<bool> stop = false;
  const Deadline never = Deadline::Never().StoppedBy(&stop);
  EXPECT_FALSE(never.Passed());
  EXPECT_GT(never.SecondsLeft(), 1e9);
  stop = true;
  EXPECT_TRUE(never.Passed());
  EXPECT_LE(never.SecondsLeft(), 0);
  EXPECT_FALSE(Deadline::Never().Passed());
}

TEST(Deadline, APassedOneStaysNegative) {
  std::atomic<bool> stop = true;
  EXPECT_LT(Deadline::After(-1).StoppedBy(&stop).SecondsLeft(), 0);
  EXPECT_TRUE(Deadline::After(-1).StoppedBy(nullptr).Passed());
}

}  // namespace
}  // namespace mendel
