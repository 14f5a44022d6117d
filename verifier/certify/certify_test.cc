#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/random.h"
#include "verifier/certify/certify_cases.h"
#include "verifier/field_evaluator.h"

namespace mendel {
namespace {

TEST(Certify, AcceptsItself) {
  const Graph graph = Parse(Fill(kConvNet));
  const auto certificate = Certify(graph, graph, {});
  ASSERT_TRUE(certificate.ok()) << certificate.status();
  EXPECT_EQ(certificate->segments, 0);
  EXPECT_EQ(certificate->shared_nodes, 3);
  EXPECT_LE(certificate->bound_log2, -80);
}

TEST(Certify, AcceptsRewritesOfAConvolution) {
  const char kPlan[] = R"(
  %0 = Input() {name = "x", shape = [1, 2, 6, 6]}
  %1 = Constant() {symbol = "w1", value = f32[3,2,3,3]{W54}}
  %2 = Constant() {symbol = "b1", value = f32[3]{1, 2, 3}}
  %3 = Conv(%0, %1) {strides = [1, 1], dilations = [1, 1], pads = [1, 1, 1, 1]}
  %4 = Reshape(%2) {shape = [3, 1, 1]}
  %5 = Add(%3, %4)
  %6 = Relu(%5)
  %7 = Constant() {symbol = "w2", value = f32[4,3,1,1]{W12}}
  %8 = Reshape(%7) {shape = [4, 3]}
  %9 = Reshape(%6) {shape = [3, 36]}
  %10 = MatMul(%8, %9)
  %11 = Reshape(%10) {shape = [1, 4, 6, 6]}
  return "y" = %11)";
  const Graph original = Parse(Fill(kConvNet));
  const auto certificate = Certify(original, Parse(Fill(kPlan)), {});
  ASSERT_TRUE(certificate.ok()) << certificate.status();
  EXPECT_EQ(certificate->segments, 2);  // each convolution; the Relu between them is congruent
  EXPECT_EQ(certificate->shared_nodes, 1);
  EXPECT_EQ(certificate->elements, 3 * 36 + 4 * 36);
  EXPECT_EQ(certificate->degree, 2);
  EXPECT_EQ(certificate->oracle_operands, 0);
  EXPECT_EQ(certificate->draws.size(), 3u);  // the selection and two tests of about 2^-58 each
  EXPECT_LE(certificate->bound_log2, -110);
  EXPECT_EQ(Verdict(Fill(kConvNet), Fill(Replaced(kPlan, "Add(%3, %4)", "Mul(%3, %4)"))).code(),
            kDifferent);
  const std::string wrong_layout =
      Replaced(kPlan, "shape = [4, 3]}", "shape = [3, 4]}\n  %80 = Transpose(%8) {perm = [1, 0]}");
  EXPECT_EQ(
      Verdict(Fill(kConvNet), Fill(Replaced(wrong_layout, "MatMul(%8, %9)", "MatMul(%80, %9)")))
          .code(),
      kDifferent);
}

/// Two inputs agree in the selecting draw by chance, so that values of one are merged with the
/// other; what reads them after these claims have failed must not be taken for a difference.
TEST(Certify, SurvivesInputsThatAgreeByChance) {
  VerifierOptions options;
  options.fixed_draws = {Draw{524309, {282004, 0}}};  // found by trying keys
  const FieldEvaluator evaluator(options.fixed_draws[0], WeightMode::kSymbolic);
  ASSERT_EQ(evaluator.Symbol("input", "a", 1).scalars, evaluator.Symbol("input", "b", 1).scalars)
      << "try other keys";
  Rng rng(1);
  for (int i = 0; i < 4; ++i) options.fixed_draws.push_back(SeededDraw(rng));
  const std::string inputs = R"(
  %0 = Input() {name = "a", shape = [1]}
  %1 = Input() {name = "b", shape = [1]}
  %2 = Sub(%0, %0)
)";
  const Graph original = Parse(inputs + R"(  %3 = Add(%1, %2)
  return "y" = %3)");
  const std::string plan = inputs + R"(  %3 = Neg(%1)
  %4 = Neg(%3)
  %5 = Add(%4, %2)
  %6 = Sub(%5, %2)
  return "y" = %6)";
  const auto certificate = Certify(original, Parse(plan), options);
  ASSERT_TRUE(certificate.ok()) << certificate.status();
  EXPECT_GT(certificate->rounds, 2);
  // Values that merely agree in that draw still differ.
  const absl::Status other =
      Certify(original, Parse(Replaced(plan, "Neg(%1)", "Neg(%0)")), options).status();
  EXPECT_EQ(other.code(), kDifferent) << other;
}

