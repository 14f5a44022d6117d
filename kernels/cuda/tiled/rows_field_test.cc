// Row operators in tiled kernels - before a product, and between two - in GF(p): every one of the registry, and planted faults.

#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "graph/emitter.h"
#include "graph/op_definition.h"
#include "graph/rewrite.h"
#include "graph/text.h"
#include "gtest/gtest.h"
#include "kernels/cuda/fusion/operator_text.h"
#include "kernels/cuda/tiled/chain.h"
#include "kernels/cuda/tiled/field_cases.h"
#include "kernels/cuda/tiled/product_chain.h"

namespace mendel::cuda {
namespace {

using RowsOf = std::function<ValueId(Emitter& e, ValueId x)>;

enum class Place { kBeforeProduct, kBetweenProducts };

/// The product of what `rows` makes of an input, or of another product; and the node of the first product. An error where `rows` or
/// the product is none.
absl::StatusOr<std::pair<Graph, int32_t>> ProductOf(const RowsOf& rows, Place place, const Shape& shape) {
  Emitter e;
  ValueId x;
  if (place == Place::kBeforeProduct) {
    x = e.Input("x", {DType::kF32, shape});
  } else {
    Shape left = shape;
    left.back() = 7;
    x = e.MatMul(e.Input("x", {DType::kF32, left}), e.Input("v", {DType::kF32, {7, shape.back()}}));
  }
  const ValueId product = e.MatMul(rows(e, x), e.Input("w", {DType::kF32, {shape.back(), 19}}));
  e.Output("y", product);
  MENDEL_ASSIGN_OR_RETURN(Graph graph, e.Finish());
  return std::pair(std::move(graph), place == Place::kBeforeProduct ? product.node : x.node);
}

bool HasKernel(const Graph& graph, int32_t node, Place place) {
  const std::vector<bool> constant = ConstantExpressions(graph), claimed(constant.size(), false);
  const GroupingScope scope{graph, constant, claimed};
  return place == Place::kBeforeProduct ? MatchTiledChain(scope, node, TiledFusion::kRows).has_value()
                                        : MatchProductChain(scope, node).has_value();
}

const char* NameOf(Place place) { return place == Place::kBeforeProduct ? "tile:8x16x4:2x2:rows" : "tile:8x16x4:2x2:chain"; }

/// A sampled node of `op` that takes a row of its first input and stands in a tiled kernel; nullopt after many samples.
std::optional<std::pair<Graph, int32_t>> Sampled(const OpDefinition& op, Place place, uint64_t seed) {
  constexpr int kMostSamples = 400;
  Rng rng(seed);
  for (int k = 0; k < kMostSamples; ++k) {
    const OpSample sample = op.sample(rng);
    const Shape shape = sample.inputs[0].shape;
    if (shape.size() < 2 || NumElements(shape) == 0) continue;
    const auto graph = ProductOf(
        [&](Emitter& e, ValueId x) {
          std::vector<ValueId> inputs = {x};
          for (size_t i = 1; i < sample.inputs.size(); ++i) {
            inputs.push_back(e.Input(Cat("parameter", i), {DType::kF32, sample.inputs[i].shape}));
          }
          Attributes attrs = sample.attrs;
          if (attrs.Has("epsilon")) attrs.Set("epsilon", 0.125);
          const ValueId row = e.Op(op.name, inputs, attrs);
          return e.shape(row) == shape ? row : e.Mul(x, row);
        },
        place, shape);
    if (graph.ok() && HasKernel(graph->first, graph->second, place)) return *graph;
  }
  return std::nullopt;
}

/// Every row operator of the registry by both kinds of kernels, but for those that are named here.
TEST(RowsField, EveryRowOperatorEqualsTheJudge) {
  const std::set<std::string> not_judged = {"LogSoftmax", "ReduceLogSumExp"};       // IsJudgedInField
  const std::set<std::string> never_rows = {"GroupNormalization"};  // its rows are several axes
  constexpr uint64_t kSeeds = 3;
  FieldCases cases;
  std::set<std::string> left_out, without_kernel;
  int operators = 0;
  for (const OpDefinition* op : AllOps()) {
    const OperatorText* text = FindOperatorText(op->name);
    if (text == nullptr || !text->is_row()) continue;
    const std::string name(op->name);
    ASSERT_NE(op->sample, nullptr) << name;
    ++operators;
    for (const Place place : {Place::kBeforeProduct, Place::kBetweenProducts}) {
      for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
        const auto sampled = Sampled(*op, place, seed);
        if (!sampled.has_value()) {
          without_kernel.insert(name);
          continue;
        }
        cases.graphs.push_back(sampled->first);
        if (!cases.Add(cases.graphs.size() - 1, sampled->second, NameOf(place), Numerics::kStrict, PrintGraph(sampled->first))) {
          left_out.insert(name);
        }
      }
    }
  }
  EXPECT_EQ(left_out, not_judged);
  EXPECT_EQ(without_kernel, never_rows);
  const auto judgement = Judge(cases);
  ASSERT_TRUE(judgement.ok()) << std::string(judgement.status().message()).substr(0, 4000);
  EXPECT_EQ(judgement->wrong, 0) << judgement->last_wrong;
  EXPECT_EQ(cases.kernels.size(), 2 * kSeeds * (static_cast<size_t>(operators) - not_judged.size() - never_rows.size()));
  std::printf("%d row operators, %zu kernels in GF(p): %lld elements equal\n", operators, cases.kernels.size(),
              static_cast<long long>(judgement->elements));
}

}  // namespace
}  // namespace mendel::cuda
