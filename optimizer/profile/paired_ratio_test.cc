#include "optimizer/profile/paired_ratio.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "base/random.h"

namespace mendel {
namespace {

TEST(PairedRatio, AFewRoundsMustAgree) {
  const PairedRatio ratio =
      CompareRounds(std::vector<double>{10, 20, 10}, std::vector<double>{9, 10, 11});
  EXPECT_EQ(ratio.median, 0.9);
  EXPECT_NEAR(ratio.high, 1.1 * 1.1, 1e-12);
  const PairedRatio one = CompareRounds(std::vector<double>{10}, std::vector<double>{5});
  EXPECT_EQ(one.median, 0.5);
  EXPECT_NEAR(one.high, 1.1 * 0.5, 1e-12);
}

TEST(PairedRatio, WhatSlowsBothIsNoDifference) {
  std::vector<double> first, second;
  for (int k = 0; k < 40; ++k) {
    first.push_back(k % 2 == 0 ? 1 : 7);
    second.push_back(first.back() * 0.97);
  }
  const PairedRatio ratio = CompareRounds(first, second);
  EXPECT_NEAR(ratio.median, 0.97, 1e-12);
  EXPECT_NEAR(ratio.high, 0.97, 1e-12);
}

TEST(PairedRatio, OneDisturbedRoundOfSevenDoesNotHideAGain) {
  const std::vector<double> first(7, 10);
  EXPECT_LT(CompareRounds(first, std::vector<double>{7, 7.1, 6.9, 10.5, 7, 7.2, 6.8}).high, 1);
  EXPECT_GT(CompareRounds(first, std::vector<double>{9.9, 9.8, 9.9, 12, 9.9, 9.8, 9.9}).high, 1);
}

TEST(PairedRatio, TwoOfTwelveDisturbedRoundsDoNotHideAGain) {
  const std::vector<double> first(12, 10);
  const auto disturbed = [](size_t rounds) {
    std::vector<double> second(12, 9.3);
    for (size_t k = 0; k < rounds; ++k) second[3 * k] = 15;
    return second;
  };
  EXPECT_EQ(CompareRounds(first, disturbed(2)).high, 0.93);
  EXPECT_GT(CompareRounds(first, disturbed(3)).high, 1);  // 3 or fewer heads of 12 coins: 7 %
}

TEST(PairedRatio, NothingDividedByNothingIsEqual) {
  EXPECT_EQ(CompareRounds(std::vector<double>{0}, std::vector<double>{0}).median, 1);
  EXPECT_EQ(CompareRounds(std::vector<double>{0}, std::vector<double>{1}).high,
            std::numeric_limits<double>::infinity());
}

/// Equal programs are called faster in about one of twenty measurements, never much more often.
TEST(PairedRatio, EqualProgramsAreRarelyCalledFaster) {
  constexpr uint64_t kSeed = 7;
  constexpr int kTrials = 500;
  Rng rng(kSeed);
  for (const int rounds : {5, 6, 7, 8, 9, 12, 30, 200, 3000}) {
    int faster = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      std::vector<double> first, second;
      for (int k = 0; k < rounds; ++k) {
        first.push_back(1 + rng.Unit());
        second.push_back(1 + rng.Unit());
      }
      faster += CompareRounds(first, second).high < 1 ? 1 : 0;
    }
    EXPECT_LT(faster, kTrials / 20 + 20) << rounds << " rounds, seed " << kSeed;
  }
}

}  // namespace
}  // namespace mendel
