// Real corrected mutants as whole plans: every partial rule on small layers, verified, corrected in
// every way, captured and replayed on the fake driver, every element equal to float64.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

#include "base/status.h"
#include "corrector/corrector.h"
#include "graph/emitter.h"
#include "graph/rewrite.h"
#include "kernels/cuda/backend/corrected_copy.h"
#include "kernels/cuda/emit/correction_plan.h"
#include "kernels/cuda/testing/corrected_plan.h"
#include "kernels/cuda/testing/fake/fake_driver.h"
#include "mutator/rule.h"
#include "verifier/verifier.h"

namespace mendel::cuda {
namespace {

struct Layer {
  Shape x;
  int length = 1;
  int64_t kernel = 3, dilation = 1, group = 1;
  DType dtype = DType::kF32;
};

/// A chain of convolutions, with a Relu after each; small integers.
Graph GraphOf(const Layer& layer) {
  Emitter e("layer");
  Rng rng(3);
  const auto weight = [&](const Shape& shape, const std::string& name) {
    std::vector<double> values;
    for (int64_t i = 0; i < NumElements(shape); ++i)
      values.push_back(static_cast<double>(rng.Between(-1, 1)));
    return e.Constant(Tensor::FromDoubles({layer.dtype, shape}, values), name);
  };
  ValueId y = e.Input("x", {layer.dtype, layer.x});
  const int64_t channels = layer.x[1], pad = layer.dilation * (layer.kernel / 2);
  for (int k = 0; k < layer.length; ++k) {
    y = e.Op(
        "Conv",
        {y, weight({channels, channels / layer.group, layer.kernel, layer.kernel}, Cat("w", k)),
         weight({channels}, Cat("b", k))},
        {{"strides", Ints{1, 1}},
         {"dilations", Ints{layer.dilation, layer.dilation}},
         {"pads", Ints{pad, pad, pad, pad}},
         {"group", layer.group}});
    y = e.Op("Relu", {y});
  }
  e.Output("y", y);
  auto graph = e.Finish();
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

std::string ReportedOf(const Layer& layer) {
  return Cat(DTypeName(layer.dtype), " ", ShapeString(layer.x), ", ", layer.length, " layers");
}

int32_t PatchOf(const Graph& graph) {
  for (int32_t id = 0; id < static_cast<int32_t>(graph.nodes().size()); ++id) {
    if (graph.node(id).op->name == "Patch") return id;
  }
  return -1;
}

/// Expects that every convolution with a launch of its own is the mutant's: it is no smaller than
/// the smallest Patch.
void ExpectNoPieces(const CorrectedPlan& plan) {
  int64_t smallest = kMaxElements;
  for (const Node& node : plan.graph.nodes()) {
    if (node.op->name == "Patch") smallest = std::min(smallest, NumElements(node.outputs[0]));
  }
  for (const DeviceLaunch& launch : plan.program.launches) {
    if (launch.info.kernel.starts_with("correction:")) continue;
    for (const int32_t id : launch.info.nodes) {
      const Node& node = plan.graph.node(id);
      if (node.op->name != "Conv") continue;
      EXPECT_GE(NumElements(node.outputs[0]), smallest)
          << plan.description << ": " << launch.info.name;
    }
  }
}

bool IsCorrectedCopy(const DeviceLaunch& launch) { return launch.kernel.ends_with(kCorrectedCopy); }

/// Statistics of the plans of one rule and one way of correction.
struct Score {
  int plans = 0, copied = 0, over_copies = 0;
  std::map<std::string, int> refused;
  std::map<size_t, int> launches;  // plans by the launches of their correction
  std::string steps;               // of the first plan
};

class Plans {
 public:
  /// Adds the mutant of `rule` on `graph` whose match has the most nodes, corrected in every way.
  /// Returns false if the rule does not match.
  bool AddMutant(const Graph& graph, const Rule& rule, const std::string& description,
                 double tolerance) {
    std::vector<Match> matches;
    for (int32_t node = 0; node < static_cast<int32_t>(graph.nodes().size()); ++node) {
      for (Match& match : rule.match(graph, node, DefaultPredictor()))
        matches.push_back(std::move(match));
    }
    std::stable_sort(matches.begin(), matches.end(), [](const Match& a, const Match& b) {
      return a.nodes.size() > b.nodes.size();
    });
    for (const Match& match : matches) {
      const auto mutant = MakeMutant(graph, rule, match, DefaultPredictor());
      if (!mutant.ok()) continue;
      const auto report = Localize(mutant->original, mutant->mutant, {});
      if (!report.ok() || report->verdict != Verdict::kPartial) continue;
      for (const Correct correct : kCorrectionKinds) {
        const auto corrected = correct(mutant->original, mutant->mutant, *report, 1);
        if (corrected.ok() && PatchOf(corrected->graph) >= 0)
          Add(*corrected, Cat(rule.name, " by ", CorrectionName(corrected->correction)),
              description, tolerance);
      }
      return true;
    }
    return false;
  }

  const std::vector<CorrectedPlan>& plans() const { return plans_; }
  const std::map<std::string, Score>& scores() const { return scores_; }

 private:
  void Add(const CorrectedMutant& corrected, const std::string& key, const std::string& description,
           double tolerance) {
    auto plan = MakeCorrectedPlan(corrected.graph, Cat("p", plans_.size(), "_"), false);
    ASSERT_TRUE(plan.ok()) << key << plan.status();
    plan->description = Cat(key, ", ", description);
    plan->tolerance = tolerance;
    Score& score = scores_[key];
    ++score.plans;
    const CorrectionPlan planned =
        PlanCorrections(corrected.graph, ConstantExpressions(corrected.graph));
    size_t kernels = 0;
    for (const PlannedCorrection& correction : planned.corrections) {
      // A chain has a launch for each convolution. Terms of a difference are summed in scratch;
      // those of one sign share a launch.
      const bool differs = corrected.correction == mendel::CorrectionKind::kDifference ||
                           corrected.correction == mendel::CorrectionKind::kElementwise;
      if (correction.patch_kernels.scratch_elements == 0) {
        EXPECT_LE(correction.patch_kernels.kernels.size(), differs ? 2u : 1u) << plan->description;
      }
      kernels += correction.patch_kernels.kernels.size();
      score.copied += correction.in_place ? 0 : 1;
    }
    for (const auto& [patch, reason] : planned.refused) ++score.refused[reason];
    EXPECT_EQ(LaunchesBy(plan->program, "correction:").size(), kernels) << plan->description;
    ++score.launches[kernels];
    const size_t with_copy = std::count_if(plan->program.launches.begin(),
                                           plan->program.launches.end(), IsCorrectedCopy);
    score.over_copies += static_cast<int>(with_copy);
    if (planned.refused.empty()) ExpectNoPieces(*plan);
    if (score.steps.empty()) {
      for (const DeviceLaunch& launch : plan->program.launches)
        score.steps += Cat("\n      ", launch.info.name, ": ", launch.info.kernel);
    }
    plans_.push_back(*std::move(plan));
  }

  std::vector<CorrectedPlan> plans_;
  std::map<std::string, Score> scores_;
};

TEST(CorrectedPlans, EveryRuleAndWayOfCorrection) {
  Plans plans;
  const Layer layers[] = {
      Layer{.x = {4, 4, 8, 8}}, Layer{.x = {2, 4, 9, 10}, .kernel = 5, .dtype = DType::kF16},
      Layer{.x = {1, 4, 12, 12}, .dilation = 2, .dtype = DType::kBF16},
      Layer{.x = {4, 4, 8, 8}, .group = 4}, Layer{.x = {1, 4, 16, 16}, .length = 2}};
  for (const Rule* rule : AllRules()) {
    if (rule->claim != Claim::kPartial) continue;
    for (const Layer& layer : layers) plans.AddMutant(GraphOf(layer), *rule, ReportedOf(layer), 0);
    // A sample of the family's own, with weights of any size.
    bool taken = false;
    for (uint64_t seed = 11; !taken; ++seed) {
      ASSERT_LT(seed, 30u) << rule->name << " has no partial mutant";
      Rng rng(seed);
      const auto sample = rule->sample(rng);
      taken =
          sample.ok() && plans.AddMutant(*sample, *rule, Cat("its sample of seed ", seed), 2e-5);
    }
  }
  ASSERT_FALSE(plans.plans().empty());
  FakeDriver driver;
  const absl::Status prepared = driver.Prepare(ModuleOf(plans.plans()));
  ASSERT_TRUE(prepared.ok()) << std::string(prepared.message()).substr(0, 4000);
  for (const CorrectedPlan& plan : plans.plans())
    EXPECT_EQ(FailureOf(driver.table(), plan), "") << plan.description;
  EXPECT_EQ(driver.Leaks(), "");
  for (const char* rule : {"batch_to_space", "dilation_stack", "space_to_batch"}) {
    EXPECT_GT(plans.scores().at(Cat(rule, " by recompute")).over_copies, 0)
        << rule << ": its last layout change is a launch of its own";
  }
  for (const auto& [key, score] : plans.scores()) {
    std::printf("%s: %d plans, %d in a copy, %d with the mutant's copy-out%s\n", key.c_str(),
                score.plans, score.copied, score.over_copies, score.steps.c_str());
    for (const auto& [launches, count] : score.launches)
      std::printf("      %d corrected by %zu launches\n", count, launches);
    for (const auto& [reason, count] : score.refused)
      std::printf("      %d not: %s\n", count, reason.c_str());
  }
}

}  // namespace
}  // namespace mendel::cuda
