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

TEST(Deadline, PartsKeepTheTokenAndEndNoLater) {
  std::atomic<bool> stop = false;
  const Deadline whole = Deadline::After(100).StoppedBy(&stop);
  const Deadline quarter = whole.Share(0.25), soon = whole.Within(10), late = whole.Within(1000);
  EXPECT_NEAR(quarter.SecondsLeft(), 25, 5);
  EXPECT_NEAR(soon.SecondsLeft(), 10, 5);
  EXPECT_LE(late.SecondsLeft(), 100);
  EXPECT_FALSE(Deadline::Never().Share(0.5).Passed());
  stop = true;
  for (const Deadline& part : {quarter, soon, late}) EXPECT_TRUE(part.Passed());
}

TEST(Deadline, APassedOneStaysNegative) {
  std::atomic<bool> stop = true;
  EXPECT_LT(Deadline::After(-1).StoppedBy(&stop).SecondsLeft(), 0);
  EXPECT_TRUE(Deadline::After(-1).StoppedBy(nullptr).Passed());
}

}  // namespace
}  // namespace mendel
