// Every family of mutants is found by search alone: all rules are on, nothing names the family, and
// on a machine that is slow at what the family avoids (pretended_machines.h) the plan holds it -
// verified, certified, executed, equal to float64.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "graph/evaluate.h"
#include "graph/text.h"
#include "mutator/rule.h"
#include "optimizer/pipeline.h"
#include "runtime/measure.h"
#include "tests/pretended_machines.h"
#include "tests/rules_families.h"

namespace mendel {
namespace {

absl::StatusOr<OptimizeResult> Found(const Graph& graph, Machine machine, SearchMethod method,
                                     WeightMode weights = WeightMode::kSymbolic) {
  OptimizeOptions options;
  options.costs = CostsOf(machine);
  options.verifier.weights = weights;
  options.search.method = method;
  options.search.budget_seconds = 120;
  if (method == SearchMethod::kEGraph) {  // keeps the integer programs small
    options.search.max_rounds = 1;
    options.search.max_candidates = 24;
  }
  MENDEL_ASSIGN_OR_RETURN(const auto cache, ProfileCache::Open(":memory:"));
  return Optimize(graph, options, *cache);
}

/// The machine on which a rule is worth its while; nullopt for rules of the normalizer.
std::optional<Machine> MachineFor(std::string_view rule) {
  static const std::map<std::string_view, Machine> kMachines = {
      {"add_kernels", Machine::kLaunches},
      {"attention_order", Machine::kArithmetic},
      {"batch_matmuls", Machine::kLaunches},
      {"batch_to_space", Machine::kLargeImages},
      {"batch_to_space_gap", Machine::kLargeImages},
      {"cancel_parts", Machine::kBytes},
      {"compute_needed", Machine::kArithmetic},
      {"compute_once", Machine::kArithmetic},
      {"constants_into_conv", Machine::kLaunches},
      {"conv1x1_to_matmul", Machine::kMatrices},
      {"dilation_stack", Machine::kWindows},
      {"dilation_to_batch", Machine::kWindows},
      {"index_derivations", Machine::kLaunches},
      {"low_rank_weights", Machine::kArithmetic},
      {"matmul_chain", Machine::kArithmetic},
      {"matmul_to_conv1x1", Machine::kConvolutions},
      {"matmul_to_cum_sum", Machine::kArithmetic},
      {"matmul_to_sums", Machine::kArithmetic},
      {"merge_convs", Machine::kLaunches},
      {"masked_attention_blocks", Machine::kArithmetic},
      {"merge_matmuls", Machine::kLaunches},
      {"merge_padded_convs", Machine::kArithmetic},
      {"merge_pools", Machine::kLaunches},
      {"merge_unequal_convs", Machine::kLaunches},
      {"pad_sizes", Machine::kEightChannels},
      {"pool_before_conv1x1", Machine::kArithmetic},
      {"scale_into_matmul", Machine::kLaunches},
      {"separable_kernel", Machine::kArithmetic},
      {"shift_through_conv", Machine::kLaunches},
      {"skip_zero_blocks", Machine::kArithmetic},
      {"skip_zero_channels", Machine::kArithmetic},
      {"skip_zeros", Machine::kArithmetic},
      {"space_to_batch", Machine::kWideBatches},
      {"space_to_batch_halo", Machine::kWideBatches},
      {"split_groups", Machine::kDenseChannels},
      {"split_kernel", Machine::kSmallKernels},
      {"stack_matmuls", Machine::kLaunches},
      {"stack_twins", Machine::kWideBatches},
      {"stride_to_depth", Machine::kWindows},
      {"sum_to_concat", Machine::kLaunches},
      {"sums_of_products", Machine::kArithmetic},
      {"transposes_across", Machine::kBytes},
      {"upsample_after_conv1x1", Machine::kArithmetic},
      {"upsample_phases", Machine::kArithmetic},
      {"whole_window_conv_to_matmul", Machine::kMatrices},
  };
  const auto found = kMachines.find(rule);
  return found == kMachines.end() ? std::nullopt : std::optional(found->second);
}

double MillisecondsOn(Machine machine, const Graph& graph) {
  double milliseconds = 0;
  const absl::StatusOr<std::vector<double>> costs = CostsOf(machine)(graph, {});
  for (const double seconds : *costs) milliseconds += seconds * 1e3;
  return milliseconds;
}

/// Largest error of the plan on the CPU against the program in double, relative to the largest
/// output.
double ExecutedError(const Graph& graph, const OptimizeResult& result) {
  const std::vector<Tensor> inputs = RandomInputs(graph, 5);
  std::vector<HostValue> host;
  for (const Tensor& input : inputs) host.push_back(HostValue::FromTensor(input));
  const auto reference = Evaluate(graph, host);
  const auto program = FindBackend("cpu")->Compile(result.plan.graph, {.threads = 1});
  EXPECT_TRUE(reference.ok() && program.ok()) << reference.status() << program.status();
  const auto outputs = RunOnTensors(**program, graph, inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  double scale = 1e-30, error = 0;
  for (size_t k = 0; k < outputs->size(); ++k) {
    for (int64_t i = 0; i < (*outputs)[k].size(); ++i) {
      scale = std::max(scale, std::abs((*reference)[k].At(i)));
      error = std::max(error, std::abs((*reference)[k].At(i) - (*outputs)[k].DoubleAt(i)));
    }
  }
  return error / scale;
}

class FamilySearch : public testing::TestWithParam<FamilyExample> {};

TEST_P(FamilySearch, FindsIt) {
  const Rule* rule = FindRule(GetParam().rule);
  ASSERT_NE(rule, nullptr);
  const auto graph = ExampleGraph(GetParam());
  ASSERT_TRUE(graph.ok()) << graph.status();
  const std::optional<Machine> machine = MachineFor(rule->name);
  ASSERT_EQ(machine.has_value(), rule->stage == Stage::kSearch) << "no machine for " << rule->name;
  for (const SearchMethod method : {SearchMethod::kBeam, SearchMethod::kEGraph}) {
    const auto found = Found(*graph, machine.value_or(Machine::kLaunches), method);
    ASSERT_TRUE(found.ok()) << found.status();
    std::string rules;
    // Derivations find what rules of other families state: the algebra of linear operators, and the
    // regions that are needed or repeat.
    const std::set<std::string_view> derivations = {"sums_of_products", "compute_needed",
                                                    "compute_once"};
    bool family = false;
    for (const plan::AppliedMutant& mutant : found->search.mutants) {
      rules += mutant.rule() + (mutant.mending().empty() ? " " : " (" + mutant.mending() + ") ");
      family = family || FindRule(mutant.rule())->family == rule->family ||
               derivations.contains(mutant.rule());
    }
    const double before = MillisecondsOn(machine.value_or(Machine::kLaunches), *graph),
                 after = found->search.best_time.median_ms;
    // The e-graph, in its one round here, need not get that far, and names only mutants whose
    // operators are in its program.
    if (method == SearchMethod::kBeam) {
      EXPECT_TRUE(family || !machine.has_value())
          << "found " << rules << PrintGraph(found->plan.graph);
      EXPECT_LT(after, before);
    }
    EXPECT_LE(after, before);
    EXPECT_LE(found->certificate.bound_log2, -80);
    const double error = ExecutedError(*graph, *found);
    EXPECT_LT(error, 1e-5);
    std::printf("%s (%s) by %s: %s, predicted %.2fx, error %.1e\n",
                std::string(GetParam().name).c_str(), std::string(rule->family).c_str(),
                std::string(SearchMethodName(method)).c_str(), rules.c_str(), before / after,
                error);
  }
}

/// All but one whose corrections cost more than it gains on any machine here; without padding
/// (BatchNormThroughOpenConv) it is found.
std::vector<FamilyExample> SearchedExamples() {
  std::vector<FamilyExample> examples = FamilyExamples();
  std::erase_if(examples, [](const FamilyExample& example) {
    return example.name == "BatchNormThroughConv";
  });
  return examples;
}

INSTANTIATE_TEST_SUITE_P(Examples, FamilySearch, testing::ValuesIn(SearchedExamples()),
                         [](const auto& info) { return std::string(info.param.name); });

/// A convolution whose weights are a product of small integers (or random), with a batch norm to
/// fold.
Graph StoredConvolution(bool product) {
  std::string body = R"(
  %0 = Input() {name = "x", shape = [1, 4, 8, 8]}
  %1 = Constant() {symbol = "w", value = f32[8,4,3,3]{L8x36}}
  %2 = Conv(%0, %1) {strides = [1, 1], dilations = [1, 1], pads = [1, 1, 1, 1]}
  %3 = Constant() {symbol = "scale", value = f32[8]{P8}}
  %4 = Constant() {symbol = "shift", value = f32[8]{W8}}
  %5 = Constant() {symbol = "mean", value = f32[8]{W8}}
  %6 = Constant() {symbol = "variance", value = f32[8]{P8}}
  %7 = BatchNormalization(%2, %3, %4, %5, %6)
  return "y0" = %7
)";
  if (!product) body.replace(body.find("{L8x36}"), 7, "{W288}");
  return *ExampleGraph({"StoredConvolution", "low_rank_weights", body});
}

/// Half of the channels are one vector everywhere, on a machine that is slow at convolutions: the
/// matrix product gains more, is taken first, and must not hide what repeats.
TEST(Repetition, IsFoundBehindAnotherMutant) {
  const auto graph = ExampleGraph({"ImagePooling", "compute_once", R"(
  %0 = Input() {name = "x", shape = [1, 8, 6, 6]}
  %1 = Input() {name = "v", shape = [1, 8, 1, 1]}
  %2 = Expand(%1) {shape = [1, 8, 6, 6]}
  %3 = Concat(%0, %2) {axis = 1}
  %4 = Constant() {symbol = "w", value = f32[16,16,1,1]{W256}}
  %5 = Conv(%3, %4) {strides = [1, 1], dilations = [1, 1], pads = [0, 0, 0, 0]}
  return "y0" = %5
)"});
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto found = Found(*graph, Machine::kMatrices, SearchMethod::kBeam);
  ASSERT_TRUE(found.ok()) << found.status();
  std::set<std::string> rules;
  for (const plan::AppliedMutant& mutant : found->search.mutants) rules.insert(mutant.rule());
  EXPECT_EQ(rules.count("compute_once"), 1u) << PrintGraph(found->plan.graph);
  EXPECT_LT(found->search.best_time.median_ms, 0.2 * MillisecondsOn(Machine::kMatrices, *graph));
  EXPECT_LT(ExecutedError(*graph, *found), 1e-5);
}

TEST(StoredWeights, AreUsedWhereThePlanMayHoldForThemAlone) {
  for (const bool product : {true, false}) {
    for (const WeightMode weights : {WeightMode::kSymbolic, WeightMode::kExact}) {
      const Graph graph = StoredConvolution(product);
      const auto found = Found(graph, Machine::kArithmetic, SearchMethod::kBeam, weights);
      ASSERT_TRUE(found.ok()) << found.status();
      const bool used = std::any_of(
          found->search.mutants.begin(), found->search.mutants.end(),
          [](const plan::AppliedMutant& mutant) { return mutant.rule() == "low_rank_weights"; });
      EXPECT_EQ(used, product && weights == WeightMode::kExact);
      EXPECT_EQ(found->certificate.weights, used ? WeightMode::kExact : WeightMode::kSymbolic);
      EXPECT_EQ(found->plan.info.weights(),
                used ? plan::WEIGHTS_MODE_EXACT : plan::WEIGHTS_MODE_SYMBOLIC);
      EXPECT_TRUE(Replay(graph, found->plan.graph, found->certificate).ok());
      EXPECT_LT(ExecutedError(graph, *found), 1e-5);
      std::printf("stored %s, weights %s: bound 2^%.0f\n", product ? "product" : "numbers",
                  weights == WeightMode::kExact ? "exact" : "symbolic",
                  found->certificate.bound_log2);
    }
  }
}

}  // namespace
}  // namespace mendel
