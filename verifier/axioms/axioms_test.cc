#include "verifier/axioms/axioms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>

#include "absl/strings/str_format.h"
#include "base/status.h"
#include "graph/evaluate.h"
#include "graph/random_graph.h"
#include "graph/text.h"
#include "verifier/axioms/axioms_cases.h"
#include "verifier/axioms/axioms_expression.h"
#include "verifier/axioms/axioms_false_cases.h"
#include "verifier/axioms/masked_softmax.h"

namespace mendel {
namespace {

using axioms_test::kFalse;
using axioms_test::kTrue;
using axioms_test::Pair;
using axioms_test::ParseExpression;
using axioms_test::ProgramsToDraw;

Graph Canonical(const Graph& graph, WeightMode weights = WeightMode::kSymbolic,
                std::map<std::string, int>* used = nullptr) {
  auto canonical = Canonicalize(graph, weights, used);
  EXPECT_TRUE(canonical.ok()) << canonical.status() << PrintGraph(graph);
  if (!canonical.ok()) return graph;
  EXPECT_TRUE(CheckGraph(*canonical).ok()) << CheckGraph(*canonical);
  return *canonical;
}

/// Normal floats, small integers, Booleans.
std::vector<HostValue> Inputs(Rng& rng, const Graph& graph) {
  std::vector<HostValue> inputs = RandomInputs(rng, graph);
  for (HostValue& input : inputs) {
    for (int64_t& value : input.integers)
      value = input.type.dtype == DType::kBool ? value % 2 : value - 1;
  }
  return inputs;
}

/// All values of the program are small: axioms promise nothing where values are infinite, and
/// exponentials of large ones are.
bool AllSmall(const Graph& graph, const std::vector<HostValue>& inputs) {
  const auto large =
      axioms_test::HasValue(graph, inputs, [](double v) { return !(std::abs(v) < 100); });
  return large.ok() && !*large;
}

/// Largest relative difference of the outputs, where those of `f` are finite.
double Distance(const Graph& f, const Graph& g, const std::vector<HostValue>& inputs) {
  const auto a = Evaluate(f, inputs), b = Evaluate(g, inputs);
  EXPECT_TRUE(a.ok() && b.ok());
  double worst = 0;
  for (size_t k = 0; k < a->size(); ++k) {
    for (int64_t i = 0; i < NumElements((*a)[k].type); ++i) {
      const double x = (*a)[k].At(i), y = (*b)[k].At(i);
      if (!std::isfinite(x)) continue;
      const double gap = std::abs(x - y) / std::max(1.0, std::abs(x));
      worst = std::max(worst, std::isfinite(gap) ? gap : 1e300);
    }
  }
  return worst;
}

class Axioms : public ::testing::TestWithParam<Pair> {};
class NearMisses : public ::testing::TestWithParam<Pair> {};

TEST_P(Axioms, MakeBothSidesEqual) {
  const Graph left = ParseExpression(GetParam().left), right = ParseExpression(GetParam().right);
  std::map<std::string, int> used;
  const Graph f = Canonical(left, WeightMode::kSymbolic, &used),
              g = Canonical(right, WeightMode::kSymbolic, &used);
  EXPECT_TRUE(used.contains(GetParam().axiom));
  const auto certificate = Certify(f, g, {});
  EXPECT_TRUE(certificate.ok()) << certificate.status() << "\n" << PrintGraph(f) << PrintGraph(g);
  Rng rng(7);
  for (int round = 0; round < 5; ++round) {
    const std::vector<HostValue> inputs = Inputs(rng, left);
    EXPECT_LT(Distance(left, right, inputs), 1e-6) << "the axiom is not one";
    EXPECT_LT(Distance(left, f, inputs), 1e-6) << PrintGraph(f);
    EXPECT_LT(Distance(right, g, inputs), 1e-6) << PrintGraph(g);
  }
}

TEST_P(NearMisses, StayApart) {
  const Graph left = ParseExpression(GetParam().left), right = ParseExpression(GetParam().right);
  const Graph f = Canonical(left), g = Canonical(right);
  EXPECT_FALSE(Certify(f, g, {}).ok()) << PrintGraph(f) << PrintGraph(g);
  Rng rng(8);
  for (int round = 0; round < 5; ++round) {
    const std::vector<HostValue> inputs = Inputs(rng, left);
    EXPECT_LT(Distance(left, f, inputs), 1e-6) << PrintGraph(f);
    EXPECT_LT(Distance(right, g, inputs), 1e-6) << PrintGraph(g);
  }
}

INSTANTIATE_TEST_SUITE_P(True, Axioms, ::testing::ValuesIn(kTrue));
INSTANTIATE_TEST_SUITE_P(False, NearMisses, ::testing::ValuesIn(kFalse));

/// `times` applications of `op` with `literal` to an expression.
std::string Repeated(std::string_view op, int times, std::string_view literal, std::string x) {
  for (int k = 0; k < times; ++k) x = Cat(op, "(", x, ", ", literal, ")");
  return x;
}

TEST(Axioms, SlopesThatOverflowDoublesAreNotCompared) {
  // The slope is 1e-9 in exact arithmetic; its factors' product passes through infinity.
  const std::string small = Repeated("Mul", 9, "1e36", Repeated("Div", 9, "1e37", "x"));
  const Graph canonical = Canonical(ParseExpression(Cat("Max(", small, ", x)")));
  EXPECT_NE(PrintGraph(canonical).find("Max("), std::string::npos) << PrintGraph(canonical);
}

TEST(Axioms, LiteralsThatUnderflowDoublesAreNotFolded) {
  const double base = RoundTo(DType::kF32, 1e-38), last = RoundTo(DType::kF32, 3e-19);
  const double tiny = std::pow(base, 8);
  const double wrong = RoundTo(DType::kF32, tiny * last / tiny);
  ASSERT_GT(std::abs(wrong / last - 1), 1e-3) << "the product is a denormal of few digits";
  std::string power = "1e-38";
  for (int k = 0; k < 3; ++k) power = Cat("Mul(", power, ", ", power, ")");
  const Graph left = ParseExpression(Cat("Add(x, Div(Mul(", power, ", 3e-19), ", power, "))"));
  const Graph right = ParseExpression(Cat("Add(x, ", absl::StrFormat("%.17g", wrong), ")"));
  EXPECT_FALSE(Certify(Canonical(left), Canonical(right), {}).ok());
}

TEST(Axioms, FactorsThatUnderflowMoveNoLimit) {
  // The factors multiply to about 1; the product of the outer ones alone is 0 in doubles.
  const auto stepped = [](int limit) {
    const std::string x = Cat("Clip(x){min = ", -limit, ".0, max = ", limit, ".0}");
    return Cat("Round(", Repeated("Mul", 11, "1e-30", Repeated("Mul", 11, "1e30", x)), ")");
  };
  const Graph left = ParseExpression(stepped(5)), right = ParseExpression(stepped(7));
  EXPECT_FALSE(Certify(Canonical(left), Canonical(right), {}).ok());
}

TEST(Axioms, ShiftsThatSwallowASumAreNotAdded) {
  const auto shifted = [](int by) {
    return Cat("Cast(Add(Add(Add(Cast(q){to = \"f32\"}, 1e30), ", by, "), -1e30)){to = \"i8\"}");
  };
  const Graph left = ParseExpression(shifted(1)), right = ParseExpression(shifted(2));
  EXPECT_FALSE(Certify(Canonical(left), Canonical(right), {}).ok());
}

TEST(AxiomList, EveryAxiomHasATestAndAProof) {
  std::set<std::string_view> tested;
  for (const Pair& pair : kTrue) tested.insert(pair.axiom);
  std::string_view last;
  for (const AxiomDescription& axiom : AllAxioms()) {
    EXPECT_LT(last, axiom.name);
    EXPECT_TRUE(tested.contains(axiom.name)) << axiom.name;
    EXPECT_FALSE(axiom.statement.empty());
    EXPECT_FALSE(axiom.proof.empty());
    last = axiom.name;
  }
}

TEST(AxiomList, IsTheDocumentedOne) {
  std::ifstream file(MENDEL_SOURCE_DIR "/docs/axioms.md");
  std::stringstream text;
  text << file.rdbuf();
  for (const AxiomDescription& axiom : AllAxioms()) {
    const std::string row =
        Cat("| ", axiom.name, " | `", axiom.statement, "` | ", axiom.proof, " |\n");
    EXPECT_NE(text.str().find(row), std::string::npos) << row;
  }
  const std::string table = text.str().substr(text.str().find("| Axiom |"));
  const auto rows =
      std::count(table.begin(), table.begin() + static_cast<int64_t>(table.find("\n\n")), '\n') + 1;
  EXPECT_EQ(rows, static_cast<int64_t>(AllAxioms().size()) + 2);
}

absl::StatusOr<ValueId> RandomPool(Rng& rng, GraphBuilder& builder, ValueId x) {
  Attributes attrs = {{"ceil_mode", rng.Between(0, 1)},
                      {"dilations", Ints{rng.Flip(0.1) ? 2 : 1, 1}}};
  attrs.Set("kernel_shape", Ints{rng.Between(1, 4), rng.Between(1, 3)});
  attrs.Set("strides", Ints{rng.Between(1, 3), rng.Between(1, 3)});
  attrs.Set("pads",
            Ints{rng.Between(0, 3), rng.Between(0, 3), rng.Between(0, 3), rng.Between(0, 3)});
  return builder.Add("MaxPool", {x}, attrs);
}

TEST(Canonicalize, ComposesPoolsOnlyWhereTheyAreOne) {
  constexpr uint64_t kSeed = 1;
  std::cout << "seed " << kSeed << "\n";
  int composed = 0;
  for (uint64_t k = 0; k < 5000; ++k) {
    Rng rng(kSeed + k);
    GraphBuilder builder;
    absl::StatusOr<ValueId> value =
        builder.Input("x", {DType::kF32, {1, 1, rng.Between(3, 12), rng.Between(3, 9)}});
    for (int pools = 0; pools < 3 && value.ok(); ++pools) {
      builder.Output(Cat(pools), *value);
      value = RandomPool(rng, builder, *value);
    }
    if (value.ok()) builder.Output("y", *value);
    const Graph graph = *builder.Build();
    std::map<std::string, int> used;
    const Graph canonical = Canonical(graph, WeightMode::kSymbolic, &used);
    composed += used.contains("pool of a pool") ? 1 : 0;
    EXPECT_EQ(Distance(graph, canonical, Inputs(rng, graph)), 0)
        << "seed " << kSeed + k << PrintGraph(graph) << PrintGraph(canonical);
  }
  EXPECT_GT(composed, 50);
}

TEST(Canonicalize, CountsLiteralsThatStandForConstants) {
  std::map<std::string, int> used;
  Canonical(ParseExpression("Mul(Mul(x, 0.5), Add(Erf(Div(x, 1.4142135381698608)), 1))"),
            WeightMode::kSymbolic, &used);
  EXPECT_EQ(used["literal 1/sqrt(2)"], 1) << ::testing::PrintToString(used);
  used.clear();
  Canonical(ParseExpression("Mul(x, 0.1111111119389534)"), WeightMode::kSymbolic, &used);
  EXPECT_EQ(used["literal 1/9"], 1) << ::testing::PrintToString(used);
}

/// An empty sum is 0 also where a factor is undefined.
TEST(Canonicalize, NoFactorLeavesAnEmptySum) {
  constexpr char kFactor[] = "factor constant along the reduced axes";
  const auto uses = [&](const std::string& rows) {
    const std::string slice =
        "Slice(x){starts = [0, 0, 0], ends = [2, " + rows + ", 4], steps = [1, 1, 1]}";
    std::map<std::string, int> used;
    Canonical(ParseExpression("ReduceSum(Mul(" + slice + ", h)){axes = [1], keepdims = 1}"),
              WeightMode::kSymbolic, &used);
    return used[kFactor];
  };
  EXPECT_EQ(uses("2"), 1);
  EXPECT_EQ(uses("0"), 0);
}

TEST(Canonicalize, LeavesCanonicalLimitsAlone) {
  std::map<std::string, int> used;
  const std::string number = "Clip(Cast(q){to = \"f32\"})";
  Canonical(ParseExpression(number + "{min = -128.0, max = 127.0}"), WeightMode::kSymbolic, &used);
  EXPECT_FALSE(used.contains("clip as min and max")) << ::testing::PrintToString(used);
  EXPECT_EQ(PrintGraph(Canonical(ParseExpression(number + "{min = -0.0, max = 1.0}"))),
            PrintGraph(Canonical(ParseExpression(number + "{min = 0.0, max = 1.0}"))));
}

TEST(Canonicalize, UsesTheSignOfWeightsInExactModeOnly) {
  const Graph f = ParseExpression("Relu(Mul(x, positive))"),
              g = ParseExpression("Mul(Relu(x), positive)");
  EXPECT_TRUE(Certify(Canonical(f, WeightMode::kExact), Canonical(g, WeightMode::kExact),
                      {.weights = WeightMode::kExact})
                  .ok());
  EXPECT_FALSE(Certify(Canonical(f), Canonical(g), {}).ok());
}

TEST(Canonicalize, IsIdempotentAndDeterministic) {
  for (const Pair& pair : kTrue) {
    const Graph once = Canonical(ParseExpression(pair.left));
    EXPECT_EQ(PrintGraph(once), PrintGraph(Canonical(ParseExpression(pair.left))));
    EXPECT_TRUE(Certify(once, Canonical(once), {}).ok()) << pair.left;
  }
}

TEST(Canonicalize, KeepsTheValueOfRandomGraphs) {
  constexpr uint64_t kSeed = 11;
  std::cout << "seed " << kSeed << "\n";
  std::map<std::string, int> used;
  for (uint64_t k = 0; k < 400; ++k) {
    Rng rng(kSeed + k);
    const Graph graph = RandomGraph(rng, 6);
    const WeightMode weights = k % 2 == 0 ? WeightMode::kSymbolic : WeightMode::kExact;
    const Graph canonical = Canonical(graph, weights, &used);
    EXPECT_LT(Distance(graph, canonical, RandomInputs(rng, graph)), 1e-6)
        << "seed " << kSeed + k << "\n"
        << PrintGraph(graph) << PrintGraph(canonical);
  }
  EXPECT_GT(used.size(), 4u);
}

/// Over the reals, operands may be equal where their doubles are not.
bool RoundingDecidesOneOf(const Graph& f, const Graph& g, const std::vector<HostValue>& inputs) {
  const auto of_f = axioms_test::RoundingDecides(f, inputs);
  const auto of_g = axioms_test::RoundingDecides(g, inputs);
  EXPECT_TRUE(of_f.ok() && of_g.ok());
  return (of_f.ok() && *of_f) || (of_g.ok() && *of_g);
}

TEST(Canonicalize, KeepsTheValueOfRandomExpressions) {
  constexpr uint64_t kSeed = 1000;
  std::cout << "seed " << kSeed << "\n";
  std::map<std::string, int> used;
  const uint64_t count = ProgramsToDraw(3000);
  uint64_t decided_by_rounding = 0;
  for (uint64_t k = 0; k < count; ++k) {
    Rng rng(kSeed + k);
    const Graph graph = axioms_test::RandomExpression(rng);
    const WeightMode weights = k % 2 == 0 ? WeightMode::kSymbolic : WeightMode::kExact;
    std::map<std::string, int> here;
    const Graph canonical = Canonical(graph, weights, &here);
    bool rounded = false;
    for (const auto& [name, count] : here) rounded = rounded || name.starts_with("literal ");
    for (const auto& [name, count] : here) used[name] += count;
    const std::vector<HostValue> inputs = Inputs(rng, graph);
    if (!AllSmall(graph, inputs)) continue;
    const double distance = Distance(graph, canonical, inputs);
    if (distance > 1e-7 && RoundingDecidesOneOf(graph, canonical, inputs)) {
      ++decided_by_rounding;
      continue;
    }
    EXPECT_LT(distance, rounded ? 1e-2 : 1e-7) << "seed " << kSeed + k << "\n"
                                               << PrintGraph(graph) << PrintGraph(canonical);
    if (HasFailure()) break;
  }
  EXPECT_LT(decided_by_rounding, 1 + count / 1000);
  for (const AxiomDescription& axiom : AllAxioms()) {
    if (!used.contains(std::string(axiom.name))) std::cout << "not met: " << axiom.name << "\n";
  }
}

/// Elements where f is finite and g is not the same.
int64_t Wrong(const Graph& f, const Graph& g, const std::vector<HostValue>& inputs,
              double tolerance) {
  const auto a = Evaluate(f, inputs), b = Evaluate(g, inputs);
  EXPECT_TRUE(a.ok() && b.ok());
  int64_t wrong = 0;
  for (int64_t i = 0; i < NumElements(a->front().type); ++i) {
    const double x = a->front().At(i), y = b->front().At(i);
    if (std::abs(x) < 1e3 && !(std::abs(x - y) <= tolerance * std::max(1.0, std::abs(x)))) ++wrong;
  }
  return wrong;
}

TEST(MaskedSoftmax, MasksAreLiteralsOrKeepTheirSymbols) {
  const auto masked = [](const std::string& numbers, WeightMode weights) {
    const auto graph = ParseGraph(
        "graph \"g\" {\n%0 = Input() {name = \"x\", shape = [2, 3]}\n%1 = Constant() {symbol = "
        "\"m\", value = f32[3]{" +
        numbers +
        "}}\n%2 = Add(%0, %1)\n%3 = Softmax(%2) {axis = 1}\n"
        "return \"y\" = %3\n}");
    EXPECT_TRUE(graph.ok()) << graph.status();
    int count = 0;
    EXPECT_TRUE(WithoutMaskedScores(*graph, weights, &count).ok());
    return count;
  };
  EXPECT_EQ(masked("0, -inf, 0", WeightMode::kExact), 1);
  EXPECT_EQ(masked("0, -inf, 0", WeightMode::kSymbolic), 1);
  EXPECT_EQ(masked("0, -inf, 5", WeightMode::kExact), 1);
  EXPECT_EQ(masked("0, -inf, 5", WeightMode::kSymbolic), 0);
  EXPECT_EQ(masked("0, 1, 5", WeightMode::kExact), 0);
  EXPECT_EQ(masked("-inf, -inf, -inf", WeightMode::kExact), 0);
}

TEST(Canonicalize, ProvesNoDifferentVariantEqual) {
  constexpr uint64_t kSeed = 500000;
  const uint64_t count = ProgramsToDraw(3000);
  int proven = 0, changed = 0;
  for (uint64_t k = 0; k < count && !HasFailure(); ++k) {
    Rng rng(kSeed + k);
    const Graph graph = axioms_test::RandomExpression(rng),
                variant = axioms_test::RandomVariant(rng, graph);
    const WeightMode weights = k % 2 == 0 ? WeightMode::kSymbolic : WeightMode::kExact;
    std::map<std::string, int> used;
    const Graph f = Canonical(graph, weights, &used), g = Canonical(variant, weights, &used);
    if (!Certify(f, g, {.weights = weights}).ok()) continue;
    ++proven;
    changed += PrintGraph(graph) != PrintGraph(variant);
    const bool rounded = std::any_of(used.begin(), used.end(), [](const auto& use) {
      return use.first.starts_with("literal ");
    });
    const std::vector<HostValue> inputs = Inputs(rng, graph);
    if (!AllSmall(graph, inputs)) continue;
    EXPECT_EQ(Wrong(graph, variant, inputs, rounded ? 1e-2 : 1e-6), 0)
        << "seed " << kSeed + k << "\n"
        << PrintGraph(graph) << PrintGraph(variant) << PrintGraph(f) << PrintGraph(g);
  }
  std::cout << "seed " << kSeed << ": " << proven << " of " << count << " variants proven equal, "
            << changed << " of them changed\n";
  EXPECT_GT(changed, 20);
}

}  // namespace
}  // namespace mendel
