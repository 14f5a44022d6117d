// Graphs with attention as exporters spell it, as one step, against their evaluation in double.

#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "graph/random_graph.h"
#include "graph/text.h"
#include "gtest/gtest.h"
#include "kernels/cpu/kernels/attention.h"
#include "kernels/cpu/testing/test_support.h"

namespace mendel::cpu {
namespace {

/// [batch, length, heads * size] to [batch, heads, length, size], or its transposition.
ValueId Heads(GraphBuilder& builder, ValueId x, int64_t heads, bool transposed) {
  const Shape shape = builder.type(x).shape;
  const ValueId cut =
      *builder.Add("Reshape", {x}, {{"shape", Ints{shape[0], shape[1], heads, shape[2] / heads}}});
  return *builder.Add("Transpose", {cut},
                      {{"perm", transposed ? Ints{0, 2, 3, 1} : Ints{0, 2, 1, 3}}});
}

struct Attended {
  Graph graph;
  bool offered;  ///< by construction
};

/// Computes the condition key <= query + `window` for all heads.
ValueId CausalCondition(GraphBuilder& builder, int64_t queries, int64_t keys) {
  std::vector<int64_t> rows(static_cast<size_t>(queries)), columns(static_cast<size_t>(keys));
  for (size_t k = 0; k < rows.size(); ++k) rows[k] = static_cast<int64_t>(k);
  for (size_t k = 0; k < columns.size(); ++k) columns[k] = static_cast<int64_t>(k);
  const ValueId row = builder.Constant(Tensor::FromInts({DType::kI64, {queries, 1}}, rows));
  const ValueId column = builder.Constant(Tensor::FromInts({DType::kI64, {1, keys}}, columns));
  return *builder.Add("LessOrEqual", {column, row});
}

/// scores, kept or replaced, or with a summand: the ways in which exporters spell a mask.
ValueId Mask(GraphBuilder& builder, Rng& rng, ValueId scores, int number) {
  const Shape& shape = builder.type(scores).shape;
  const int64_t batch = shape[0], heads = shape[1], queries = shape[2], keys = shape[3];
  const Shape shapes[] = {{keys},
                          {queries, keys},
                          {batch, 1, 1, keys},
                          {batch, heads, queries, keys},
                          {1, heads, 1, keys},
                          {batch, 1, queries, keys},
                          {queries, 1},
                          {1, 1, queries, keys}};
  const Shape& own = shapes[rng.Below(std::size(shapes))];
  if (rng.Flip()) {
    const ValueId mask = builder.Input(Cat("mask", number), {DType::kF32, own});
    return rng.Flip() ? *builder.Add("Add", {scores, mask}) : *builder.Add("Add", {mask, scores});
  }
  const double lows[] = {-std::numeric_limits<double>::infinity(),
                         static_cast<double>(std::numeric_limits<float>::lowest()), -1e4, 0.25};
  const ValueId low = builder.Constant(Tensor::Scalar(DType::kF32, lows[rng.Below(4)]));
  ValueId condition = builder.Input(Cat("keep", number), {DType::kBool, own});
  if (rng.Flip(0.3)) condition = CausalCondition(builder, queries, keys);
  if (rng.Flip(0.2)) condition = *builder.Add("Not", {condition});
  return rng.Flip() ? *builder.Add("Where", {condition, scores, low})
                    : *builder.Add("Where", {condition, low, scores});
}

Attended RandomAttention(Rng& rng) {
  GraphBuilder builder;
  const int64_t batch = rng.Between(1, 2), heads = rng.Between(1, 3), size = rng.Between(1, 24);
  const int64_t queries = rng.Between(1, 60), keys = rng.Between(1, 60);
  const auto input = [&](const char* name, Shape shape) {
    return builder.Input(name, {DType::kF32, std::move(shape)});
  };
  const ValueId q = Heads(builder, input("q", {batch, queries, heads * size}), heads, false);
  const ValueId k = Heads(builder, input("k", {batch, keys, heads * size}), heads, true);
  const ValueId v = rng.Flip()
                        ? Heads(builder, input("v", {batch, keys, heads * size}), heads, false)
                        : input("v", {batch, heads, keys, size});
  ValueId y = *builder.Add("MatMul", {q, k});
  const ValueId factor = builder.Constant(Tensor::Scalar(DType::kF32, rng.Uniform(0.2, 2)));
  const bool scaled = rng.Flip();
  if (scaled) y = *builder.Add(rng.Flip() ? "Mul" : "Div", {y, factor});
  bool summed = false;
  for (int64_t k = rng.Between(0, 2); k > 0; --k) {
    y = Mask(builder, rng, y, static_cast<int>(k));
    summed = summed || builder.node(y.node).op->name == "Add";
  }
  const bool late = !scaled && rng.Flip(0.3);  // scaled after conditions, which the kernel takes,
                                               // or after summands, which it does not
  if (late) y = *builder.Add("Mul", {factor, y});
  y = *builder.Add("Softmax", {y}, {{"axis", int64_t{3}}});
  const bool read = rng.Flip(0.2);
  if (read) builder.Output("scores", y);
  if (rng.Flip(0.3)) {
    const ValueId zero = builder.Constant(Tensor::Scalar(DType::kF32, 0));
    y = *builder.Add("Where", {*builder.Add("IsNaN", {y}), zero, y});
  }
  y = *builder.Add("MatMul", {y, v});
  if (rng.Flip(0.3)) y = *builder.Add("Relu", {y});
  if (rng.Flip(0.7)) {
    y = *builder.Add("Transpose", {y}, {{"perm", Ints{0, 2, 1, 3}}});
    y = *builder.Add("Reshape", {y}, {{"shape", Ints{batch, queries, heads * size}}});
  }
  builder.Output("y", y);
  return {*builder.Build(), !read && !(late && summed)};
}

/// Algorithms of the own attention for all nodes that have it.
std::map<int32_t, std::string> AttentionOf(const Graph& graph) {
  std::map<int32_t, std::string> algorithms;
  for (int32_t id = 0; id < static_cast<int32_t>(graph.nodes().size()); ++id) {
    for (const std::string& name : FindBackend("cpu")->Algorithms(graph, id, Numerics::kStrict)) {
      if (name == kNativeAttention) algorithms[id] = name;
    }
  }
  return algorithms;
}

TEST(CpuFusion, AttentionTakesSumsAndConditionsOutOfOtherGroups) {
  if (DirectIsaHere() == nullptr) GTEST_SKIP() << "this machine has neither AVX2 nor AVX-512";
  // A bias that is a product of matrices with an activation, and a condition of the scores' own
  // shape.
  const absl::StatusOr<Graph> graph = ParseGraph(R"(graph "g" {
    %0 = Input() {dtype = "f32", name = "q", shape = [1, 20, 8]}
    %1 = Input() {dtype = "f32", name = "k", shape = [1, 8, 30]}
    %2 = Input() {dtype = "f32", name = "v", shape = [1, 30, 8]}
    %3 = Input() {dtype = "f32", name = "a", shape = [1, 20, 4]}
    %4 = Input() {dtype = "f32", name = "b", shape = [1, 4, 30]}
    %5 = Input() {dtype = "bool", name = "c", shape = [1, 20, 30]}
    %6 = Constant() {value = f32[]{-1000}}
    %7 = MatMul(%0, %1)
    %8 = MatMul(%3, %4)
    %9 = Relu(%8)
    %10 = Not(%5)
    %11 = Add(%7, %9)
    %12 = Where(%10, %6, %11)
    %13 = Softmax(%12) {axis = 2}
    %14 = MatMul(%13, %2)
    return "y" = %14
  })");
  ASSERT_TRUE(graph.ok()) << graph.status();
  CompileOptions options;
  options.algorithms = AttentionOf(*graph);
  ASSERT_EQ(options.algorithms.size(), 1u);
  Rng rng(1);
  const std::vector<std::string> kernels =
      ExpectMatches(*graph, RandomInputs(rng, *graph), options, 2e-5);
  EXPECT_EQ(kernels.size(), 3u) << "the bias with its activation, the condition, attention";
  EXPECT_EQ(kernels.back().find("attention-own"), 0u);
}

TEST(CpuFusion, AttentionIsOneStep) {
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    Rng rng(seed);
    const Attended attended = RandomAttention(rng);
    SCOPED_TRACE(testing::Message() << "seed " << seed << "\n" << PrintGraph(attended.graph));
    CompileOptions options;
    options.threads = static_cast<int>(rng.Between(1, 3));
    options.algorithms = AttentionOf(attended.graph);
    if (DirectIsaHere() == nullptr) GTEST_SKIP() << "this machine has neither AVX2 nor AVX-512";
    ASSERT_EQ(options.algorithms.size(), attended.offered ? 1u : 0u);
    int steps = 0, others = 0;
    for (const std::string& kernel :
         ExpectMatches(attended.graph, RandomInputs(rng, attended.graph), options, 2e-5)) {
      steps += kernel.find("attention-own") == 0;
      others += kernel.find("brg") == 0 || kernel.find("gemm") == 0 || kernel.find("jit:") == 0 ||
                kernel.find("ref") == 0;
    }
    EXPECT_EQ(steps, attended.offered ? 1 : 0);
    EXPECT_EQ(others > 0, !attended.offered) << "products or softmax by the library";
    if (testing::Test::HasFailure()) return;
  }
}

