// Axioms keep the inputs for which a value is a finite number, also where operands are NaN.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "graph/evaluate.h"
#include "graph/random_graph.h"
#include "graph/text.h"
#include "verifier/axioms/axioms.h"
#include "verifier/axioms/axioms_cases.h"
#include "verifier/axioms/axioms_expression.h"

namespace mendel {
namespace {

using axioms_test::kTrue;
using axioms_test::Pair;
using axioms_test::ParseExpression;
using axioms_test::ProgramsToDraw;

/// The program with the root of a new input added to every float input. The sum is NaN where the
/// new input is negative.
Graph WithRoots(const Graph& graph) {
  GraphBuilder builder;
  std::vector<int32_t> copies;
  for (const Node& node : graph.nodes()) {
    std::vector<ValueId> operands;
    for (const ValueId input : node.inputs)
      operands.push_back({copies[static_cast<size_t>(input.node)], input.output});
    copies.push_back(*builder.CopyNode(node, operands));
    if (!IsInput(node) || !IsFloat(node.outputs[0].dtype)) continue;
    const ValueId extra = builder.Input(Cat("root", copies.back()), node.outputs[0]);
    const ValueId root = *builder.Add("Sqrt", {extra});
    copies.back() = builder.Add("Add", {{copies.back(), 0}, root})->node;
  }
  for (const GraphOutput& output : graph.outputs())
    builder.Output(output.name,
                   {copies[static_cast<size_t>(output.value.node)], output.value.output});
  return *builder.Build();
}

/// Numbers at which functions have their edges; sums of them and of roots meet zero.
std::vector<HostValue> Inputs(Rng& rng, const Graph& graph) {
  constexpr std::array<double, 9> kNumbers = {-4, -2, -1, -0.5, 0, 0.5, 1, 2, 4};
  std::vector<HostValue> inputs = RandomInputs(rng, graph);
  for (HostValue& input : inputs) {
    for (double& value : input.scalars) value = kNumbers[rng.Below(kNumbers.size())];
    for (int64_t& value : input.integers)
      value = input.type.dtype == DType::kBool ? value % 2 : value - 1;
  }
  return inputs;
}

/// Doubles may not show where some value is undefined: it is infinite, a function of it may be, or
/// it is what rounding left of zero.
bool IsFragile(const Graph& graph, const std::vector<HostValue>& inputs) {
  const auto fragile = axioms_test::HasValue(
      graph, inputs, [](double v) { return std::abs(v) > 1e4 || (v != 0 && std::abs(v) < 1e-9); });
  EXPECT_TRUE(fragile.ok()) << fragile.status();
  return *fragile;
}

/// Rounding decides whether computed numbers are equal.
bool HasEqual(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const Node& node) { return node.op->name == "Equal"; });
}

/// Elements that are finite in one program and not the same number in the other.
int64_t Unlike(const Graph& f, const Graph& g, const std::vector<HostValue>& inputs,
               double tolerance) {
  const auto a = Evaluate(f, inputs), b = Evaluate(g, inputs);
  EXPECT_TRUE(a.ok() && b.ok());
  int64_t unlike = 0;
  for (int64_t i = 0; i < NumElements(a->front().type); ++i) {
    const double x = a->front().At(i), y = b->front().At(i);
    if (!std::isfinite(x) && !std::isfinite(y)) continue;
    if (!(std::abs(x - y) <= tolerance * std::max(1.0, std::abs(x)))) ++unlike;
  }
  return unlike;
}

class AxiomDomains : public ::testing::TestWithParam<Pair> {};

TEST_P(AxiomDomains, AreKept) {
  for (const char* const side : {GetParam().left, GetParam().right}) {
    const Graph graph = WithRoots(ParseExpression(side));
    const auto canonical = Canonicalize(graph, WeightMode::kSymbolic, nullptr);
    ASSERT_TRUE(canonical.ok()) << canonical.status();
    Rng rng(7);
    for (int round = 0; round < 40; ++round) {
      const std::vector<HostValue> inputs = Inputs(rng, graph);
      if (IsFragile(graph, inputs) || IsFragile(*canonical, inputs)) continue;
      ASSERT_EQ(Unlike(graph, *canonical, inputs, 1e-6), 0)
          << side << "\n"
          << PrintGraph(graph) << PrintGraph(*canonical);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(True, AxiomDomains, ::testing::ValuesIn(kTrue));

TEST(AxiomDomains, AreKeptOfRandomExpressions) {
  constexpr uint64_t kSeed = 40000;
  std::cout << "seed " << kSeed << "\n";
  const uint64_t count = ProgramsToDraw(2000);
  int checked = 0;
  for (uint64_t k = 0; k < count && !HasFailure(); ++k) {
    Rng rng(kSeed + k);
    const Graph graph = WithRoots(axioms_test::RandomExpression(rng));
    if (HasEqual(graph)) continue;
    const WeightMode weights = k % 2 == 0 ? WeightMode::kSymbolic : WeightMode::kExact;
    std::map<std::string, int> used;
    const auto canonical = Canonicalize(graph, weights, &used);
    ASSERT_TRUE(canonical.ok()) << canonical.status();
    bool rounded = false;
    for (const auto& [name, uses] : used) rounded = rounded || name.starts_with("literal ");
    for (int round = 0; round < 8; ++round) {
      const std::vector<HostValue> inputs = Inputs(rng, graph);
      if (IsFragile(graph, inputs) || IsFragile(*canonical, inputs)) continue;
      ++checked;
      EXPECT_EQ(Unlike(graph, *canonical, inputs, rounded ? 1e-2 : 1e-6), 0)
          << "seed " << kSeed + k << "\n"
          << PrintGraph(graph) << PrintGraph(*canonical);
      if (HasFailure()) break;
    }
  }
  EXPECT_GT(checked, 100);
}

}  // namespace
}  // namespace mendel