TEST(Certify, RejectsMutations) {
  const std::string net = Fill(kConvNet);
  const std::vector<std::pair<std::string, std::string>> mutations = {
      {"symbol = \"b1\"", "symbol = \"b2\""},
      {"Conv(%0, %1, %2)", "Conv(%0, %1)"},
      {"pads = [1, 1, 1, 1]", "pads = [2, 1, 0, 1]"},
      {"pads = [1, 1, 1, 1]", "pads = [1, 0, 1, 2]"},
      {"Relu(%3)", "Add(%3, %3)"},
  };
  for (const auto& [from, to] : mutations)
    EXPECT_EQ(Verdict(net, Replaced(net, from, to)).code(), kDifferent) << to;
}

TEST(Certify, NamesTheOutputAndTheElement) {
  const absl::Status status = Verdict(R"(
  %0 = Input() {name = "x", shape = [2, 3]}
  %1 = Constant() {value = f32[2,3]{1, 2, 3, 4, 5, 6}}
  %2 = Mul(%0, %1)
  return "y" = %2)",
                                      R"(
  %0 = Input() {name = "x", shape = [2, 3]}
  %1 = Constant() {value = f32[2,3]{1, 2, 3, 4, 5, 7}}
  %2 = Mul(%0, %1)
  return "y" = %2)");
  EXPECT_EQ(status.code(), kDifferent);
  EXPECT_THAT(std::string(status.message()),
              testing::HasSubstr(
                  "output 'y' is not provably equal: the formal expressions differ at [1, 2]"));
}

TEST(Certify, RefusesOtherInterfaces) {
  const std::string net =
      "  %0 = Input() {name = \"x\", shape = [4]}\n  %1 = Relu(%0)\n  return \"y\" = %1";
  EXPECT_EQ(Verdict(net, Replaced(net, "\"y\"", "\"z\"")).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Verdict(net, Replaced(net, "\"x\"", "\"z\"")).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Verdict(net, Replaced(net, "[4]", "[5]")).code(), absl::StatusCode::kInvalidArgument);
}

TEST(Certify, AcceptsAScaleFoldedInTheGraph) {
  const std::string head = R"(
  %0 = Input() {name = "x", shape = [2, 3, 5, 5]}
  %1 = Constant() {symbol = "w", value = f32[4,3,3,3]{W108}}
  %2 = Constant() {symbol = "scale", value = f32[4]{1, 2, 3, 4}}
  %3 = Constant() {symbol = "shift", value = f32[4]{1, 2, 3, 4}}
)";
  const std::string batch_norm = Fill(head + R"(
  %4 = Conv(%0, %1) {strides = [2, 1], dilations = [1, 1], pads = [1, 1, 1, 1]}
  %5 = Reshape(%2) {shape = [4, 1, 1]}
  %6 = Mul(%4, %5)
  %7 = Reshape(%3) {shape = [4, 1, 1]}
  %8 = Add(%6, %7)
  %9 = Relu(%8)
  return "y" = %9)");
  const std::string folded = Fill(head + R"(
  %4 = Reshape(%2) {shape = [4, 1, 1, 1]}
  %5 = Mul(%1, %4)
  %6 = Conv(%0, %5, %3) {strides = [2, 1], dilations = [1, 1], pads = [1, 1, 1, 1]}
  %7 = Relu(%6)
  return "y" = %7)");
  EXPECT_TRUE(Verdict(batch_norm, folded).ok());
  EXPECT_TRUE(Verdict(folded, batch_norm).ok());
  VerifierOptions exact;
  exact.weights = WeightMode::kExact;
  EXPECT_TRUE(Verdict(batch_norm, folded, exact).ok()) << Verdict(batch_norm, folded, exact);
  EXPECT_EQ(Verdict(batch_norm, Replaced(folded, "Mul(%1, %4)", "Add(%1, %4)")).code(), kDifferent);
}

