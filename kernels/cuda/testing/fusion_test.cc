// Fusion decides which nodes one kernel computes, and how the kernel reads memory.

#include "base/status.h"
#include "gmock/gmock.h"
#include "graph/text.h"
#include "gtest/gtest.h"
#include "kernels/cuda/backend/program.h"
#include "kernels/cuda/fusion/position.h"
#include "kernels/cuda/fusion/preamble.h"

namespace mendel::cuda {
namespace {

using testing::HasSubstr;

DeviceProgram Lower(const std::string& body) {
  const auto graph = ParseGraph("graph \"g\" {\n" + body + "\n}");
  EXPECT_TRUE(graph.ok()) << graph.status();
  auto program = LowerToDevice(*graph);
  EXPECT_TRUE(program.ok()) << program.status();
  return *std::move(program);
}

std::vector<std::string> Kernels(const DeviceProgram& program) {
  std::vector<std::string> names;
  for (const DeviceLaunch& launch : program.launches) names.push_back(launch.info.kernel);
  return names;
}

TEST(Fusion, ChainsAreOneVectorKernel) {
  const DeviceProgram program = Lower(R"(
    %0 = Input() {name = "x", shape = [3, 8]}
    %1 = Input() {name = "b", shape = [8]}
    %2 = Add(%0, %1)
    %3 = Relu(%2)
    %4 = Reshape(%3) {shape = [24]}
    return "y" = %4)");
  EXPECT_THAT(Kernels(program), testing::ElementsAre("elements_of_3_by_4"));
  const DeviceProgram flat = Lower(R"(
    %0 = Input() {name = "x", shape = [3, 8]}
    %1 = Input() {name = "b", shape = [8]}
    %2 = Add(%0, %1)
    %3 = Relu(%2)
    return "y" = %3)");
  EXPECT_THAT(Kernels(flat), testing::ElementsAre("elements_of_2_by_4"));
  EXPECT_THAT(flat.texts[0], HasSubstr("reinterpret_cast<const Pack<float, 4>*>(p1"));
}

TEST(Fusion, TailsAreExact) {
  const DeviceProgram program = Lower(R"(
    %0 = Input() {name = "x", shape = [3, 7]}
    %1 = Exp(%0)
    return "y" = %1)");
  EXPECT_THAT(program.texts[0], HasSubstr("if (first + 4 <= 21)"));
  EXPECT_EQ(program.launches[0].pointers.back().bytes, 84);
}

TEST(Fusion, SumsTakeTheirEpilogueAlong) {
  EXPECT_THAT(Kernels(Lower(R"(
    %0 = Input() {name = "x", shape = [2, 3, 8]}
    %1 = Constant() {symbol = "w", value = f32[1, 3, 1]{1, 2, 3}}
    %2 = Mul(%0, %1)
    %3 = Softmax(%2) {axis = 2}
    %4 = Mul(%3, %0)
    return "y" = %4)")),
              testing::ElementsAre("rows_of_3_by_4"));
  // Two sums are two kernels, and a value that several nodes read is computed once.
  EXPECT_THAT(Kernels(Lower(R"(
    %0 = Input() {name = "x", shape = [2, 8]}
    %1 = Exp(%0)
    %2 = ReduceSum(%1) {axes = [1], keepdims = 1}
    %3 = Div(%1, %2)
    return "y" = %3)")),
              testing::ElementsAre("elements_by_4", "rows_by_4", "elements_by_4"));
}

TEST(Fusion, RowsAreReadByVectorsWhereTheyLieSideBySide) {
  const auto kernels = [](const std::string& shape, const std::string& op) {
    return Kernels(Lower(
        Cat("%0 = Input() {name = \"x\", shape = ", shape, "}\n%1 = ", op, "\nreturn \"y\" = %1")));
  };
  EXPECT_THAT(kernels("[2, 3, 8]", "Softmax(%0) {axis = 2}"), testing::ElementsAre("rows_by_4"));
  EXPECT_THAT(kernels("[2, 3, 4]", "ReduceSum(%0) {axes = [1, 2], keepdims = 0}"),
              testing::ElementsAre("rows_by_4"));
  // Registers keep a row; scale and bias are read as the rows are.
  for (const std::string dtype : {"f32", "f16"}) {
    const auto normalized = [&](const std::string& shape, const std::string& parameters,
                                const std::string& op) {
      const auto input = [&](const std::string& name, const std::string& of) {
        return Cat("Input() {dtype = \"", dtype, "\", name = \"", name, "\", shape = ", of, "}\n");
      };
      return Kernels(Lower(Cat("%0 = ", input("x", shape), "%1 = ", input("s", parameters), "%2 = ",
                               input("b", parameters), "%3 = ", op, "\nreturn \"y\" = %3")));
    };
    const std::string by = dtype == "f32" ? "rows_by_4" : "rows_by_8";
    EXPECT_THAT(normalized("[4, 768]", "[768]", "LayerNormalization(%0, %1, %2) {axis = 1}"),
                testing::ElementsAre(by));
    EXPECT_THAT(
        normalized("[2, 8, 4, 8]", "[8]", "GroupNormalization(%0, %1, %2) {num_groups = 2}"),
        testing::ElementsAre(by));
    EXPECT_THAT(normalized("[2, 8, 4, 8]", "[8]", "InstanceNormalization(%0, %1, %2)"),
                testing::ElementsAre(by));
  }
  EXPECT_THAT(kernels("[2, 3, 6]", "Softmax(%0) {axis = 2}"), testing::ElementsAre("rows"))
      << "6 is not a multiple of 4";
  EXPECT_THAT(kernels("[2, 8, 4]", "Softmax(%0) {axis = 1}"), testing::ElementsAre("rows"));
  EXPECT_THAT(kernels("[8, 3, 4]", "ReduceSum(%0) {axes = [0, 2], keepdims = 0}"),
              testing::ElementsAre("rows"));
  EXPECT_THAT(Kernels(Lower(R"(
    %0 = Input() {name = "x", shape = [8, 4]}
    %1 = Transpose(%0) {perm = [1, 0]}
    %2 = Softmax(%1) {axis = 1}
    return "y" = %2)")),
              testing::ElementsAre("rows_of_2"))
      << "what a thread reads does not lie side by side";
}

TEST(Fusion, WeightsStayInMemoryAndLiteralsDoNot) {
  const DeviceProgram program = Lower(R"(
    %0 = Input() {name = "x", shape = [4]}
    %1 = Constant() {symbol = "w", value = f32[1]{7}}
    %2 = Constant() {value = f32[]{0.5}}
    %3 = Mul(%0, %1)
    %4 = Mul(%3, %2)
    return "y" = %4)");
  EXPECT_EQ(program.weights.size(), 256u);
  EXPECT_THAT(program.texts[0], HasSubstr("0.5f"));
}

TEST(Fusion, EqualKernelsAreOneText) {
  const DeviceProgram program = Lower(R"(
    %0 = Input() {name = "x", shape = [2, 8]}
    %1 = Softmax(%0) {axis = 1}
    %2 = Softmax(%1) {axis = 1}
    return "y" = %2)");
  EXPECT_EQ(program.launches.size(), 2u);
  EXPECT_EQ(program.texts.size(), 1u);
}

TEST(Fusion, ExpressionsAreSimplified) {
  EXPECT_EQ(Added("0", "a"), "a");
  EXPECT_EQ(Added("a", -3), "(a - 3)");
  EXPECT_EQ(Scaled("a", 1), "a");
  EXPECT_EQ(Scaled("a", 0), "0");
  EXPECT_EQ(Modulo("a", 1), "0");
  EXPECT_EQ(FlatOf({2, 1, 5}, {{"a", "b", "c"}}), "((a * 5) + c)");
  EXPECT_EQ(LiteralOf(DType::kF32, 0.1), "0.100000001f");
  EXPECT_EQ(LiteralOf(DType::kF64, -2.0), "(-2.0)");
  EXPECT_EQ(LiteralOf(DType::kI8, -2.0), "(-2ll)");
}

}  // namespace
}  // namespace mendel::cuda
