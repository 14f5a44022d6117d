#include "verifier/weights/weight_pieces.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "graph/evaluate.h"
#include "graph/text.h"
#include "verifier/compare.h"
#include "verifier/constants.h"
#include "verifier/verifier.h"
#include "verifier/weights/large_weights.h"

namespace mendel {
namespace {

/// Constants above this size are cut.
constexpr int64_t kSmall = 20;

Tensor Weight(Shape shape, uint64_t seed, double first = 0) {
  Rng rng(seed);
  std::vector<double> values;
  for (int64_t k = NumElements(shape); k > 0; --k) values.push_back(rng.Normal());
  if (first != 0) values[0] = first;
  return Tensor::FromDoubles({DType::kF32, std::move(shape)}, values);
}

/// Columns [begin, end) of a matrix.
Tensor Columns(const Tensor& matrix, int64_t begin, int64_t end) {
  std::vector<double> values;
  for (int64_t i = 0; i < matrix.shape()[0]; ++i) {
    for (int64_t j = begin; j < end; ++j)
      values.push_back(matrix.DoubleAt(i * matrix.shape()[1] + j));
  }
  return Tensor::FromDoubles({DType::kF32, {matrix.shape()[0], end - begin}}, values);
}

const TensorType kInput{DType::kF32, {2, 6}};

ValueId MatMul(GraphBuilder& b, ValueId x, ValueId w) { return *b.Add("MatMul", {x, w}); }

/// relu(x q) (x k) + x v from three matrices.
Graph Attention(GraphBuilder& b, const std::vector<ValueId>& products) {
  const ValueId gated = *b.Add("Mul", {*b.Add("Relu", {products[0]}), products[1]});
  b.Output("y", *b.Add("Add", {gated, products[2]}));
  return *b.Build();
}

/// The graph cuts a fused weight, whose first element may be another one.
Graph SplitsWeightOf(double first) {
  GraphBuilder b;
  const ValueId x = b.Input("x", kInput);
  const ValueId w = b.Constant(Weight({6, 12}, 7, first), "qkv");
  const int32_t split = *b.AddNode("Split", {w}, {{"axis", int64_t{1}}, {"sizes", Ints{4, 4, 4}}});
  return Attention(b,
                   {MatMul(b, x, {split, 0}), MatMul(b, x, {split, 1}), MatMul(b, x, {split, 2})});
}

Graph SplitsWeight() { return SplitsWeightOf(0); }

/// It cuts the product by the fused weight.
Graph SplitsProduct() {
  GraphBuilder b;
  const ValueId x = b.Input("x", kInput);
  const ValueId product = MatMul(b, x, b.Constant(Weight({6, 12}, 7), "qkv"));
  const int32_t split =
      *b.AddNode("Split", {product}, {{"axis", int64_t{1}}, {"sizes", Ints{4, 4, 4}}});
  return Attention(b, {{split, 0}, {split, 1}, {split, 2}});
}

/// Weights of their own.
Graph Separate() {
  GraphBuilder b;
  const ValueId x = b.Input("x", kInput);
  const Tensor w = Weight({6, 12}, 7);
  std::vector<ValueId> products;
  for (int64_t k = 0; k < 3; ++k)
    products.push_back(MatMul(b, x, b.Constant(Columns(w, 4 * k, 4 * k + 4), Cat("w", k))));
  return Attention(b, products);
}

/// Rows of the transpose, by Slice and Split behind one another.
Graph SlicesTransposed() {
  GraphBuilder b;
  const ValueId x = b.Input("x", kInput);
  const Tensor w = Weight({6, 12}, 7);
  std::vector<double> turned;
  for (int64_t j = 0; j < 12; ++j) {
    for (int64_t i = 0; i < 6; ++i) turned.push_back(w.DoubleAt(i * 12 + j));
  }
  const ValueId t = *b.Add(
      "Transpose", {b.Constant(Tensor::FromDoubles({DType::kF32, {12, 6}}, turned), "qkv_t")},
      {{"perm", Ints{1, 0}}});
  const ValueId q =
      *b.Add("Slice", {t}, {{"starts", Ints{0, 0}}, {"ends", Ints{6, 4}}, {"steps", Ints{1, 1}}});
  const ValueId rest =
      *b.Add("Slice", {t}, {{"starts", Ints{0, 4}}, {"ends", Ints{6, 12}}, {"steps", Ints{1, 1}}});
  const int32_t kv = *b.AddNode("Split", {rest}, {{"axis", int64_t{1}}, {"sizes", Ints{4, 4}}});
  return Attention(b, {MatMul(b, x, q), MatMul(b, x, {kv, 0}), MatMul(b, x, {kv, 1})});
}

int64_t LargestValueOfWeights(const Graph& graph) {
  int64_t largest = 0;
  std::vector<bool> stored(graph.nodes().size(), false);
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    stored[i] =
        IsConstant(node) ||
        (!IsInput(node) && std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
          return stored[static_cast<size_t>(input.node)];
        }));
    for (const TensorType& type : node.outputs)
      largest = std::max(largest, stored[i] ? NumElements(type) : 0);
  }
  return largest;
}