TEST(Certify, FoldsBatchNormalization) {
  const std::string head = R"(
  %0 = Input() {name = "x", shape = [1, 2, 9, 9]}
  %1 = Constant() {symbol = "w", value = f32[3,2,3,3]{W54}}
  %2 = Constant() {symbol = "scale", value = f32[3]{1, 2, 3}}
  %3 = Constant() {symbol = "shift", value = f32[3]{1, 2, 3}}
  %4 = Constant() {symbol = "mean", value = f32[3]{1, 2, 3}}
  %5 = Constant() {symbol = "var", value = f32[3]{1, 2, 3}}
)";
  const Graph original = Parse(Fill(head + R"(
  %6 = Conv(%0, %1) {strides = [1, 1], dilations = [1, 1], pads = [1, 1, 1, 1]}
  %7 = BatchNormalization(%6, %2, %3, %4, %5)
  return "y" = %7)"));
  const std::string folded = Fill(head + R"(
  %6 = Constant() {value = f32[1,3]{1, 1, 1}}
  %7 = Constant() {value = f32[1,3]{0, 0, 0}}
  %8 = Constant() {value = f32[3]{0, 0, 0}}
  %9 = BatchNormalization(%6, %2, %8, %8, %5)
  %10 = BatchNormalization(%7, %2, %3, %4, %5)
  %11 = Reshape(%9) {shape = [3, 1, 1, 1]}
  %12 = Mul(%1, %11)
  %13 = Reshape(%10) {shape = [3]}
  %14 = Conv(%0, %12, %13) {strides = [1, 1], dilations = [1, 1], pads = [1, 1, 1, 1]}
  return "y" = %14)");
  const auto certificate = Certify(original, Parse(folded), {});
  ASSERT_TRUE(certificate.ok()) << certificate.status();
  EXPECT_EQ(certificate->oracle_operands, 9);  // three nodes of three channels each
  EXPECT_LE(certificate->draws.size(), 3u);
  EXPECT_EQ(
      Certify(original, Parse(Replaced(folded, "(%7, %2, %3, %4, %5)", "(%7, %2, %4, %3, %5)")), {})
          .status()
          .code(),
      kDifferent);
}

TEST(Certify, SplitsAndMergesProducts) {
  const std::string merged = Fill(R"(
  %0 = Input() {name = "x", shape = [4, 4]}
  %1 = Constant() {symbol = "w", value = f32[4,4]{W16}}
  %2 = Constant() {symbol = "v", value = f32[4,2]{W8}}
  %3 = Concat(%1, %2) {axis = 1}
  %4 = MatMul(%0, %3)
  return "y" = %4)");
  const std::string apart = Fill(R"(
  %0 = Input() {name = "x", shape = [4, 4]}
  %1 = Constant() {symbol = "w", value = f32[4,4]{W16}}
  %2 = Constant() {symbol = "v", value = f32[4,2]{W8}}
  %3 = MatMul(%0, %1)
  %4 = MatMul(%0, %2)
  %5 = Concat(%3, %4) {axis = 1}
  return "y" = %5)");
  EXPECT_TRUE(Verdict(merged, apart).ok());
  EXPECT_EQ(Verdict(merged, Replaced(apart, "Concat(%3, %4)", "Concat(%4, %3)")).code(),
            kDifferent);
  EXPECT_EQ(
      Verdict(Fill(kProduct), Fill(Replaced(kProduct, "MatMul(%0, %1)", "MatMul(%1, %0)"))).code(),
      kDifferent);
}

TEST(Certify, VerifiesEveryBoxOfAPatch) {
  const std::string original = R"(
  %0 = Input() {name = "x", shape = [1, 1, 6]}
  %1 = Constant() {symbol = "w", value = f32[1,1,3]{1, 2, 3}}
  %2 = Conv(%0, %1) {strides = [1], dilations = [1], pads = [1, 1]}
  return "y" = %2)";
  // Wrong padding, corrected in the two elements at the border.
  const std::string corrected = R"(
  %0 = Input() {name = "x", shape = [1, 1, 6]}
  %1 = Constant() {symbol = "w", value = f32[1,1,3]{1, 2, 3}}
  %2 = Constant() {symbol = "w2", value = f32[1,1,1]{4}}
  %3 = Concat(%2, %0, %2) {axis = 2}
  %4 = Conv(%3, %1) {strides = [1], dilations = [1], pads = [0, 0]}
  %5 = Slice(%0) {starts = [0, 0, 0], ends = [1, 1, 2], steps = [1, 1, 1]}
  %6 = Conv(%5, %1) {strides = [1], dilations = [1], pads = [1, 0]}
  %7 = Slice(%0) {starts = [0, 0, 4], ends = [1, 1, 6], steps = [1, 1, 1]}
  %8 = Conv(%7, %1) {strides = [1], dilations = [1], pads = [0, 1]}
  %9 = Patch(%4, %6, %8) {boxes = [[0:1, 0:1, 0:1], [0:1, 0:1, 5:6]]}
  return "y" = %9)";
  EXPECT_TRUE(Verdict(original, corrected).ok()) << Verdict(original, corrected);
  const std::string first_only =
      Replaced(Replaced(corrected, "Patch(%4, %6, %8)", "Patch(%4, %6)"), ", [0:1, 0:1, 5:6]", "");
  EXPECT_EQ(Verdict(original, first_only).code(), kDifferent);
  const std::string wrong_place = Replaced(first_only, "[[0:1, 0:1, 0:1]]", "[[0:1, 0:1, 1:2]]");
  EXPECT_EQ(Verdict(original, wrong_place).code(), kDifferent);
}

