// Row operators in tiled kernels, before a product and between two, in GF(p): every one of the
// registry, and planted faults.

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
#include "kernels/cuda/tiled/product_chain.h"
#include "tests/tiled_field_cases.h"

namespace mendel::cuda {
namespace {

using RowsOf = std::function<ValueId(Emitter& e, ValueId x)>;

enum class Place { kBeforeProduct, kBetweenProducts };

/// The product of `rows` applied to an input, or to another product, and the node of the first
/// product. An error where `rows` or the product cannot be built.
absl::StatusOr<std::pair<Graph, int32_t>> ProductOf(const RowsOf& rows, Place place,
                                                    const Shape& shape) {
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
  return place == Place::kBeforeProduct
             ? MatchTiledChain(scope, node, TiledFusion::kRows).has_value()
             : MatchProductChain(scope, node).has_value();
}

const char* NameOf(Place place) {
  return place == Place::kBeforeProduct ? "tile:8x16x4:2x2:rows" : "tile:8x16x4:2x2:chain";
}

/// A sampled node of `op` that takes a row of its first input and fits a tiled kernel; nullopt
/// after many samples.
std::optional<std::pair<Graph, int32_t>> Sampled(const OpDefinition& op, Place place,
                                                 uint64_t seed) {
  constexpr int kMostSamples = 400;
  Rng rng(seed);
  for (int k = 0; k < kMostSamples; ++k) {
    const OpSample sample = op.sample(rng);
    const Shape shape = sample.inputs[0].shape;
    if (shape.size() < 2 || NumElements(shape) == 0 || shape.back() == 1) continue;
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

/// Every row operator of the registry by both kinds of kernels, except those whose rows are never
/// the last axis alone.
TEST(RowsField, EveryRowOperatorEqualsTheVerifier) {
  const std::set<std::string> never_rows = {"GroupNormalization"};
  constexpr uint64_t kSeeds = 2;
  FieldCases cases;
  std::set<std::string> without_kernel;
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
        EXPECT_TRUE(cases.Add(cases.graphs.size() - 1, sampled->second, NameOf(place),
                              Numerics::kStrict, PrintGraph(sampled->first)))
            << name << " is not verified";
      }
    }
  }
  EXPECT_EQ(without_kernel, never_rows);
  const int64_t elements = ExpectRight(cases);
  EXPECT_EQ(cases.kernels.size(),
            2 * kSeeds * (static_cast<size_t>(operators) - never_rows.size()));
  std::printf("%d row operators, %zu kernels in GF(p): %lld elements equal\n", operators,
              cases.kernels.size(), static_cast<long long>(elements));
}

ValueId LastAxis(Emitter& e, std::string_view op, ValueId x) {
  return e.Op(
      op, {x},
      {{"axes", Ints{static_cast<int64_t>(e.shape(x).size()) - 1}}, {"keepdims", int64_t{1}}});
}
ValueId Literal(Emitter& e, double value) {
  return e.Constant(Tensor::FromDoubles({DType::kF32, {}}, {{value}}));
}

/// x / sqrt(mean(x x) + 1/8), in elementary operators.
ValueId ByRootMeanSquare(Emitter& e, ValueId x) {
  return e.Op(
      "Div", {x, e.Op("Sqrt", {e.Add(LastAxis(e, "ReduceMean", e.Mul(x, x)), Literal(e, 0.125))})});
}
ValueId ByLayer(Emitter& e, ValueId x) {
  const TensorType parameter{DType::kF32, {e.shape(x).back()}};
  return e.Op("LayerNormalization", {x, e.Input("scale", parameter), e.Input("shift", parameter)},
              {{"axis", static_cast<int64_t>(e.shape(x).size()) - 1}, {"epsilon", 0.125}});
}
/// Softmax of scaled and masked scores, with a factor a column.
ValueId BySoftmax(Emitter& e, ValueId x) {
  const ValueId scores = e.Add(e.Mul(x, Literal(e, 0.25)), e.Input("mask", e.type(x)));
  const ValueId rows =
      e.Op("Softmax", {scores}, {{"axis", static_cast<int64_t>(e.shape(x).size()) - 1}});
  return e.Mul(rows, e.Input("columns", {DType::kF32, {e.shape(x).back()}}));
}

ValueId ByLogSoftmax(Emitter& e, ValueId x) {
  return e.Op("LogSoftmax", {x}, {{"axis", static_cast<int64_t>(e.shape(x).size()) - 1}});
}
ValueId ByLogSumExp(Emitter& e, ValueId x) {
  return e.Op("Div", {x, LastAxis(e, "ReduceLogSumExp", x)});
}
ValueId ByLargest(Emitter& e, ValueId x) { return e.Op("Div", {x, LastAxis(e, "ReduceMax", x)}); }

/// Kernels of two matrices of 10 rows of 21 elements, by threads and by tensor cores, and of a
/// chain of two products.
FieldCases KernelsOf(const RowsOf& rows) {
  FieldCases cases;
  for (const Place place : {Place::kBeforeProduct, Place::kBetweenProducts}) {
    auto product = ProductOf(rows, place, {2, 10, 21});
    EXPECT_TRUE(product.ok()) << product.status();
    if (!product.ok()) continue;
    cases.graphs.push_back(product->first);
    const auto add = [&, node = product->second](const char* name) {
      EXPECT_TRUE(cases.Add(cases.graphs.size() - 1, node, name, Numerics::kTf32, "planted"))
          << name;
    };
    add(NameOf(place));
    if (place == Place::kBetweenProducts) continue;
    add("tile-tf32:16x16x8:2x2:rows");
  }
  return cases;
}

Fault Last(std::string from, std::string to) {
  return {std::move(from), std::move(to), &LibraryGroup::kernel, true};
}

/// A pass over the rows without their last element: the first one, or the last one that makes
/// statistics.
Fault ShortRows(Place place, bool last) {
  const std::string loop = place == Place::kBeforeProduct ? "threadIdx.x); k < 2" : "(own); k < 2";
  return {loop + "1", loop + "0", &LibraryGroup::kernel, last};
}

/// Faults of both places, of each, and of every row operator there.
void ExpectSeenInRows(const RowsOf& rows, const std::vector<Fault>& both, std::vector<Fault> before,
                      std::vector<Fault> between) {
  const FieldCases cases = KernelsOf(rows);
  EXPECT_GT(ExpectRight(cases), 0);
  before.insert(before.end(),
                {{"if (across == r)", "if (across == (r ^ 1))"}, {"(at < 10 && ", "(at < 9 && "}});
  between.push_back({"< 10) {", "< 9) {"});
  for (std::vector<Fault>* faults : {&before, &between})
    faults->insert(faults->end(), both.begin(), both.end());
  ExpectSeen(cases.With(":rows"), before);
  ExpectSeen(cases.With(":chain"), between);
}

TEST(RowsField, PlantedFaultsOfRootMeanSquaresDiffer) {
  ExpectSeenInRows(
      &ByRootMeanSquare,
      {{"21.0f", "20.0f"},
       {"0.125f", "0.0f"},
       {"= Sqrt(", "= ("},
       {"SumOf::Of(", "MaxOf::Of("},
       {"SumOf, ", "MaxOf, "}},
      {ShortRows(Place::kBeforeProduct, false)},
      {ShortRows(Place::kBetweenProducts, false),
       {"Times(kept[((k * 12) + kept_row)]", "Times(0.25f * kept[((k * 12) + kept_row)]"}});
}

TEST(RowsField, PlantedFaultsOfNormalizationsDiffer) {
  ExpectSeenInRows(&ByLayer,
                   {{"21.0f", "20.0f"},      // of the mean
                    Last("21.0f", "20.0f"),  // of the variance
                    {" + 0.125f)", ")"},
                    {" + 0.125f)", ") + 0.125f"},
                    {"1.0f / Sqrt(", "1.0f / ("},
                    Last("SumOf, ", "MaxOf, ")},
                   {ShortRows(Place::kBeforeProduct, false), ShortRows(Place::kBeforeProduct, true),
                    Last("[i * 4 + 1]", "[i * 4 + 0]")},
                   {ShortRows(Place::kBetweenProducts, false),
                    ShortRows(Place::kBetweenProducts, true),
                    {", kept[((k * 12) + kept_row)]", ", 0.25f * kept[((k * 12) + kept_row)]"}});
}

TEST(RowsField, PlantedFaultsOfSoftmaxDiffer) {
  const std::string before = " - statistics[i * 4 + 0]) / ", between = "kept_row)] - ";
  ExpectSeenInRows(
      &BySoftmax, {Last("0.25f", "0.5f"), Last("SumOf, ", "MaxOf, ")},
      {ShortRows(Place::kBeforeProduct, true),
       {before, ") / "},
       {before, " * 0.25f - statistics[i * 4 + 0] * 0.25f) / "},  // scaled after the shift
       {" / statistics[i * 4 + 1]", " / statistics[i * 4 + 0]"}},
      {ShortRows(Place::kBetweenProducts, true),
       Last(between, "kept_row)] + "),
       Last(between, "kept_row)] * 0.25f - 0.25f * "),
       {"Exp(kept[((k * 12) + kept_row)]", "Exp(0.25f * kept[((k * 12) + kept_row)]"}});
}

TEST(RowsField, PlantedFaultsOfLogarithmsDiffer) {
  ExpectSeenInRows(&ByLogSoftmax, {{"= Log(", "= ("}, {"= Log(", "= 0.5f * Log("}},
                   {ShortRows(Place::kBeforeProduct, true),
                    {" - statistics[i * 4 + 0]", ""},
                    {" - statistics[i * 4 + 0] -", " - statistics[i * 4 + 0] +"}},
                   {ShortRows(Place::kBetweenProducts, true)});
  ExpectSeenInRows(&ByLogSumExp, {{"Log(", "("}, {" + Log(", " - Log("}},
                   {ShortRows(Place::kBeforeProduct, true)},
                   {ShortRows(Place::kBetweenProducts, true)});
}

/// The shift of a softmax cancels, so that a wrong shift element is invisible to the verifier. It
/// is visible where the largest element is the result.
TEST(RowsField, TheLargestElementMattersWhereItDoesNotCancel) {
  const FieldCases softmax = KernelsOf(&BySoftmax);
  EXPECT_GT(ExpectRight(Planted(softmax.With(":rows"), {ShortRows(Place::kBeforeProduct, false)})),
            0);
  EXPECT_GT(
      ExpectRight(Planted(softmax.With(":chain"), {ShortRows(Place::kBetweenProducts, false)})), 0);
  ExpectSeenInRows(&ByLargest, {{"MaxOf, ", "MinOf, "}, {"MaxOf, ", "SumOf, "}},
                   {ShortRows(Place::kBeforeProduct, false)},
                   {ShortRows(Place::kBetweenProducts, false)});
}

}  // namespace
}  // namespace mendel::cuda