HostValue Evaluated(const Graph& graph) {
  HostValue x{kInput, {}, {}};
  Rng rng(3);
  for (int64_t k = NumElements(kInput); k > 0; --k) x.scalars.push_back(rng.Normal());
  return (*Evaluate(graph, {&x, 1}))[0];
}

using Form = Graph (*)();
const std::vector<Form> kForms = {&SplitsWeight, &SplitsProduct, &Separate, &SlicesTransposed};

TEST(CutLargeWeights, HoldsCellsAndComputesTheSame) {
  const HostValue expected = Evaluated(SplitsWeight());
  for (size_t i = 0; i < kForms.size(); ++i) {
    for (size_t j = 0; j < kForms.size(); ++j) {
      const auto cut = CutLargeWeights(kForms[i](), kForms[j](), kSmall);
      ASSERT_TRUE(cut.ok()) << cut.status();
      // A product by the whole is cut where something else is.
      const bool is_cut = kForms[i] != &SplitsProduct || kForms[j] == &SplitsWeight;
      if (is_cut) {
        EXPECT_LE(LargestValueOfWeights(cut->first), 24) << i << " " << j;
      }
      for (const Graph* graph : {&cut->first, &cut->second}) {
        ASSERT_TRUE(CheckGraph(*graph).ok());
        const HostValue found = Evaluated(*graph);
        for (int64_t k = 0; k < NumElements(found.type); ++k)
          EXPECT_NEAR(found.At(k), expected.At(k), 1e-12) << i << " " << j;
      }
      VerifierOptions exact;
      exact.weights = WeightMode::kExact;
      const auto same = Certify(kForms[i](), cut->first, exact);
      EXPECT_TRUE(same.ok()) << i << " " << j << ": " << same.status();
    }
  }
}

TEST(CutLargeWeights, MakesOneProgramOfThreeSpellings) {
  const auto cut = CutLargeWeights(SplitsWeight(), Separate(), kSmall);
  ASSERT_TRUE(cut.ok()) << cut.status();
  const auto shared = ShareEqualConstants(cut->first, cut->second);
  ASSERT_TRUE(shared.ok()) << shared.status();
  EXPECT_EQ(GraphHash(shared->first, WeightMode::kSymbolic),
            GraphHash(shared->second, WeightMode::kSymbolic));
  const auto products = CutLargeWeights(SplitsWeight(), SplitsProduct(), kSmall);
  ASSERT_TRUE(products.ok()) << products.status();
  const auto same = Certify(products->first, products->second, {});  // by symbols alone
  EXPECT_TRUE(same.ok()) << same.status();
}

TEST(CutLargeWeights, HoldsEqualCopiesOnce) {
  const auto cut = CutLargeWeights(SplitsWeight(), SplitsWeightOf(1.5), kSmall);
  ASSERT_TRUE(cut.ok()) << cut.status();
  std::set<const std::byte*> places;
  for (const Graph* graph : {&cut->first, &cut->second}) {
    for (const Node& node : graph->nodes()) {
      if (IsConstant(node)) places.insert(ConstantValue(node).bytes().data());
    }
  }
  EXPECT_EQ(places.size(), 4);  // one of three cells differs
}

TEST(CutLargeWeights, LeavesWhatNeedsTheWhole) {
  GraphBuilder b;
  b.Input("x", kInput);
  b.Output("y", *b.Add("Relu", {b.Constant(Weight({6, 12}, 7), "other")}));
  const Graph reads_whole = *b.Build();
  for (const bool first : {true, false}) {
    const auto cut = first ? CutLargeWeights(SplitsWeight(), reads_whole, kSmall)
                           : CutLargeWeights(reads_whole, SplitsWeight(), kSmall);
    ASSERT_TRUE(cut.ok()) << cut.status();
    EXPECT_EQ(PrintGraph(first ? cut->first : cut->second), PrintGraph(SplitsWeight()));
  }
}

/// The same name on two types is two symbols, whatever their cells' shapes.
TEST(CutLargeWeights, KeepsSymbolsOfTwoTypesApart) {
  const auto half = [](Shape shape) {
    GraphBuilder b;
    const ValueId x = b.Input("x", kInput);
    const ValueId w = b.Constant(Weight(shape, 7), "w");
    b.Output("y",
             MatMul(b, x,
                    *b.Add("Slice", {w},
                           {{"starts", Ints{0, 0}}, {"ends", Ints{6, 4}}, {"steps", Ints{1, 1}}})));
    return *b.Build();
  };
  const auto cut = CutLargeWeights(half({6, 8}), half({6, 12}), kSmall);
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_LE(LargestValueOfWeights(cut->first), 24);
  EXPECT_FALSE(Certify(cut->first, cut->second, {}).ok());
}

TEST(CutLargeWeights, RefusesToMixCellsWithWeightsOfTheirNames) {
  const auto once = CutLargeWeights(SplitsWeight(), SplitsWeight(), kSmall);
  ASSERT_TRUE(once.ok());
  const auto twice = CutLargeWeights(once->first, SplitsWeight(), kSmall);
  ASSERT_TRUE(twice.ok());
  EXPECT_EQ(PrintGraph(twice->second), PrintGraph(SplitsWeight()));
}

}  // namespace
}  // namespace mendel