TEST(Certify, NamesTheAxiomsOfNonlinearOperatorsThatItUses) {
  const std::string inside = R"(
  %0 = Input() {name = "x", shape = [4]}
  %1 = Constant() {value = f32[]{2}}
  %2 = Mul(%0, %1)
  %3 = Relu(%2)
  return "y" = %3)";
  const std::string outside = R"(
  %0 = Input() {name = "x", shape = [4]}
  %1 = Constant() {value = f32[]{2}}
  %2 = Relu(%0)
  %3 = Mul(%2, %1)
  return "y" = %3)";
  EXPECT_TRUE(Verdict(inside, outside).ok()) << Verdict(inside, outside);
  const auto by_axiom = Certify(Parse(inside), Parse(outside), {});
  ASSERT_TRUE(by_axiom.ok()) << by_axiom.status();
  ASSERT_GE(by_axiom->axioms.size(), 2u);
  EXPECT_EQ(by_axiom->axioms[0], "canonical form");
  EXPECT_THAT(by_axiom->axioms, testing::Contains("clip of a multiple"));
  EXPECT_EQ(Verdict(inside, Replaced(outside, "{2}", "{-2}")).code(), kDifferent);
  // Relu(0) = 0: it commutes with padding by zeros.
  const std::string padded = R"(
  %0 = Input() {name = "x", shape = [4]}
  %1 = Constant() {value = f32[2]{0, 0}}
  %2 = Concat(%0, %1) {axis = 0}
  %3 = Relu(%2)
  return "y" = %3)";
  const std::string padded_after = R"(
  %0 = Input() {name = "x", shape = [4]}
  %1 = Constant() {value = f32[2]{0, 0}}
  %2 = Relu(%0)
  %3 = Concat(%2, %1) {axis = 0}
  return "y" = %3)";
  EXPECT_TRUE(Verdict(padded, padded_after).ok()) << Verdict(padded, padded_after);
  const auto sigmoid = [](const std::string& text) { return Replaced(text, "Relu", "Sigmoid"); };
  EXPECT_EQ(Verdict(sigmoid(padded), sigmoid(padded_after)).code(), kDifferent);
}

TEST(Certify, RefusesNewDenominators) {
  const std::string plain = R"(
  %0 = Input() {name = "x", shape = [4]}
  %1 = Relu(%0)
  return "y" = %0, "r" = %1)";
  const std::string divided = R"(
  %0 = Input() {name = "x", shape = [4]}
  %1 = Relu(%0)
  %2 = Mul(%0, %1)
  %3 = Div(%2, %1)
  return "y" = %3, "r" = %1)";
  EXPECT_EQ(Verdict(plain, divided).code(), kUnproven);
  EXPECT_TRUE(Verdict(divided, plain).ok()) << Verdict(divided, plain);
  // 1 + relu(x) is positive, relu(x) is not.
  const std::string positive = R"(
  %0 = Input() {name = "x", shape = [4]}
  %1 = Relu(%0)
  %2 = Constant() {value = f32[]{1}}
  %3 = Add(%1, %2)
  %4 = Mul(%0, %3)
  %5 = Div(%4, %3)
  return "y" = %5, "r" = %1)";
  EXPECT_TRUE(Verdict(plain, positive).ok()) << Verdict(plain, positive);
  EXPECT_EQ(Verdict(plain, Replaced(positive, "{1}", "{0}")).code(), kUnproven);
}

