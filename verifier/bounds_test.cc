// The parts of a bound, and what may be cut: checks of the certificate checker that no verdict
// shows.

#include "verifier/bounds.h"

#include <gtest/gtest.h>

#include <cmath>

#include "verifier/certify/certify_cases.h"
#include "verifier/certify/numbering.h"
#include "verifier/regions/segments.h"

namespace mendel {
namespace {

constexpr uint64_t kPrime = (uint64_t{1} << 59) + 55;  // the bound only asks whether it is large

TEST(SegmentBound, EveryPairOfOperandsMustStayApart) {
  SegmentBound bound;
  ValueBound value{.element = Bound::Symbol(), .operands = 1000, .operand = Bound::Symbol()};
  bound.AddToCone(value);
  bound.Compare(Bound::Symbol(), Bound::Symbol());
  // 1000 operands and the pinned zero: 500,500 pairs, each with a difference of degree 1, and the
  // difference of the outputs.
  EXPECT_NEAR(bound.Log2Miss(kPrime), std::log2(500501.0) - 59, 1e-9);
  bound.AddToCone(value);
  EXPECT_NEAR(bound.Log2Miss(kPrime), std::log2(2001.0 * 1000 + 1) - 59, 1e-9);
}

TEST(SegmentBound, OperandsOfOtherElementsDoNotCount) {
  SegmentBound bound;
  bound.AddToCone({.element = {}, .operands = 1000, .operands_of_element = 2, .operand = {}}, 3);
  EXPECT_EQ(bound.operands, 6);
  bound.AddToCone({.element = {}, .operands = 1000, .operand = {}}, 3);  // shared by all elements
  EXPECT_EQ(bound.operands, 1006);
}

/// Operands in the cone of one element of relu(x) w, x of 8 rows, behind `rest`.
double OperandsOf(const std::string& rest) {
  const std::string text = R"(
  %0 = Input() {name = "x", shape = [8, 4]}
  %1 = Input() {name = "w", shape = [4, 4]}
  %2 = Exp(%0)
  %3 = MatMul(%2, %1))" + rest;
  const Graph a = Parse(text + "\n  %5 = Relu(%4)\n  return \"y\" = %5");
  const Graph b = Parse(text + "\n  %5 = Abs(%4)\n  return \"y\" = %5");
  ConstantKeys constants(WeightMode::kSymbolic);
  const Numbering numbering = NumberValues(a, b, {}, constants);
  Partition partition = MakePartition(numbering, {}, true);
  const auto bounds = BoundSegments(numbering, partition, WeightMode::kSymbolic);
  EXPECT_TRUE(bounds.ok()) << bounds.status();
  return bounds.ok() ? bounds->front().operands : 0;
}

TEST(SegmentBound, CountsTheOperandsThatOneElementNeeds) {
  // A row of four for each side, and an operand of relu and of abs.
  EXPECT_EQ(OperandsOf("\n  %4 = Neg(%3)"), 4 + 4 + 2);
  EXPECT_EQ(OperandsOf("\n  %4 = Transpose(%3) {perm = [1, 0]}"), 4 + 4 + 2);
  EXPECT_EQ(OperandsOf("\n  %4 = ReduceSum(%3) {axes = [0], keepdims = 0}"), 32 + 2);
  // Rows 1 and 4 lie in a box of four rows.
  EXPECT_EQ(OperandsOf("\n  %9 = Slice(%3) {starts = [1, 0], ends = [6, 4], steps = [3, 1]}\n"
                       "  %4 = ReduceSum(%9) {axes = [0], keepdims = 0}"),
            16 + 16 + 2);
}

TEST(SegmentBound, DegreesOfOperandsCount) {
  SegmentBound bound;
  bound.AddToCone(
      {.element = Bound::Symbol(), .operands = 2, .operand = {.num_degree = 50, .log2_num = 70}});
  bound.Compare(Bound::Symbol(), Bound::Symbol());
  EXPECT_EQ(bound.degree, 50);
  EXPECT_GE(bound.log2_norm, 71);
  SegmentBound none;  // without a call of an oracle no operand counts
  ValueBound value;
  value.element.num_degree = 50;
  none.AddToCone(value);
  none.Compare(Bound::Symbol(), Bound::Symbol());
  EXPECT_EQ(none.degree, 1);
}

TEST(SegmentBound, ARootOfTwoDoublesTheBitsOfTheNorm) {
  const auto miss = [](bool root, double bits) {
    SegmentBound bound;
    ValueBound value;
    value.has_root_of_two = root;
    bound.AddToCone(value);
    bound.Compare({.num_degree = 1, .log2_num = bits}, {});
    return bound.Log2Miss(kPrime);
  };
  EXPECT_EQ(miss(false, 40), miss(true, 25));  // nothing but the degree
  EXPECT_GT(miss(true, 40), miss(false, 40));
  EXPECT_NEAR(std::exp2(miss(true, 590)) - 0x1p-59, 2 * (std::exp2(miss(false, 590)) - 0x1p-59),
              1e-20);
}

TEST(MakePartition, NeverCutsIntegers) {
  const Graph graph = Parse(R"(
  %0 = Input() {name = "x", shape = [4]}
  %1 = Constant() {value = i64[2]{0, 1}}
  %2 = Add(%1, %1)
  %3 = Gather(%0, %2) {axis = 0}
  %4 = Relu(%3)
  return "y" = %4)");
  ConstantKeys constants(WeightMode::kSymbolic);
  const Numbering numbering = NumberValues(graph, graph, {}, constants);
  const Partition partition = MakePartition(numbering, {}, false);
  int floats = 0;
  for (size_t number = 0; number < partition.free.size(); ++number) {
    const bool is_float = IsFloat(numbering.TypeOf(static_cast<int32_t>(number)).dtype);
    EXPECT_TRUE(is_float || !partition.free[number]);
    floats += partition.free[number] ? 1 : 0;
  }
  EXPECT_EQ(floats, 2);
}

}  // namespace
}  // namespace mendel
