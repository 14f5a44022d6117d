#include "runtime/numerics.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mendel {
namespace {

TEST(Numerics, EveryClassHasANameOfItsOwn) {
  for (const Numerics numerics : kAllNumerics)
    EXPECT_EQ(*ParseNumerics(NumericsName(numerics)), numerics);
  EXPECT_THAT(std::string(ParseNumerics("sloppy").status().message()),
              testing::HasSubstr("'sloppy' (strict, default, int8, high, tf32, f16, bf16)"));
}

TEST(Numerics, AClassAllowsWhatStricterOnesDo) {
  for (const Numerics numerics : kAllNumerics) {
    EXPECT_TRUE(Allows(numerics, numerics)) << NumericsName(numerics);
    EXPECT_TRUE(Allows(numerics, Numerics::kStrict)) << NumericsName(numerics);
    const auto stricter = Stricter(numerics);
    EXPECT_EQ(stricter.has_value(), numerics != Numerics::kStrict);
    if (!stricter.has_value()) continue;
    EXPECT_FALSE(Allows(*stricter, numerics)) << NumericsName(numerics);
    EXPECT_LE(OperandRounding(*stricter), OperandRounding(numerics)) << NumericsName(numerics);
  }
}

TEST(Numerics, TheTwoHalfFormatsDoNotAllowEachOther) {
  EXPECT_FALSE(Allows(Numerics::kF16, Numerics::kBf16));
  EXPECT_FALSE(Allows(Numerics::kBf16, Numerics::kF16));
  EXPECT_TRUE(Allows(Numerics::kBf16, Numerics::kTf32));
  EXPECT_TRUE(Allows(Numerics::kF16, Numerics::kHigh));
}

}  // namespace
}  // namespace mendel