/// The product that ends one attention begins another: it can be part of one step only.
TEST(CpuFusion, AttentionOfAttentionKeepsTheInnerOne) {
  if (DirectIsaHere() == nullptr) GTEST_SKIP() << "this machine has neither AVX2 nor AVX-512";
  GraphBuilder builder;
  const auto input = [&](const char* name) {
    return builder.Input(name, {DType::kF32, {2, 3, 8, 8}});
  };
  ValueId y = *builder.Add("MatMul", {input("a"), input("b")});
  for (const char* name : {"c", "v"}) {
    y = *builder.Add("MatMul", {*builder.Add("Softmax", {y}, {{"axis", int64_t{3}}}), input(name)});
  }
  builder.Output("y", y);
  const Graph graph = *builder.Build();
  CompileOptions options;
  options.threads = 1;
  for (int32_t id = 0; id < static_cast<int32_t>(graph.nodes().size()); ++id) {
    for (const std::string& name : FindBackend("cpu")->Algorithms(graph, id, Numerics::kDefault)) {
      if (name == kNativeAttention) options.algorithms[id] = name;
    }
  }
  EXPECT_EQ(options.algorithms.size(), 2u);
  Rng rng(1);
  int64_t steps = 0;
  for (const std::string& kernel : ExpectMatches(graph, RandomInputs(rng, graph), options))
    steps += kernel.starts_with(kNativeAttention);
  EXPECT_EQ(steps, 1);
}

}  // namespace
}  // namespace mendel::cpu
