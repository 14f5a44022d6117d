#include "verifier/certify/contraction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "base/random.h"
#include "verifier/certify/certify_cases.h"

namespace mendel {
namespace {

using testing::HasSubstr;

/// Every operator that is combined, in one program; and two that are not.
std::string Program(const std::string& last) {
  return Fill(R"(
  %0 = Input() {name = "x", shape = [2, 3, 5, 5]}
  %1 = Constant() {symbol = "w", value = f32[4,3,3,3]{W108}}
  %2 = Constant() {symbol = "b", value = f32[4]{W4}}
  %3 = Conv(%0, %1, %2) {strides = [2, 1], dilations = [1, 1], pads = [1, 1, 1, 1]}
  %4 = Constant() {symbol = "c", value = f32[4,1,1]{W4}}
  %5 = Mul(%3, %4)
  %6 = Constant() {symbol = "d", value = f32[1,5]{W5}}
  %7 = Add(%5, %6)
  %8 = Neg(%7)
  %9 = Sub(%8, %4)
  %10 = Concat(%9, %3, %7) {axis = 1}
  %11 = Concat(%10, %10) {axis = 2}
  %12 = Transpose(%11) {perm = [2, 0, 3, 1]}
  %13 = Constant() {symbol = "m", value = f32[12,7]{W84}}
  %14 = MatMul(%12, %13)
  %15 = Constant() {symbol = "n", value = f32[2,9,5]{W90}}
  %16 = MatMul(%15, %14)
  %17 = Mul(%16, %16)
  %18 = Constant() {symbol = "g", value = f32[6,1,3,3]{W54}}
  %19 = Conv(%0, %18) {strides = [1, 1], dilations = [1, 1], pads = [0, 0, 0, 0], group = 3}
  %20 = Concat(%19, %19) {axis = 1}
)" + last);
}

std::vector<Fp> WholeValues(const Graph& graph, const Draw& draw,
                            std::map<int32_t, FieldValue>& values) {
  const auto visit = [&](ValueId id, const FieldValue& value) { values[id.node] = value; };
  EXPECT_TRUE(EvaluateValues(graph, draw, WeightMode::kSymbolic, InputNaming::kByName,
                             Deadline::Never(), visit)
                  .ok());
  return values.at(graph.outputs()[0].value.node).scalars;
}

TEST(Contraction, CombinesWhatTheOperatorsCompute) {
  Rng rng(7);
  const Draw draw = SeededDraw(rng);
  const FieldEvaluator evaluator(draw, WeightMode::kSymbolic);
  int compared = 0;
  for (int node = 3; node <= 20; ++node) {
    const std::string last = "  return \"y\" = %" + std::to_string(node);
    const Graph graph = Parse(Program(last));
    std::map<int32_t, FieldValue> values;
    WholeValues(graph, draw, values);
    ConstantKeys constants(WeightMode::kSymbolic);
    const Numbering numbering = NumberValues(graph, graph, {}, constants);
    const std::vector<bool> free(numbering.values.size(), false);
    const Contraction contraction(numbering, free);
    const int32_t number = numbering.original_outputs[0];
    const Shape& shape = numbering.TypeOf(number).shape;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      const auto plan = contraction.Prepare(number, axis);
      if (!plan.has_value()) continue;
      const FieldValue factors = evaluator.Symbol("slice", "test", shape[axis]);
      const auto elements = [&](int32_t n) -> const FieldValue& {
        EXPECT_THAT(plan->whole, testing::Contains(n));
        return values.at(numbering.values[static_cast<size_t>(n)].origin.value.node);
      };
      const FieldValue found =
          contraction.Evaluate(evaluator, number, axis, factors.scalars, elements);
      const FieldValue wanted =
          CombineSlices(evaluator.field(), values.at(graph.outputs()[0].value.node), shape, axis,
                        factors.scalars);
      EXPECT_EQ(found.scalars, wanted.scalars) << "node " << node << " axis " << axis;
      ++compared;
    }
  }
  EXPECT_GT(compared, 30);
}

TEST(Contraction, SlicesHaveFactorsOfTheirOwn) {
  const PrimeField field(1009);
  const FieldValue value{{{1}, {2}, {3}, {4}, {5}, {6}}, {}, false};
  const std::vector<Fp> factors = {{10}, {100}};
  EXPECT_EQ(CombineSlices(field, value, {2, 3}, 0, factors).scalars,
            (std::vector<Fp>{{410}, {520}, {630}}));
  EXPECT_EQ(CombineSlices(field, value, {3, 2}, 1, factors).scalars,
            (std::vector<Fp>{{210}, {430}, {650}}));
  const std::vector<Fp> many(300, Fp{1008});
  const FieldValue ones{std::vector<Fp>(300, Fp{1008}), {}, false};
  EXPECT_EQ(CombineSlices(field, ones, {300}, 0, many).scalars, (std::vector<Fp>{{300}}));
}

/// y = x w for eight columns, computed in two halves of the summed dimension.
const char kWide[] = R"(
  %0 = Input() {name = "x", shape = [5, 6]}
  %1 = Constant() {symbol = "w", value = f32[6,8]{W48}}
  %2 = MatMul(%0, %1)
  return "y" = %2)";
