#include "verifier/weights/large_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/random.h"
#include "graph/evaluate.h"
#include "graph/text.h"
#include "verifier/compare.h"
#include "verifier/constants.h"
#include "verifier/verifier.h"

namespace mendel {
namespace {

constexpr int64_t kSmall = 8;

/// relu(x w + y v'), w of 7 x 4 and v of 6 x 5 elements.
Graph Net(double first, bool reads_otherwise = false) {
  GraphBuilder b;
  Rng rng(5);
  const auto weight = [&](const std::string& name, Shape shape) {
    std::vector<double> values;
    for (int64_t k = NumElements(shape); k > 0; --k) values.push_back(rng.Normal());
    if (name == "v") values[0] = first;
    return b.Constant(Tensor::FromDoubles({DType::kF32, shape}, values), name);
  };
  const ValueId x = b.Input("x", {DType::kF32, {2, 3, 7}});
  const ValueId w = weight("w", {7, 4});
  const ValueId v = weight("v", {6, 5});
  const ValueId product = *b.Add("MatMul", {x, w}, {}, "product");
  const ValueId y = *b.Add("MatMul", {*b.Add("Relu", {product}), weight("u", {4, 5})});
  const ValueId z = *b.Add("MatMul", {y, *b.Add("Transpose", {v}, {{"perm", Ints{1, 0}}})});
  b.Output("z", z);
  if (reads_otherwise) b.Output("w", *b.Add("Relu", {w}));
  return *b.Build();
}

/// Elements of the largest constant.
int64_t LargestWeight(const Graph& graph) {
  int64_t largest = 0;
  for (const Node& node : graph.nodes()) {
    if (IsConstant(node)) largest = std::max(largest, ConstantValue(node).size());
  }
  return largest;
}

TEST(SplitLargeWeights, ReadsPartsAndComputesTheSame) {
  const Graph whole = Net(1);
  const auto split = SplitLargeWeights(whole, whole, kSmall);
  ASSERT_TRUE(split.ok()) << split.status();
  EXPECT_LE(LargestWeight(split->first), 2 * kSmall + 4);
  EXPECT_EQ(LargestWeight(whole), 30);
  EXPECT_EQ(PrintGraph(split->first), PrintGraph(split->second));
  ASSERT_TRUE(CheckGraph(split->first).ok());
  // The verifier takes every number for the dyadic rational that it is.
  VerifierOptions exact;
  exact.weights = WeightMode::kExact;
  const auto same = Certify(whole, split->first, exact);
  EXPECT_TRUE(same.ok()) << same.status();
  HostValue x{{DType::kF32, {2, 3, 7}}, {}, {}};
  Rng rng(3);
  for (int k = 0; k < 42; ++k) x.scalars.push_back(rng.Normal());
  const auto expected = Evaluate(whole, {&x, 1});
  const auto found = Evaluate(split->first, {&x, 1});
  ASSERT_TRUE(expected.ok() && found.ok());
  for (int64_t i = 0; i < 36; ++i) EXPECT_NEAR((*expected)[0].At(i), (*found)[0].At(i), 1e-12) << i;
}

TEST(SplitLargeWeights, KeepsNamesOfWhatIsComputed) {
  const auto split = SplitLargeWeights(Net(1), Net(1), kSmall);
  ASSERT_TRUE(split.ok()) << split.status();
  const auto& nodes = split->first.nodes();
  EXPECT_EQ(std::count_if(nodes.begin(), nodes.end(),
                          [](const Node& node) { return node.name == "product"; }),
            1);
}

TEST(SplitLargeWeights, LeavesWhatEitherGraphReadsOtherwise) {
  for (const bool first : {true, false}) {
    const auto split = SplitLargeWeights(Net(1, first), Net(1, !first), kSmall);
    ASSERT_TRUE(split.ok()) << split.status();
    for (const Graph* graph : {&split->first, &split->second}) {
      const auto& nodes = graph->nodes();
      const auto whole = [](const std::string& name) {
        return [name](const Node& node) { return IsConstant(node) && SymbolName(node) == name; };
      };
      EXPECT_EQ(std::count_if(nodes.begin(), nodes.end(), whole("w")), 1);
      EXPECT_EQ(std::count_if(nodes.begin(), nodes.end(), whole("v")), 0);
    }
  }
}

TEST(SplitLargeWeights, RefusesToMixPartsWithWeightsOfTheirNames) {
  const auto once = SplitLargeWeights(Net(1), Net(1), kSmall);
  ASSERT_TRUE(once.ok());
  const auto twice = SplitLargeWeights(once->first, Net(1), kSmall);
  ASSERT_TRUE(twice.ok());
  EXPECT_EQ(PrintGraph(twice->first), PrintGraph(once->first));
  EXPECT_EQ(PrintGraph(twice->second), PrintGraph(Net(1)));
}

TEST(SplitLargeWeights, PartsDecideAsTheWholeDoes) {
  const auto different = SplitLargeWeights(Net(1), Net(1.5), kSmall);
  ASSERT_TRUE(different.ok());
  CompareOptions options;
  options.verifier.weights = WeightMode::kExact;
  const auto exact = ComparePrograms(different->first, different->second, options);
  ASSERT_TRUE(exact.ok()) << exact.status();
  EXPECT_EQ(exact->verdict, Verdict::kPartial);  // one column of the result
  ASSERT_EQ(exact->outputs.size(), 1);
  EXPECT_EQ(exact->outputs[0].wrong_elements, 6);
  options.verifier.weights = WeightMode::kSymbolic;
  const auto symbolic = ComparePrograms(different->first, different->second, options);
  ASSERT_TRUE(symbolic.ok()) << symbolic.status();
  EXPECT_EQ(symbolic->verdict, Verdict::kEquivalent);
}

/// The bytes of a weight.
const std::byte* Place(const Graph& graph, std::string_view name) {
  for (const Node& node : graph.nodes()) {
    if (IsConstant(node) && SymbolName(node) == name) return ConstantValue(node).bytes().data();
  }
  return nullptr;
}

TEST(HoldEqualWeightsOnce, KeepsThoseThatDiffer) {
  const Graph a = Net(1);
  const Graph b = Net(2);
  ASSERT_NE(Place(a, "w"), Place(b, "w"));
  const auto held = HoldEqualWeightsOnce(a, b);
  ASSERT_TRUE(held.ok()) << held.status();
  EXPECT_EQ(PrintGraph(*held), PrintGraph(b));
  EXPECT_EQ(Place(*held, "w"), Place(a, "w"));
  EXPECT_EQ(Place(*held, "v"), Place(b, "v"));
}

}  // namespace
}  // namespace mendel
