#include "verifier/certify/part_cuts.h"

#include <gtest/gtest.h>

#include "base/status.h"
#include "graph/emitter.h"

namespace mendel {
namespace {

constexpr int64_t kRows = 12, kColumns = 16;
/// Enough quotients by sums of exponentials that no prime exceeds the degree of the whole.
constexpr int kLayers = 20;

Tensor Weight(int layer) {
  return Tensor::Filled({DType::kF32, {kColumns, kColumns}}, 0.1 * layer);
}

/// Layers on `rows` of x, each position for itself but for a mean over all rows of x; then the last
/// row. `wrong_layer`: that one reads another weight. `divided`: the row is multiplied and divided
/// by a number that may be zero.
Graph Layers(bool early, int64_t row, int wrong_layer = -1, bool divided = false) {
  Emitter e("layers");
  const ValueId x = e.Input("x", {DType::kF32, {kRows, kColumns}});
  const auto cut = [&](ValueId y) { return e.Slice(y, 0, row, row + 1); };
  const ValueId mean = e.Op("ReduceMean", {x}, {{"axes", Ints{0}}, {"keepdims", int64_t{1}}});
  ValueId y = early ? cut(x) : x;
  for (int layer = 0; layer < kLayers; ++layer) {
    const int name = layer == wrong_layer ? kLayers : layer;
    const ValueId w = e.Constant(Weight(layer), Cat("w", name));
    const ValueId z = e.Add(e.MatMul(y, w), mean);
    const Attributes along_columns = {{"axes", Ints{1}}, {"keepdims", int64_t{1}}};
    y = e.Op("Div", {z, e.Op("ReduceSum", {e.Op("Exp", {z})}, along_columns)});
  }
  if (!early) y = cut(y);
  if (divided) {
    const ValueId sum = e.Op("ReduceSum", {cut(x)}, {{"axes", Ints{1}}, {"keepdims", int64_t{1}}});
    y = e.Op("Div", {e.Op("Mul", {y, sum}), sum});
  }
  e.Output("y", y);
  auto graph = e.Finish();
  MENDEL_CHECK(graph.ok());
  return *std::move(graph);
}

TEST(PartCuts, AreFoundWhereThePlanComputesARow) {
  const Graph original = Layers(/*early=*/false, 7), plan = Layers(/*early=*/true, 7);
  const auto cuts = FindPartCuts(original, plan, {});
  ASSERT_TRUE(cuts.ok()) << cuts.status();
  EXPECT_EQ(cuts->size(), 5 * static_cast<size_t>(kLayers));
  for (const PartCut& cut : *cuts) {
    EXPECT_EQ(original.node(cut.original.node).op, plan.node(cut.plan.node).op);
    EXPECT_EQ(PositionsString(cut.grid[0]), "7:8");
  }
  const auto both = WithPartCuts(original, plan, *cuts);
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(both->first.outputs().size(), cuts->size() + 1);
  EXPECT_EQ(both->second.inputs().size(), cuts->size() + 1);
}

TEST(PartCuts, ProveWhatTheWholeHasTooLargeDegreesFor) {
  const Graph original = Layers(/*early=*/false, 7), plan = Layers(/*early=*/true, 7);
  const auto certificate = Certify(original, plan, {});
  ASSERT_TRUE(certificate.ok()) << certificate.status();
  EXPECT_EQ(certificate->axioms, std::vector<std::string>{"parts of values"});
  EXPECT_LE(certificate->bound_log2, -80);
  EXPECT_TRUE(Replay(original, plan, *certificate).ok());
  Certificate other = *certificate;
  other.axioms.clear();
  EXPECT_FALSE(Replay(original, plan, other).ok());
}

TEST(PartCuts, ProveNoWrongPlan) {
  const Graph original = Layers(/*early=*/false, 7);
  EXPECT_FALSE(Certify(original, Layers(/*early=*/true, 6), {}).ok()) << "another row";
  for (int layer = 0; layer < kLayers; ++layer)
    EXPECT_FALSE(Certify(original, Layers(/*early=*/true, 7, layer), {}).ok()) << "layer " << layer;
}

TEST(PartCuts, ProveNoPlanThatIsUndefined) {
  const Graph original = Layers(/*early=*/false, 7);
  EXPECT_FALSE(Certify(original, Layers(/*early=*/true, 7, -1, /*divided=*/true), {}).ok());
}

/// A plan whose parts are right and whose output is not, and one with a cut that is not true.
TEST(PartCuts, AFalseCutProvesNothing) {
  const Graph original = Layers(/*early=*/false, 7), plan = Layers(/*early=*/true, 7);
  const auto cuts = FindPartCuts(original, plan, {});
  ASSERT_TRUE(cuts.ok());
  for (size_t k = 0; k < cuts->size(); ++k) {
    std::vector<PartCut> wrong = *cuts;
    wrong[k].grid[0] = Positions::Range(6, 1);
    const auto both = WithPartCuts(original, plan, wrong);
    ASSERT_TRUE(both.ok()) << both.status();
    EXPECT_FALSE(Certify(both->first, both->second, {}).ok()) << "cut " << k;
  }
}

}  // namespace
}  // namespace mendel
