#include "mutator/saving.h"

#include <gtest/gtest.h>

#include "graph/emitter.h"
#include "graph/rewrite.h"
#include "mutator/sample.h"

namespace mendel {
namespace {

Graph Products(bool merged) {
  Emitter e;
  const ValueId x = e.Input("in0", {DType::kF32, {32, 16}});
  const ValueId a = e.Constant(Tensor::Filled({DType::kF32, {16, 64}}, 1), "a");
  const ValueId b = e.Constant(Tensor::Filled({DType::kF32, {64, 16}}, 1), "b");
  e.Output("out0", merged ? e.MatMul(x, e.MatMul(a, b)) : e.MatMul(e.MatMul(x, a), b));
  return *e.Finish();
}

Graph CroppedConv(bool early, bool biased) {
  Emitter e;
  ValueId x = e.Input("in0", {DType::kF32, {1, 2, 12, 10}});
  const ValueId w = e.Constant(Tensor::Filled({DType::kF32, {4, 2, 1, 1}}, 1), "w");
  const auto crop = [&](ValueId value) { return e.Slice(e.Slice(value, 2, 3, 9), 3, 2, 6); };
  if (early) x = crop(x);
  std::vector<ValueId> operands = {x, w};
  if (biased) operands.push_back(e.Constant(Tensor::Filled({DType::kF32, {4}}, 1), "b"));
  x = e.Op("Conv", operands, WindowAttributes(2, 1, 1, 0));
  e.Output("out0", early ? x : crop(x));
  return *e.Finish();
}

TEST(Saving, ProductsMergedAtLoadTime) {
  EXPECT_EQ(RunTimeMultiplications(Products(false)), 2 * 32 * 16 * 64);
  const auto sentences = DescribeSaving(Products(false), Products(true), Rule{});
  ASSERT_EQ(sentences.size(), 3u);
  EXPECT_EQ(sentences[0],
            "2 products merged at load time into 1: 8.0x fewer multiplications (8192 instead of "
            "65536)");
  EXPECT_EQ(sentences[1], "without 1 MatMul");
  EXPECT_EQ(sentences[2], "makes 1.0 kB of weights at load time");
}

TEST(Saving, PositionsThatNobodyReads) {
  Rule rule;
  rule.because = "no output reads the rest";
  for (const bool biased : {false, true}) {
    const auto sentences =
        DescribeSaving(CroppedConv(false, biased), CroppedConv(true, biased), rule);
    ASSERT_EQ(sentences.size(), 2u);
    EXPECT_EQ(sentences[0],
              "Conv computes 6x4 of 12x10 positions, because no output reads the rest");
    EXPECT_EQ(sentences[1], "5.0x fewer multiplications (192 instead of 960)");
  }
}

TEST(Saving, TheHeaviestOfSeveralNodesIsNamed) {
  const auto chain = [](bool early) {
    Emitter e;
    ValueId x = e.Input("in0", {DType::kF32, {8, 4}});
    if (early) x = e.Slice(x, 0, 0, 2);
    x = e.MatMul(x, e.Constant(Tensor::Filled({DType::kF32, {4, 4}}, 1), "w"));
    x = e.Op("Relu", {x});
    e.Output("out0", early ? x : e.Slice(x, 0, 0, 2));
    return *e.Finish();
  };
  Rule rule;
  rule.because = "no output reads the rest";
  const auto sentences = DescribeSaving(chain(false), chain(true), rule);
  ASSERT_EQ(sentences.size(), 2u);
  EXPECT_EQ(sentences[0],
            "MatMul computes 2 of 8 positions (1 other node a part, too), because no output reads "
            "the rest");
  // Other rules have other nodes, and their sizes say nothing.
  EXPECT_EQ(DescribeSaving(chain(false), chain(true), Rule{}).size(), 1u);
}

TEST(Saving, NothingWhereNothingChanges) {
  EXPECT_TRUE(DescribeSaving(Products(true), Products(true), Rule{}).empty());
}

}  // namespace
}  // namespace mendel
