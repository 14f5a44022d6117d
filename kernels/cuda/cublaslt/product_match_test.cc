// Tests of product matches: operands that are read in place, and nodes that are taken along.

#include "kernels/cuda/cublaslt/product_match.h"

#include <string>
#include <vector>

#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cuda/cublaslt/library_case.h"
#include "kernels/cuda/cublaslt/strided_value.h"

namespace mendel::cuda {
namespace {

using cublaslt_case::Heads;
using cublaslt_case::Matches;
using cublaslt_case::Parsed;
using testing::ElementsAre;

TEST(StridesReshaped, KeepsElementsWhereTheyAre) {
  EXPECT_EQ(StridesReshaped({4, 6}, {6, 1}, {2, 2, 3, 2}), (Ints{12, 6, 2, 1}));
  EXPECT_EQ(StridesReshaped({2, 2, 3, 2}, {12, 6, 2, 1}, {24}), (Ints{1}));
  // Rows that lie apart: columns may be divided, and rows and columns cannot become one.
  EXPECT_EQ(StridesReshaped({4, 6}, {10, 1}, {4, 3, 2}), (Ints{10, 2, 1}));
  EXPECT_EQ(StridesReshaped({4, 6}, {10, 1}, {24}), std::nullopt);
  EXPECT_EQ(StridesReshaped({4, 6}, {1, 4}, {2, 12}), std::nullopt);
  // Dimensions of one element come and go.
  const auto ones = StridesReshaped({4, 1, 6}, {6, 99, 1}, {1, 4, 6, 1});
  ASSERT_TRUE(ones.has_value());
  EXPECT_EQ((*ones)[1], 6);
  EXPECT_EQ((*ones)[2], 1);
  EXPECT_TRUE(StridesReshaped({1}, {1}, {1, 1}).has_value());
}

TEST(MatchProduct, ReadsHeadsInPlace) {
  const Graph graph = Heads();
  const auto matches = Matches(graph);
  ASSERT_EQ(matches.size(), 1u);
  const ProductMatch& match = matches[0];
  EXPECT_EQ(match.left, (ValueId{0, 0}));
  EXPECT_EQ(match.right, (ValueId{1, 0}));
  EXPECT_THAT(match.nodes, ElementsAre(2, 3, 4, 5, 6));
  const LtProduct& product = match.product;
  EXPECT_EQ(product.batch, 3);
  EXPECT_EQ(std::vector<int64_t>({product.m, product.n, product.k}),
            (std::vector<int64_t>{5, 7, 4}));
  EXPECT_EQ(product.left, (LtMatrix{false, 12, 4}));
  EXPECT_EQ(product.right, (LtMatrix{true, 12, 4}));
}

TEST(MatchProduct, RowsThatMeetOneRightSideAreOneMatrix) {
  const Graph graph = Parsed(R"(%0 = Input() {name = "x", shape = [2, 3, 5, 4]}
    %1 = Input() {name = "w", shape = [4, 6]}
    %2 = MatMul(%0, %1)
    return "y" = %2)");
  const auto matches = Matches(graph);
  ASSERT_EQ(matches.size(), 1u);
  EXPECT_EQ(matches[0].product.batch, 1);
  EXPECT_EQ(matches[0].product.m, 30);
}

TEST(MatchProduct, BatchesNeedOneStride) {
  const auto of = [](const std::string& a, const std::string& b) {
    return Matches(Parsed(Cat("%0 = Input() {name = \"a\", shape = [", a,
                              "]}\n%1 = Input() {name = \"b\", shape = [", b,
                              "]}\n%2 = MatMul(%0, %1)\nreturn \"y\" = %2")));
  };
  const auto one_for_all = of("4, 5", "2, 3, 5, 6");
  ASSERT_EQ(one_for_all.size(), 1u);
  EXPECT_EQ(one_for_all[0].product.batch, 6);
  EXPECT_EQ(one_for_all[0].product.left.batch_stride, 0);
  EXPECT_EQ(one_for_all[0].product.right.batch_stride, 30);
  EXPECT_TRUE(of("2, 1, 4, 5", "1, 3, 5, 6").empty());
  EXPECT_TRUE(of("2, 1, 4, 5", "2, 3, 5, 6").empty());
  EXPECT_EQ(of("2, 1, 4, 5", "2, 1, 5, 6").size(), 1u);
  EXPECT_TRUE(of("2, 0, 5", "5, 6").empty());
  EXPECT_TRUE(of("2, 4, 0", "0, 6").empty());
}

/// The epilogues of a product of `dtype`, the node %4.
std::vector<std::string> Epilogues(const std::string& rest, const std::string& dtype = "f32",
                                   Numerics numerics = Numerics::kDefault) {
  const auto input = [&](int id, const char* shape) {
    return Cat("%", id, " = Input() {name = \"x", id, "\", dtype = \"", dtype, "\", shape = [",
               shape, "]}\n");
  };
  std::vector<std::string> found;
  const Graph graph = Parsed(Cat(input(0, "3, 5"), input(1, "5, 6"), input(2, "6"),
                                 input(3, "3, 6"), "%4 = MatMul(%0, %1)\n", rest));
  for (const ProductMatch& match : Matches(graph, numerics))
    found.push_back(EpilogueName(match.product));
  return found;
}

TEST(MatchProduct, TakesTheEpilogueAlong) {
  EXPECT_THAT(Epilogues("%5 = Add(%2, %4)\n%6 = Add(%5, %3)\n%7 = Relu(%6)\nreturn \"y\" = %7"),
              ElementsAre("_residual_bias_relu", "_residual_bias", "_bias", ""));
  EXPECT_THAT(Epilogues("%5 = Gelu(%4) {approximate = \"tanh\"}\nreturn \"y\" = %5", "f16"),
              ElementsAre("_gelu", ""));
  EXPECT_THAT(Epilogues("%5 = Gelu(%4) {approximate = \"tanh\"}\nreturn \"y\" = %5", "bf16"),
              ElementsAre("_gelu", ""));
  // The epilogue ends with the activation. It has no other Gelu, no second vector, and no value
  // that is read elsewhere.
  EXPECT_THAT(Epilogues("%5 = Relu(%4)\n%6 = Add(%5, %2)\nreturn \"y\" = %6"),
              ElementsAre("_relu", ""));
  EXPECT_THAT(Epilogues("%5 = Gelu(%4) {approximate = \"none\"}\nreturn \"y\" = %5", "f16"),
              ElementsAre(""));
  EXPECT_THAT(Epilogues("%5 = Add(%4, %2)\n%6 = Add(%5, %2)\nreturn \"y\" = %6"),
              ElementsAre("_bias", ""));
  EXPECT_THAT(Epilogues("%5 = Relu(%4)\nreturn \"y\" = %5, \"z\" = %4"), ElementsAre(""));
  EXPECT_THAT(Epilogues("%5 = Add(%4, %4)\nreturn \"y\" = %5"), ElementsAre(""));
  // The addition belongs to the summand that is computed last, and inputs are there from the start.
  EXPECT_THAT(Epilogues("%5 = Sin(%3)\n%6 = Add(%4, %5)\nreturn \"y\" = %6"), ElementsAre(""));
  EXPECT_THAT(
      Epilogues("%5 = Input() {name = \"r\", shape = [3, 6]}\n%6 = Add(%4, %5)\nreturn \"y\" = %6"),
      ElementsAre("_residual", ""));
}

TEST(MatchProduct, LeavesOutWhatIsNotAsExactAsOurs) {
  EXPECT_THAT(Epilogues("%5 = Gelu(%4) {approximate = \"tanh\"}\nreturn \"y\" = %5", "f32"),
              ElementsAre(""));
  EXPECT_THAT(
      Epilogues("%5 = Add(%4, %2)\n%6 = Relu(%5)\nreturn \"y\" = %6", "f32", Numerics::kStrict),
      ElementsAre("_bias", ""));
  EXPECT_THAT(Epilogues("%5 = Relu(%4)\nreturn \"y\" = %5", "bf16", Numerics::kStrict),
              ElementsAre(""));
  EXPECT_THAT(Epilogues("%5 = Relu(%4)\nreturn \"y\" = %5", "bf16", Numerics::kBf16),
              ElementsAre("_relu", ""));
}

}  // namespace
}  // namespace mendel::cuda
