// Programs that agree as formulas and are not defined for the same inputs, and others that are.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "graph/text.h"
#include "verifier/verifier.h"

namespace mendel {
namespace {

/// `body` after the input x f32[3,3] as %0, the causal mask as %1 and t = x + m as %2.
Graph Masked(const std::string& body) {
  const auto graph = ParseGraph(
      "graph \"g\" {\n%0 = Input() {name = \"x\", shape = [3, 3]}\n"
      "%1 = Constant() {value = f32[3,3]{0, -inf, -inf, 0, 0, -inf, 0, 0, 0}}\n"
      "%2 = Add(%0, %1)\n" +
      body + "}");
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *graph;
}

bool Accepts(const Graph& a, const Graph& b, DefinednessCheck check = DefinednessCheck::kPlan) {
  const auto certificate = Certify(a, b, {.definedness = check});
  EXPECT_TRUE(certificate.ok() || absl::IsUnimplemented(certificate.status()) ||
              absl::IsFailedPrecondition(certificate.status()))
      << certificate.status();
  return certificate.ok();
}

TEST(Definedness, MasksOfInfinityBeforeSoftmax) {
  const Graph softmax = Masked("%3 = Softmax(%2) {axis = 1}\nreturn \"y\" = %3\n");
  EXPECT_TRUE(Accepts(softmax, softmax));
  // Equal formulas, and NaN: t - mean(t) and t - t.
  const Graph mean = Masked(
      "%3 = ReduceMean(%2) {axes = [1], keepdims = 1}\n%4 = Sub(%2, %3)\n%5 = Add(%4, %3)\n"
      "%6 = Softmax(%5) {axis = 1}\nreturn \"y\" = %6\n");
  EXPECT_FALSE(Accepts(softmax, mean));
  const Graph difference = Masked(
      "%3 = Softmax(%2) {axis = 1}\n%4 = Sub(%2, %2)\n%5 = Add(%3, %4)\nreturn \"y\" = %5\n");
  EXPECT_FALSE(Accepts(softmax, difference));
  // Written out, it stays finite: exp(-inf) is 0.
  const Graph written = Masked(
      "%3 = Exp(%2)\n%4 = ReduceSum(%3) {axes = [1], keepdims = 1}\n%5 = Div(%3, %4)\n"
      "return \"y\" = %5\n");
  EXPECT_TRUE(Accepts(softmax, written, DefinednessCheck::kBoth));
}

Graph FromText(const std::string& text) {
  const auto graph = ParseGraph("graph \"g\" {\n" + text + "}");
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *graph;
}

constexpr char kInputs[] =
    "%0 = Input() {name = \"x\", shape = [4]}\n%1 = Input() {name = \"y\", shape = [4]}\n";

TEST(Definedness, AnotherOutputExcusesNothing) {
  const Graph a = FromText(std::string(kInputs) + "%2 = Log(%0)\nreturn \"p\" = %2, \"q\" = %1\n");
  const Graph b = FromText(std::string(kInputs) +
                           "%2 = Log(%0)\n%3 = Sub(%2, %2)\n%4 = Add(%1, %3)\n"
                           "return \"p\" = %2, \"q\" = %4\n");
  EXPECT_FALSE(Accepts(a, b));
  EXPECT_TRUE(Accepts(b, a));
  EXPECT_FALSE(Accepts(b, a, DefinednessCheck::kBoth));
}

TEST(Definedness, AnotherElementExcusesNothing) {
  const std::string common = std::string(kInputs) + "%2 = Log(%0)\n%3 = Sub(%2, %2)\n";
  const auto program = [&](const std::string& second) {
    return FromText(common + second + "%5 = Concat(%2, %4) {axis = 0}\nreturn \"p\" = %5\n");
  };
  EXPECT_FALSE(Accepts(program("%4 = Relu(%1)\n"), program("%6 = Relu(%1)\n%4 = Add(%6, %3)\n")));
}

TEST(Definedness, TheSameElementDoes) {
  const Graph a =
      FromText(std::string(kInputs) + "%2 = Log(%0)\n%3 = Mul(%2, %1)\nreturn \"p\" = %3\n");
  const Graph b = FromText(std::string(kInputs) +
                           "%2 = Log(%0)\n%3 = Mul(%2, %1)\n%4 = Sub(%2, %2)\n"
                           "%5 = Add(%3, %4)\nreturn \"p\" = %5\n");
  EXPECT_TRUE(Accepts(a, b, DefinednessCheck::kBoth));
}

TEST(Definedness, QuotientsWithZeros) {
  const Graph a = FromText(std::string(kInputs) + "%2 = Relu(%0)\nreturn \"p\" = %1\n");
  const Graph b = FromText(std::string(kInputs) +
                           "%2 = Relu(%0)\n%3 = Mul(%1, %2)\n%4 = Div(%3, %2)\n"
                           "return \"p\" = %4\n");
  EXPECT_FALSE(Accepts(a, b));
  EXPECT_TRUE(Accepts(b, a));
}

TEST(Definedness, LogarithmsOfZeros) {
  const Graph a = FromText(std::string(kInputs) + "%2 = Relu(%0)\nreturn \"p\" = %1\n");
  const Graph b = FromText(std::string(kInputs) +
                           "%2 = Relu(%0)\n%3 = Log(%2)\n%4 = Sub(%3, %3)\n%5 = Add(%1, %4)\n"
                           "return \"p\" = %5\n");
  EXPECT_FALSE(Accepts(a, b));
  EXPECT_TRUE(Accepts(b, a));
}

/// log 0 + 0 log 0 is NaN, and log 0 is not: relu makes numbers of one of them.
TEST(Definedness, ZeroTimesAnInfinityIsNoZero) {
  for (const std::string function : {"Relu(", "Exp(", "Tanh(", "Max(%1, "}) {
    const Graph a = FromText(std::string(kInputs) + "%2 = Log(%0)\n%3 = " + function +
                             "%2)\nreturn \"p\" = %3\n");
    const Graph b = FromText(std::string(kInputs) +
                             "%2 = Log(%0)\n%3 = Constant() {value = f32[]{0}}\n"
                             "%4 = Mul(%2, %3)\n%5 = Add(%2, %4)\n%6 = " +
                             function + "%5)\nreturn \"p\" = %6\n");
    EXPECT_TRUE(Accepts(a, a)) << function;
    EXPECT_FALSE(Accepts(a, b)) << function;
    EXPECT_FALSE(Accepts(b, a, DefinednessCheck::kBoth)) << function;
  }
}

/// x to the power of `exponent` is a number at some x where a function that is added 0 times is
/// none.
TEST(Definedness, PowersAreUndefinedWhereTheyAreNoNumbers) {
  const auto power = [](const std::string& exponent, const std::string& added) {
    return FromText(std::string(kInputs) + "%2 = Constant() {value = f32[]{" + exponent +
                    "}}\n%3 = Pow(%0, %2)\n%4 = " + added +
                    "(%0)\n%5 = Constant() {value = f32[]{0}}\n%6 = Mul(%4, %5)\n"
                    "%7 = Add(%3, %6)\nreturn \"p\" = %7\n");
  };
  const auto alone = [](const std::string& exponent) {
    return FromText(std::string(kInputs) + "%2 = Constant() {value = f32[]{" + exponent +
                    "}}\n%3 = Pow(%0, %2)\nreturn \"p\" = %3\n");
  };
  for (const char* exponent : {"-1", "-2", "-3", "-70"})
    EXPECT_FALSE(Accepts(alone(exponent), power(exponent, "Sqrt"))) << exponent;
  for (const char* exponent : {"0.5", "0.3", "70.5"})
    EXPECT_FALSE(Accepts(alone(exponent), power(exponent, "Log"))) << exponent;
  EXPECT_TRUE(Accepts(alone("-0.5"), power("-0.5", "Log")));
  EXPECT_TRUE(Accepts(alone("0.5"), power("0.5", "Sqrt")));
}

/// One row of a large constant is 0, or none.
TEST(Definedness, RowsOfALargeConstantAreNotAlike) {
  for (const int zero : {-1, 0, 7, 4095}) {
    std::string values;
    for (int i = 0; i < 4096; ++i)
      values += std::string(i == 0 ? "" : ", ") + (i == zero ? "0" : "1");
    const std::string input = "%0 = Input() {name = \"x\", shape = [4096]}\n";
    const Graph a = FromText(input + "return \"p\" = %0\n");
    const Graph b = FromText(input + "%1 = Constant() {value = f32[4096]{" + values +
                             "}}\n%2 = Log(%1)\n%3 = Constant() {value = f32[]{0}}\n"
                             "%4 = Mul(%2, %3)\n%5 = Add(%0, %4)\nreturn \"p\" = %5\n");
    EXPECT_EQ(Accepts(a, b), zero < 0) << zero;
  }
}

/// Layout changes of a value that may be undefined keep element by element what is.
TEST(Definedness, MovedElementsKeepTheirConditions) {
  const std::string inputs =
      "%0 = Input() {name = \"x\", shape = [2,3]}\n%1 = Input() {name = \"y\", shape = [2,3]}\n";
  const Graph a = FromText(inputs + "%2 = Div(%0, %1)\n%3 = Relu(%2)\nreturn \"p\" = %3\n");
  const Graph b = FromText(inputs +
                           "%2 = Transpose(%0) {perm = [1, 0]}\n"
                           "%3 = Transpose(%1) {perm = [1, 0]}\n%4 = Div(%2, %3)\n%5 = Relu(%4)\n"
                           "%6 = Transpose(%5) {perm = [1, 0]}\nreturn \"p\" = %6\n");
  EXPECT_TRUE(Accepts(a, b, DefinednessCheck::kBoth));
}

/// x and m of 64 rows, too many elements to be followed one by one where rows are alike.
Graph Tall(const std::string& body, int infinite_row) {
  std::string mask;
  for (int i = 0; i < 64 * 128; ++i)
    mask += (i == 0 ? "" : ", ") + std::string(i == 128 * infinite_row + 5 ? "-inf" : "0");
  return FromText(
      "%0 = Input() {name = \"x\", shape = [64, 128]}\n%1 = Constant() {value = f32[64,128]{" +
      mask + "}}\n%2 = Add(%0, %1)\n%3 = Exp(%2)\n" + body);
}

TEST(Definedness, EveryRowOfALargeValueCounts) {
  for (const int row : {0, 1, 63}) {
    const Graph a = Tall("return \"p\" = %3\n", row);
    const Graph b = Tall("%4 = Sub(%2, %2)\n%5 = Add(%3, %4)\nreturn \"p\" = %5\n", row);
    EXPECT_TRUE(Accepts(a, a)) << row;
    EXPECT_FALSE(Accepts(a, b)) << row;
  }
}

TEST(Definedness, RowsOfALargeValueHaveConditionsOfTheirOwn) {
  const std::string head =
      "%0 = Input() {name = \"x\", shape = [64, 128]}\n"
      "%1 = Input() {name = \"y\", shape = [64, 128]}\n%2 = Div(%0, %1)\n";
  const Graph a = FromText(head + "return \"p\" = %2\n");
  // Adds 0 times the quotients of the next row.
  const Graph b = FromText(head +
                           "%3 = Slice(%2) {starts = [1, 0], ends = [64, 128], steps = [1, 1]}\n"
                           "%4 = Slice(%2) {starts = [0, 0], ends = [1, 128], steps = [1, 1]}\n"
                           "%5 = Concat(%3, %4) {axis = 0}\n%6 = Sub(%5, %5)\n"
                           "%7 = Add(%2, %6)\nreturn \"p\" = %7\n");
  EXPECT_TRUE(Accepts(a, a));
  EXPECT_FALSE(Accepts(a, b));
}

/// Positions of a largest element are undefined where an element is.
TEST(Definedness, OpaqueOperatorsOfUndefinedElements) {
  const std::string head = std::string(kInputs) + "%2 = Log(%0)\n";
  const Graph a = FromText(head + "%3 = Hardmax(%1) {axis = 0}\nreturn \"p\" = %3\n");
  const Graph b = FromText(head +
                           "%3 = Hardmax(%1) {axis = 0}\n%4 = Hardmax(%2) {axis = 0}\n"
                           "%5 = Sub(%4, %4)\n%6 = Add(%3, %5)\nreturn \"p\" = %6\n");
  EXPECT_FALSE(Accepts(a, b));
  EXPECT_TRUE(Accepts(b, a));
}

/// A program that is NaN for every input equals only itself.
TEST(Definedness, NaNForEveryInput) {
  const std::string inputs = std::string(kInputs) + "%2 = Constant() {value = f32[]{nan}}\n";
  const Graph nan = FromText(inputs + "%3 = Add(%0, %2)\nreturn \"p\" = %3\n");
  const Graph zero = FromText(inputs + "%3 = Sub(%0, %0)\nreturn \"p\" = %3\n");
  EXPECT_TRUE(Accepts(nan, nan));
  EXPECT_FALSE(Accepts(nan, zero));
  EXPECT_FALSE(Accepts(zero, nan));
}

/// A NaN for every input, 0 as a formal value (m - m), which a function does not pass on; and a 0.
TEST(Definedness, FormalValuesOfNaNSayNothing) {
  const std::string head =
      "%0 = Input() {name = \"x\", shape = [3]}\n%1 = Constant() {value = f32[3]{-inf, 0, 0}}\n"
      "%2 = Constant() {value = f32[]{1}}\n%3 = Add(%0, %1)\n%4 = Sub(%3, %3)\n%5 = Sub(%0, %0)\n";
  for (const std::string function :
       {"Less($, %2)", "LessOrEqual($, %2)", "Equal($, $)", "IsNaN($)", "IsInf($)",
        "Cast($) {to = \"bool\"}", "ThresholdedRelu($) {alpha = 1}", "ArgMax($) {axis = 0}",
        "Hardmax($) {axis = 0}"}) {
    const auto program = [&](const std::string& operand) {
      return FromText(head + "%6 = " + absl::StrReplaceAll(function, {{"$", operand}}) +
                      "\nreturn \"y\" = %6\n");
    };
    const Graph nan = program("%4"), zero = program("%5");
    for (const DefinednessCheck check : {DefinednessCheck::kPlan, DefinednessCheck::kBoth}) {
      EXPECT_FALSE(Accepts(nan, zero, check)) << function;
      EXPECT_FALSE(Accepts(zero, nan, check)) << function;
      EXPECT_TRUE(Accepts(nan, nan, check)) << function;
    }
  }
}

/// Behind the function, too: a NaN is replaced, and its place counts.
TEST(Definedness, ReplacedNaN) {
  const std::string head =
      "%0 = Input() {name = \"x\", shape = [3]}\n%1 = Input() {name = \"w\", shape = [3]}\n"
      "%2 = Constant() {value = f32[3]{-inf, 0, 0}}\n";
  const Graph a = FromText(head +
                           "%3 = Add(%0, %2)\n%4 = Sub(%3, %2)\n%5 = IsNaN(%4)\n"
                           "%6 = Where(%5, %1, %4)\nreturn \"y\" = %6\n");
  const Graph b = FromText(head + "%5 = IsNaN(%0)\n%6 = Where(%5, %1, %0)\nreturn \"y\" = %6\n");
  EXPECT_TRUE(Accepts(a, a, DefinednessCheck::kBoth));
  EXPECT_FALSE(Accepts(a, b));
  EXPECT_FALSE(Accepts(b, a));
}

/// Elements of a slice that stands for others are other numbers: V(i) V(-i) is no square.
TEST(Definedness, ElementsOfAlikeSlicesDiffer) {
  std::string mask;
  for (int i = 0; i < 2 * 4096; ++i)
    mask += (i == 0 ? "" : ", ") + std::string(i < 4096 ? "-inf" : "0");
  const std::string head =
      "%0 = Input() {name = \"x\", shape = [2, 4096]}\n"
      "%1 = Input() {name = \"w\", shape = [1, 4096]}\n%2 = Neg(%1)\n"
      "%3 = Constant() {value = f32[2,4096]{" +
      mask +
      "}}\n%4 = Add(%0, %3)\n"
      "%5 = Slice(%4) {starts = [1, 0], ends = [2, 4096], steps = [1, 1]}\n"
      "%6 = Slice(%5) {starts = [0, 4095], ends = [1, -1], steps = [1, -1]}\n%7 = Mul(%5, %6)\n";
  const Graph plain = FromText(head + "return \"y\" = %2\n");
  for (const std::string partial :
       {"%8 = Sqrt(%7)\n",
        "%9 = Constant() {value = f32[]{1}}\n%10 = Add(%7, %9)\n%8 = Log(%10)\n"}) {
    EXPECT_FALSE(Accepts(plain, FromText(head + partial +
                                         "%11 = Sub(%8, %8)\n%12 = Add(%2, %11)\n"
                                         "return \"y\" = %12\n")));
  }
}

/// `function` of 1 / `zero`, both computed of the input %0; `zero` ends with %9.
Graph OfInverse(const std::string& zero, const std::string& function) {
  return FromText("%0 = Input() {name = \"x\", shape = [4]}\n" + zero + "%10 = Reciprocal(%9)\n" +
                  function + "return \"y\" = %11\n");
}

TEST(Definedness, ZerosHaveASign) {
  constexpr char kNegative[] = "%9 = Neg(%0)\n";
  constexpr char kDifference[] = "%8 = Constant() {value = f32[]{0}}\n%9 = Sub(%8, %0)\n";
  constexpr char kThreeMinusTwo[] =
      "%5 = Constant() {value = f32[]{3}}\n%6 = Constant() {value = f32[]{2}}\n"
      "%7 = Mul(%0, %6)\n%8 = Mul(%0, %5)\n%9 = Sub(%7, %8)\n";
  for (const std::string function : {"%11 = Tanh(%10)\n", "%11 = Exp(%10)\n",
                                     "%12 = Constant() {value = f32[]{1}}\n%11 = Less(%10, %12)\n",
                                     "%11 = ArgMax(%10) {axis = 0, keepdims = 1}\n"}) {
    SCOPED_TRACE(function);
    const Graph negative = OfInverse(kNegative, function);
    EXPECT_TRUE(Accepts(negative, negative, DefinednessCheck::kBoth));
    // At x = 0, 1 / -x is -infinity and 1 / (0 - x) is +infinity.
    EXPECT_FALSE(Accepts(negative, OfInverse(kDifference, function)));
    EXPECT_FALSE(Accepts(OfInverse(kThreeMinusTwo, function), negative));
  }
  // An infinity of either sign is no number.
  const std::string none = "%11 = Neg(%10)\n";
  EXPECT_TRUE(
      Accepts(OfInverse(kNegative, none), OfInverse(kDifference, none), DefinednessCheck::kBoth));
}

TEST(Definedness, SignsOfZerosBelongToElements) {
  const std::string tanh = "%11 = Tanh(%10)\n";
  const Graph whole = OfInverse("%9 = Neg(%0)\n", tanh);
  // The same elements by parts, in another node.
  const Graph parts = OfInverse("%9 = Neg(%0)\n",
                                "%12 = Slice(%10) {starts = [0], ends = [1], steps = [1]}\n"
                                "%13 = Slice(%10) {starts = [1], ends = [4], steps = [1]}\n"
                                "%14 = Tanh(%12)\n%15 = Tanh(%13)\n"
                                "%11 = Concat(%14, %15) {axis = 0}\n");
  EXPECT_TRUE(Accepts(whole, parts, DefinednessCheck::kBoth));
  // -1 / x has the sign of 1 / -x.
  const Graph outside = OfInverse("%8 = Constant() {value = f32[]{1}}\n%9 = Mul(%8, %0)\n",
                                  "%12 = Neg(%10)\n%11 = Tanh(%12)\n");
  EXPECT_TRUE(Accepts(whole, outside, DefinednessCheck::kBoth));
  const Graph other = OfInverse("%8 = Constant() {value = f32[]{0}}\n%9 = Add(%8, %0)\n",
                                "%12 = Neg(%10)\n%11 = Tanh(%12)\n");
  EXPECT_FALSE(Accepts(whole, other));
}

TEST(Definedness, AMergedZeroHasTheSignsOfBoth) {
  const std::string tanh = "%11 = Tanh(%10)\n";
  const Graph square = OfInverse("%9 = Mul(%0, %0)\n", tanh);
  // 0 - x x is never -0, so that -(0 - x x) is -0 at x = 0.
  const Graph difference = OfInverse(
      "%5 = Constant() {value = f32[]{0}}\n%6 = Mul(%0, %0)\n%7 = Sub(%5, %6)\n%9 = Neg(%7)\n",
      tanh);
  EXPECT_FALSE(Accepts(square, difference));
  EXPECT_FALSE(Accepts(difference, square));
}

TEST(Definedness, QuotientsAreProductsByInverses) {
  const std::string tanh = "%11 = Tanh(%12)\n";
  const Graph quotient = OfInverse("%9 = Sin(%0)\n", "%12 = Div(%0, %9)\n" + tanh);
  const Graph product = OfInverse("%9 = Sin(%0)\n", "%12 = Mul(%10, %0)\n" + tanh);
  EXPECT_TRUE(Accepts(quotient, product, DefinednessCheck::kBoth));
}

TEST(Definedness, SumsOfMagnitudesAreNoNegativeZeros) {
  const std::string tanh = "%11 = Tanh(%10)\n";
  const Graph square = OfInverse("%9 = Mul(%0, %0)\n", tanh);
  const Graph of_negative = OfInverse("%8 = Neg(%0)\n%9 = Mul(%8, %8)\n", tanh);
  EXPECT_TRUE(Accepts(square, of_negative, DefinednessCheck::kBoth));
  const Graph norm = OfInverse("%9 = ReduceL2(%0) {axes = [0], keepdims = 1}\n", tanh);
  const Graph written = OfInverse(
      "%7 = Mul(%0, %0)\n%8 = ReduceSum(%7) {axes = [0], keepdims = 1}\n%9 = Sqrt(%8)\n", tanh);
  EXPECT_TRUE(Accepts(norm, written, DefinednessCheck::kBoth));
}

}  // namespace
}  // namespace mendel
