// Every registered rule against the verifier and against float64, on the graphs of its own sampler.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "corrector/corrector.h"
#include "graph/evaluate.h"
#include "graph/text.h"
#include "mutator/rule.h"
#include "verifier/verifier.h"

namespace mendel {
namespace {

constexpr uint64_t kSeeds = 40;

std::vector<HostValue> RandomInputs(const Graph& graph, Rng& rng) {
  std::vector<HostValue> inputs;
  for (int32_t id : graph.inputs()) {
    HostValue value{graph.node(id).outputs[0], {}, {}};
    for (int64_t i = 0; i < NumElements(value.type); ++i) value.scalars.push_back(rng.Normal());
    inputs.push_back(std::move(value));
  }
  return inputs;
}

/// Largest difference between two programs' outputs on random inputs, relative to the largest
/// output.
double MaxError(const Graph& f, const Graph& g, Rng& rng) {
  const std::vector<HostValue> inputs = RandomInputs(f, rng);
  const auto a = Evaluate(f, inputs);
  const auto b = Evaluate(g, inputs);
  EXPECT_TRUE(a.ok() && b.ok());
  double scale = 1e-300, error = 0;
  for (size_t k = 0; k < a->size(); ++k) {
    for (int64_t i = 0; i < NumElements((*a)[k].type); ++i) {
      scale = std::max(scale, std::abs((*a)[k].At(i)));
      error = std::max(error, std::abs((*a)[k].At(i) - (*b)[k].At(i)));
    }
  }
  return error / scale;
}

std::vector<Mutant> MutantsOf(const Rule& rule, const Graph& graph) {
  std::vector<Mutant> mutants;
  for (int32_t node = 0; node < static_cast<int32_t>(graph.nodes().size()); ++node) {
    for (const Match& match : rule.match(graph, node, DefaultPredictor())) {
      auto mutant = MakeMutant(graph, rule, match, DefaultPredictor());
      EXPECT_TRUE(mutant.ok()) << mutant.status() << "\n" << PrintGraph(graph);
      if (mutant.ok()) mutants.push_back(*std::move(mutant));
    }
  }
  return mutants;
}

/// The elements of `shape` that lie in some box.
std::vector<bool> Covered(const Shape& shape, const std::vector<Box>& boxes) {
  std::vector<bool> covered(static_cast<size_t>(NumElements(shape)), false);
  for (const Box& box : boxes) {
    if (box.Volume() == 0) continue;
    for (Shape i = box.begin;;) {
      size_t flat = 0;
      for (size_t d = 0; d < shape.size(); ++d)
        flat = flat * static_cast<size_t>(shape[d]) + static_cast<size_t>(i[d]);
      covered[flat] = true;
      size_t d = shape.size();
      while (d > 0 && ++i[d - 1] == box.end[d - 1]) {
        i[d - 1] = box.begin[d - 1];
        --d;
      }
      if (d == 0) break;
    }
  }
  return covered;
}

/// The region that the rule predicts to be wrong is the region that the verifier found.
void ExpectPredicted(const Rule& rule, const Mutant& mutant, const VerifierReport& report,
                     const std::string& where) {
  if (rule.wrong == nullptr) return;
  const auto predicted = rule.wrong(mutant.original, mutant.match);
  ASSERT_TRUE(predicted.ok()) << predicted.status() << where;
  ASSERT_EQ(predicted->size(), report.outputs.size()) << where;
  for (size_t k = 0; k < predicted->size(); ++k) {
    const OutputReport& output = report.outputs[k];
    const std::vector<bool> found = Covered(output.shape, output.wrong),
                            expected = Covered(output.shape, (*predicted)[k]);
    for (size_t i = 0; i < found.size(); ++i) {
      ASSERT_EQ(found[i], expected[i])
          << "output " << k << " element " << i << " of " << ShapeString(output.shape) << where;
    }
  }
}

/// Seeds a rule: MENDEL_RULE_SEEDS, for soaking.
uint64_t Seeds() {
  const char* text = std::getenv("MENDEL_RULE_SEEDS");
  return text == nullptr ? kSeeds : std::strtoull(text, nullptr, 10);
}

class RuleConformance : public testing::TestWithParam<const Rule*> {};

TEST_P(RuleConformance, ClaimHolds) {
  const Rule& rule = *GetParam();
  EXPECT_FALSE(rule.family.empty() || rule.before.empty() || rule.after.empty() ||
               rule.precondition.empty() || rule.loses_when.empty());
  int64_t matched = 0, partial = 0, hidden = 0;
  for (uint64_t seed = 1; seed <= Seeds(); ++seed) {
    Rng rng(seed);
    const auto graph = rule.sample(rng);
    ASSERT_TRUE(graph.ok()) << rule.name << " seed " << seed << ": " << graph.status();
    for (const Mutant& mutant : MutantsOf(rule, *graph)) {
      ++matched;
      const std::string where = testing::PrintToString(rule.name) + " seed " +
                                std::to_string(seed) + "\n" + PrintGraph(mutant.original) +
                                PrintGraph(mutant.mutant);
      const auto report = Localize(mutant.original, mutant.mutant, {.seed = seed});
      ASSERT_TRUE(report.ok()) << report.status() << where;
      ExpectPredicted(rule, mutant, *report, where);
      if (HasFatalFailure()) return;
      if (report->verdict == Verdict::kEquivalent) {
        EXPECT_LT(MaxError(mutant.original, mutant.mutant, rng), 1e-10) << where;
        continue;
      }
      ASSERT_EQ(rule.claim, Claim::kPartial)
          << "claims to be exact, is " << VerdictName(report->verdict) << ": " << report->reason
          << where;
      ++partial;
      const auto corrected = Recompute(mutant.original, mutant.mutant, *report, 1.0);
      ASSERT_TRUE(corrected.ok()) << corrected.status() << where;
      double error = 0;  // a Relu or a maximum may hide what is wrong from one input
      for (int draw = 0; draw < 4 && error < 1e-10; ++draw)
        error = MaxError(mutant.original, mutant.mutant, rng);
      hidden += error < 1e-10 ? 1 : 0;
      EXPECT_LT(MaxError(mutant.original, corrected->graph, rng), 1e-10) << where;
      const auto again = Localize(mutant.original, corrected->graph, {.seed = seed + 1});
      ASSERT_TRUE(again.ok()) << again.status() << where;
      EXPECT_EQ(again->verdict, Verdict::kEquivalent) << again->reason << where;
    }
  }
  EXPECT_GT(matched, 0) << "the rule never matched its own samples";
  if (rule.claim == Claim::kPartial) {
    EXPECT_GT(partial, 0) << "claims to be partial, is always exact";
    EXPECT_NE(rule.wrong, nullptr) << "predicts no wrong region";
    EXPECT_LE(20 * hidden, partial) << "too many wrong mutants gave the right numbers";
  }
  std::printf("%s: %lld mutants, %lld partial\n", std::string(rule.name).c_str(),
              static_cast<long long>(matched), static_cast<long long>(partial));
}

/// `graph` with one of its constants given at run time.
absl::StatusOr<Graph> Given(const Graph& graph, int32_t constant) {
  GraphBuilder builder(graph.name());
  std::vector<int32_t> copies;
  for (int32_t id = 0; id < static_cast<int32_t>(graph.nodes().size()); ++id) {
    const Node& node = graph.node(id);
    std::vector<ValueId> inputs;
    for (const ValueId& input : node.inputs)
      inputs.push_back({copies[static_cast<size_t>(input.node)], input.output});
    if (id == constant) {
      copies.push_back(builder.Input("given", node.outputs[0]).node);
      continue;
    }
    auto copy = builder.CopyNode(node, inputs);
    if (!copy.ok()) return copy.status();
    copies.push_back(*copy);
  }
  for (const GraphOutput& output : graph.outputs()) {
    builder.Output(output.name,
                   {copies[static_cast<size_t>(output.value.node)], output.value.output});
  }
  return builder.Build();
}

/// A rule that takes an operand for a weight declines, or makes a mutant all the same; it does not
/// fail on what is given at run time.
TEST_P(RuleConformance, OperandsMayBeInputs) {
  const Rule& rule = *GetParam();
  for (uint64_t seed = 1; seed <= Seeds(); ++seed) {
    Rng rng(seed);
    const auto graph = rule.sample(rng);
    ASSERT_TRUE(graph.ok()) << rule.name << " seed " << seed << ": " << graph.status();
    for (int32_t id = 0; id < static_cast<int32_t>(graph->nodes().size()); ++id) {
      if (!IsConstant(graph->node(id))) continue;
      const auto given = Given(*graph, id);
      ASSERT_TRUE(given.ok()) << given.status();
      MutantsOf(rule, *given);
      if (HasFailure()) FAIL() << rule.name << " seed " << seed << ", constant %" << id;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, RuleConformance,
                         testing::ValuesIn(AllRules().begin(), AllRules().end()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace mendel
