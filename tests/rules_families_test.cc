// Every family of mutants on its example: proposed, verified, corrected where partial, certified,
// executed and equal to float64.

#include "tests/rules_families.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/status.h"
#include "corrector/corrector.h"
#include "graph/evaluate.h"
#include "graph/rewrite.h"
#include "graph/text.h"
#include "mutator/rule.h"
#include "runtime/backend.h"
#include "runtime/measure.h"
#include "verifier/verifier.h"

namespace mendel {
namespace {

class Families : public testing::TestWithParam<FamilyExample> {};

std::vector<HostValue> HostInputs(const std::vector<Tensor>& inputs) {
  std::vector<HostValue> values;
  for (const Tensor& input : inputs) values.push_back(HostValue::FromTensor(input));
  return values;
}

/// Largest error of `graph` on the CPU backend against `reference`, relative to the largest output.
double ExecutedError(const Graph& graph, const std::vector<Tensor>& inputs,
                     const std::vector<HostValue>& reference) {
  auto executable = FindBackend("cpu")->Compile(graph, {.threads = 1});
  EXPECT_TRUE(executable.ok()) << executable.status() << PrintGraph(graph);
  if (!executable.ok()) return 1;
  const auto outputs = RunOnTensors(**executable, graph, inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  if (!outputs.ok()) return 1;
  double scale = 1e-30, error = 0;
  for (size_t k = 0; k < outputs->size(); ++k) {
    for (int64_t i = 0; i < (*outputs)[k].size(); ++i) {
      scale = std::max(scale, std::abs(reference[k].At(i)));
      error = std::max(error, std::abs(reference[k].At(i) - (*outputs)[k].DoubleAt(i)));
    }
  }
  return error / scale;
}

/// The mutant, corrected where the verifier finds it partial.
absl::StatusOr<Graph> Verified(const Mutant& mutant, int& corrected) {
  const auto report = Localize(mutant.original, mutant.mutant, {});
  if (!report.ok()) return report.status();
  if (report->verdict == Verdict::kEquivalent) return mutant.mutant;
  EXPECT_EQ(report->verdict, Verdict::kPartial) << report->reason;
  EXPECT_EQ(mutant.rule->claim, Claim::kPartial);
  auto result = Recompute(mutant.original, mutant.mutant, *report, 0.9);
  if (!result.ok()) return result.status();
  ++corrected;
  return std::move(result->graph);
}

TEST_P(Families, ProposedVerifiedExecuted) {
  const auto graph = ExampleGraph(GetParam());
  ASSERT_TRUE(graph.ok()) << graph.status();
  const Rule* rule = FindRule(GetParam().rule);
  ASSERT_NE(rule, nullptr);
  ASSERT_NE(FindBackend("cpu"), nullptr);
  const std::vector<Tensor> inputs = RandomInputs(*graph, 5);
  const auto reference = Evaluate(*graph, HostInputs(inputs));
  ASSERT_TRUE(reference.ok()) << reference.status();
  int proposed = 0, corrected = 0;
  double worst = 0;
  for (int32_t node = 0; node < static_cast<int32_t>(graph->nodes().size()); ++node) {
    for (const Match& match : rule->match(*graph, node, DefaultPredictor())) {
      ++proposed;
      const auto mutant = MakeMutant(*graph, *rule, match, DefaultPredictor());
      ASSERT_TRUE(mutant.ok()) << mutant.status();
      const auto verified = Verified(*mutant, corrected);
      ASSERT_TRUE(verified.ok()) << verified.status() << PrintGraph(mutant->mutant);
      const auto whole = Replace(*graph, mutant->place, *verified);
      ASSERT_TRUE(whole.ok()) << whole.status();
      const auto certificate = Certify(*graph, *whole, {});
      ASSERT_TRUE(certificate.ok()) << certificate.status() << PrintGraph(*whole);
      EXPECT_LE(certificate->bound_log2, -80);
      worst = std::max(worst, ExecutedError(*whole, inputs, *reference));
    }
  }
  EXPECT_GT(proposed, 0) << "the rule does not see its own example\n" << PrintGraph(*graph);
  EXPECT_LT(worst, 1e-5);
  std::printf("%s by %s: %d mutants, %d corrected, error %.1e\n",
              std::string(GetParam().name).c_str(), std::string(GetParam().rule).c_str(), proposed,
              corrected, worst);
}

INSTANTIATE_TEST_SUITE_P(Examples, Families, testing::ValuesIn(FamilyExamples()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Rules, AnInputIsNoWeight) {
  int tried = 0;
  // Convolutions with their own input for weights: one input, as every rule on convolutions
  // expects.
  for (const char* convolution : {"strides = [2, 1], dilations = [2, 1], pads = [1, 0, 0, 4]",
                                  "strides = [2, 2], dilations = [1, 1], pads = [2, 2, 2, 2]",
                                  "strides = [1, 1], dilations = [1, 1], pads = [0, 0, 0, 0]"}) {
    for (const char* shape : {"[1, 3, 2, 2]", "[4, 4, 1, 1]", "[2, 2, 5, 5]"}) {
      const auto graph = ParseGraph(
          Cat(R"(graph "g" { %0 = Input() {name = "x", shape = )", shape, "}\n %1 = Conv(%0, %0) {",
              convolution, "}\n %2 = ReduceMean(%1) {axes = [2, 3]}\n", " return \"y\" = %2 }"));
      if (!graph.ok()) continue;  // the kernel does not fit
      ++tried;
      for (const Rule* rule : AllRules()) {
        for (int32_t node = 0; node < static_cast<int32_t>(graph->nodes().size()); ++node) {
          for (const Match& match : rule->match(*graph, node, DefaultPredictor())) {
            const absl::Status status =
                MakeMutant(*graph, *rule, match, DefaultPredictor()).status();
            EXPECT_FALSE(absl::IsInternal(status))
                << rule->name << ": " << status << PrintGraph(*graph);
          }
        }
      }
    }
  }
  EXPECT_GE(tried, 4);
}

TEST(FamilyTable, HoldsEveryRule) {
  std::set<std::string_view> shown;
  for (const FamilyExample& example : FamilyExamples()) shown.insert(example.rule);
  for (const Rule* rule : AllRules()) {
    EXPECT_TRUE(shown.count(rule->name) > 0) << rule->name << " has no example";
  }
}

}  // namespace
}  // namespace mendel