/// Programs that an axiom makes equal must be defined alike, too.
TEST(Certify, AxiomsExcuseNoNewDenominator) {
  const std::string head = R"(
  %0 = Input() {name = "x", shape = [4]}
  %1 = Constant() {value = f32[]{2}}
  %2 = Relu(%0)
)";
  const std::string inside =
      head + "  %3 = Mul(%0, %1)\n  %4 = Relu(%3)\n  return \"y\" = %4, \"r\" = %2";
  const std::string outside = head + "  %3 = Mul(%2, %1)\n  return \"y\" = %3, \"r\" = %2";
  const std::string divided = head +
                              "  %3 = Mul(%2, %1)\n  %4 = Mul(%3, %2)\n  %5 = Div(%4, %2)\n" +
                              "  return \"y\" = %5, \"r\" = %2";
  EXPECT_TRUE(Verdict(inside, outside).ok()) << Verdict(inside, outside);
  EXPECT_FALSE(Verdict(inside, divided).ok());
  EXPECT_TRUE(Verdict(divided, inside).ok()) << Verdict(divided, inside);
}

TEST(Certify, MaskedScoresAreLeftOutOfBothPrograms) {
  const std::string masked = R"(
  %0 = Input() {name = "x", shape = [2, 3]}
  %1 = Constant() {value = f32[3]{0, -inf, 0}}
  %2 = Add(%0, %1)
  %3 = Softmax(%2) {axis = 1}
  %4 = Mul(%3, %0)
  return "y" = %4)";
  EXPECT_TRUE(Verdict(masked, Replaced(masked, "Mul(%3, %0)", "Mul(%0, %3)")).ok());
  EXPECT_EQ(Verdict(masked, Replaced(masked, "Mul(%3, %0)", "Mul(%3, %3)")).code(), kDifferent);
}

TEST(Certify, WhereIsAnOracleOfThreeArguments) {
  const std::string original = R"(
  %0 = Input() {name = "x", shape = [2, 2]}
  %1 = Input() {dtype = "bool", name = "c", shape = [2, 2]}
  %2 = Constant() {symbol = "w", value = f32[2,2]{1, 2, 3, 4}}
  %3 = MatMul(%0, %2)
  %4 = Where(%1, %3, %0)
  return "y" = %4)";
  const std::string flat =
      Replaced(Replaced(original, "%4 = Where(%1, %3, %0)", R"(%40 = Reshape(%1) {shape = [4]}
  %5 = Reshape(%3) {shape = [4]}
  %6 = Reshape(%0) {shape = [4]}
  %7 = Where(%40, %5, %6)
  %8 = Reshape(%7) {shape = [2, 2]})"),
               "\"y\" = %4", "\"y\" = %8");
  EXPECT_TRUE(Verdict(original, flat).ok()) << Verdict(original, flat);
  EXPECT_EQ(Verdict(original, Replaced(original, "Where(%1, %3, %0)", "Where(%1, %0, %3)")).code(),
            kDifferent);
}

/// A relation between cut values: (a + b)(a - b) and aa - bb, where a and b occur in both programs.
TEST(Certify, UndoesCutsThatHideARelation) {
  const std::string head = R"(
  %0 = Input() {name = "x", shape = [4]}
  %1 = Input() {name = "z", shape = [4]}
  %2 = Add(%0, %1)
  %3 = Sub(%0, %1)
)";
  const std::string product =
      head + "  %4 = Mul(%2, %3)\n  return \"y\" = %4, \"s\" = %2, \"d\" = %3";
  const std::string squares = head +
                              "  %4 = Mul(%0, %0)\n  %5 = Mul(%1, %1)\n  %6 = Sub(%4, %5)\n  "
                              "return \"y\" = %6, \"s\" = %2, \"d\" = %3";
  EXPECT_TRUE(Verdict(product, squares).ok()) << Verdict(product, squares);
  // Both read the cuts, and need what they are made of: (x + z) - (x - z) = 2 z, and 2 (x + z) - 2
  // x with x from the difference.
  const std::string twice =
      head + "  %4 = Sub(%2, %3)\n  %5 = Mul(%4, %4)\n  return \"y\" = %5, \"s\" = %2, \"d\" = %3";
  const std::string other = head +
                            "  %4 = Add(%1, %1)\n  %5 = Sub(%2, %3)\n  %6 = Mul(%4, %5)\n  return "
                            "\"y\" = %6, \"s\" = %2, \"d\" = %3";
  EXPECT_TRUE(Verdict(twice, other).ok()) << Verdict(twice, other);
}

}  // namespace
}  // namespace mendel