const char kHalves[] = R"(
  %0 = Input() {name = "x", shape = [5, 6]}
  %1 = Constant() {symbol = "w", value = f32[6,8]{W48}}
  %2 = Slice(%0) {starts = [0, 0], ends = [5, 2], steps = [1, 1]}
  %3 = Slice(%0) {starts = [0, 2], ends = [5, 6], steps = [1, 1]}
  %4 = Slice(%1) {starts = [0, 0], ends = [2, 8], steps = [1, 1]}
  %5 = Slice(%1) {starts = [2, 0], ends = [6, 8], steps = [1, 1]}
  %6 = MatMul(%2, %4)
  %7 = MatMul(%3, %5)
  %8 = Add(%6, %7)
  return "y" = %8)";

TEST(Contraction, CertifiesByOneCombination) {
  const auto certificate = Certify(Parse(Fill(kWide)), Parse(Fill(kHalves)), {});
  ASSERT_TRUE(certificate.ok()) << certificate.status();
  EXPECT_EQ(certificate->degree, 3);  // x, w and the factor of the slice
  EXPECT_GE(certificate->log2_norm, 3 + std::log2(6.0));
  EXPECT_LE(certificate->bound_log2, -110);
  EXPECT_TRUE(Replay(Parse(Fill(kWide)), Parse(Fill(kHalves)), *certificate).ok());
}

TEST(Contraction, OneWrongSliceIsFoundAndNamed) {
  const std::string columns = Fill(R"(
  %0 = Input() {name = "x", shape = [5, 6]}
  %1 = Constant() {symbol = "w", value = f32[6,8]{W48}}
  %2 = Slice(%1) {starts = [0, 0], ends = [6, 3], steps = [1, 1]}
  %3 = Slice(%1) {starts = [0, 3], ends = [6, 6], steps = [1, 1]}
  %4 = Slice(%1) {starts = [0, 6], ends = [6, 8], steps = [1, 1]}
  %5 = MatMul(%0, %2)
  %6 = MatMul(%0, %3)
  %7 = MatMul(%0, %4)
  %8 = Concat(%5, %6, %7) {axis = 1}
  return "y" = %8)");
  EXPECT_TRUE(Verdict(Fill(kWide), columns).ok()) << Verdict(Fill(kWide), columns);
  const absl::Status exchanged =
      Verdict(Fill(kWide), Replaced(columns, "Concat(%5, %6, %7)", "Concat(%6, %5, %7)"));
  EXPECT_EQ(exchanged.code(), kDifferent);
  EXPECT_THAT(std::string(exchanged.message()), HasSubstr("differ at [0, 0]"));
  const absl::Status last = Verdict(Fill(kWide), Replaced(columns, "starts = [0, 6], ends = [6, 8]",
                                                          "starts = [0, 5], ends = [6, 7]"));
  EXPECT_EQ(last.code(), kDifferent);
  EXPECT_THAT(std::string(last.message()), HasSubstr("differ at [0, 6]"));
}

/// relu(v)^2 + v w behind a product that the plan computes another way: only the product is
/// evaluated.
TEST(Contraction, GuessesWhereALocalChangeEnds) {
  const std::string tail = R"(
  %20 = Relu(%PRODUCT)
  %21 = Mul(%20, %20)
  %22 = Constant() {symbol = "v", value = f32[8,8]{W64}}
  %23 = MatMul(%21, %22)
  return "y" = %23)";
  const auto with_tail = [&](const std::string& body, const std::string& product) {
    return Fill(body.substr(0, body.find("  return")) +
                Replaced(tail.substr(1), "%PRODUCT", product));
  };
  const Graph original = Parse(with_tail(kWide, "%2")), plan = Parse(with_tail(kHalves, "%8"));
  const auto certificate = Certify(original, plan, {});
  ASSERT_TRUE(certificate.ok()) << certificate.status();
  EXPECT_EQ(certificate->segments, 1);
  EXPECT_EQ(certificate->shared_nodes, 3);
  EXPECT_EQ(certificate->elements, 40);
  EXPECT_TRUE(Replay(original, plan, *certificate).ok());
}

}  // namespace
}  // namespace mendel
