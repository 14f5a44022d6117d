#include "verifier/axioms/canonical_pair.h"

#include <gtest/gtest.h>

#include <map>
#include <ostream>
#include <string>

#include "verifier/axioms/axioms_expression.h"

namespace mendel {
namespace {

using axioms_test::ParseExpression;

/// 0.21000000834465027 is f32's number nearest to 0.3 0.7, 0.2702702581882477 that to 1 / 3.7, and
/// 0.36055511236190796 that to the root of 0.13.
struct Folding {
  const char* what;
  const char* unfolded;
  const char* folded;
};
void PrintTo(const Folding& folding, std::ostream* out) { *out << folding.what; }

class Foldings : public ::testing::TestWithParam<Folding> {};
class OtherNumbers : public ::testing::TestWithParam<Folding> {};

bool Equal(const char* left, const char* right, std::map<std::string, int>& used) {
  const auto pair =
      CanonicalizePair(ParseExpression(left), ParseExpression(right), WeightMode::kSymbolic, &used);
  EXPECT_TRUE(pair.ok()) << pair.status();
  return pair.ok() && Certify(pair->first, pair->second, {}).ok();
}

TEST_P(Foldings, AreEqualAndCounted) {
  for (const bool swapped : {false, true}) {
    std::map<std::string, int> used;
    EXPECT_TRUE(swapped ? Equal(GetParam().folded, GetParam().unfolded, used)
                        : Equal(GetParam().unfolded, GetParam().folded, used));
    EXPECT_EQ(used["literal folded of others"], 1) << ::testing::PrintToString(used);
  }
}

TEST_P(OtherNumbers, StayApart) {
  std::map<std::string, int> used;
  EXPECT_FALSE(Equal(GetParam().unfolded, GetParam().folded, used));
  EXPECT_FALSE(Equal(GetParam().folded, GetParam().unfolded, used));
}

constexpr Folding kFoldings[] = {
    {"product", "Erf(Mul(Mul(x, 0.3), 0.7))", "Erf(Mul(x, 0.21000000834465027))"},
    {"product behind a sign", "Erf(Mul(Mul(x, -0.3), 0.7))",
     "Erf(Mul(Neg(x), 0.21000000834465027))"},
    {"product in a sum", "Add(Mul(Mul(x, 0.3), 0.7), y)", "Add(Mul(x, 0.21000000834465027), y)"},
    {"inverse", "Erf(Div(x, 3.7))", "Erf(Mul(x, 0.2702702581882477))"},
    {"root", "Mul(Mul(x, 0.36055511236190796), 0.36055511236190796)", "Mul(x, 0.13)"},
    {"root on both operands", "MatMul(Mul(m, 0.36055511236190796), Mul(m, 0.36055511236190796))",
     "Mul(MatMul(m, m), 0.13)"},
    // 1 / 4^(1/4) and 1 / 8^(1/4) are roots that literals stand for; their squares in f32 are none.
    {"square of a rounded root", "Mul(Mul(x, 0.70710677), 0.70710677)", "Mul(x, 0.49999997)"},
    {"square of a rounded fourth root",
     "MatMul(Mul(m, 0.59460354), Transpose(Mul(m, 0.59460354)){perm = [1, 0]})",
     "Mul(MatMul(m, Transpose(m){perm = [1, 0]}), 0.35355335)"},
};
constexpr Folding kOthers[] = {
    {"number next to the square of a root", "Mul(Mul(x, 0.70710677), 0.70710677)",
     "Mul(x, 0.49999994)"},
    {"square of another root", "Mul(Mul(x, 0.59460354), 0.59460354)", "Mul(x, 0.3539)"},
    {"square of one operand's root", "MatMul(Mul(m, 0.70710677), m)",
     "Mul(MatMul(m, m), 0.49999997)"},
    {"square of a root in a comparison", "Less(Mul(Mul(x, 0.70710677), 0.70710677), y)",
     "Less(Mul(x, 0.49999997), y)"},
    {"number next to the product", "Erf(Mul(Mul(x, 0.3), 0.7))",
     "Erf(Mul(x, 0.21000002324581146))"},
    {"other sign", "Erf(Mul(Mul(x, -0.3), 0.7))", "Erf(Mul(x, 0.21000000834465027))"},
    {"number next to the inverse", "Erf(Div(x, 3.7))", "Erf(Mul(x, 0.27027028799057007))"},
    {"number next to the root", "Mul(Mul(x, 0.36055514216423035), 0.36055514216423035)",
     "Mul(x, 0.13)"},
    {"one literal next to another", "Mul(x, 0.21000000834465027)", "Mul(x, 0.21000002324581146)"},
    {"comparison", "Less(Mul(Mul(x, 0.3), 0.7), y)", "Less(Mul(x, 0.21000000834465027), y)"},
    {"rounding", "Floor(Mul(Mul(x, 0.3), 0.7))", "Floor(Mul(x, 0.21000000834465027))"},
    {"shift", "Add(Add(x, 0.1), 0.2)", "Add(x, 0.3)"},
};

INSTANTIATE_TEST_SUITE_P(Pairs, Foldings, ::testing::ValuesIn(kFoldings));
INSTANTIATE_TEST_SUITE_P(Pairs, OtherNumbers, ::testing::ValuesIn(kOthers));

}  // namespace
}  // namespace mendel
