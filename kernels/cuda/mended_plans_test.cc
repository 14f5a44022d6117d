// Real mended mutants as whole plans: every partial rule on small layers, judged, mended in every way, captured and replayed on the
// fake driver, every element equal to float64.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

#include "base/status.h"
#include "corrector/corrector.h"
#include "graph/emitter.h"
#include "graph/rewrite.h"
#include "kernels/cuda/backend/mended_copy.h"
#include "kernels/cuda/emit/correction_plan.h"
#include "kernels/cuda/fake/fake_driver.h"
#include "kernels/cuda/mended_plan.h"
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
    for (int64_t i = 0; i < NumElements(shape); ++i) values.push_back(static_cast<double>(rng.Between(-1, 1)));
    return e.Constant(Tensor::FromDoubles({layer.dtype, shape}, values), name);
  };
  ValueId y = e.Input("x", {layer.dtype, layer.x});
  const int64_t channels = layer.x[1], pad = layer.dilation * (layer.kernel / 2);
  for (int k = 0; k < layer.length; ++k) {
    y = e.Op(
        "Conv",
        {y, weight({channels, channels / layer.group, layer.kernel, layer.kernel}, Cat("w", k)), weight({channels}, Cat("b", k))},
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

std::string ToldOf(const Layer& layer) {
  return Cat(DTypeName(layer.dtype), " ", ShapeString(layer.x), ", ", layer.length, " layers");
}

int32_t PatchOf(const Graph& graph) {
  for (int32_t id = 0; id < static_cast<int32_t>(graph.nodes().size()); ++id) {
    if (graph.node(id).op->name == "Patch") return id;
  }
  return -1;
}

/// Of the convolutions of the program, those that a launch of its own computes are the mutant's: no smaller than its Patches.
void ExpectNoPieces(const MendedPlan& plan) {
  int64_t smallest = kMaxElements;
  for (const Node& node : plan.graph.nodes()) {
    if (node.op->name == "Patch") smallest = std::min(smallest, NumElements(node.outputs[0]));
  }
  for (const DeviceLaunch& launch : plan.program.launches) {
    if (launch.info.kernel.starts_with("correction:")) continue;
    for (const int32_t id : launch.info.nodes) {
      const Node& node = plan.graph.node(id);
      if (node.op->name != "Conv") continue;
      EXPECT_GE(NumElements(node.outputs[0]), smallest) << plan.told << ": " << launch.info.name;
    }
  }
}

bool IsMendedCopy(const DeviceLaunch& launch) { return launch.kernel.ends_with(kMendedCopy); }

/// What the plans of one rule and way of mending are made of.
struct Score {
  int plans = 0, copied = 0, over_copies = 0;
  std::map<std::string, int> refused;
  std::map<size_t, int> launches;  // plans by the launches of their correction
  std::string steps;               // of the first plan
};

class Plans {
 public:
  /// One mutant of `rule` on `graph`, of those that match the one that takes the most nodes, mended in every way. False: there is
  /// none.
  bool AddMutant(const Graph& graph, const Rule& rule, const std::string& told, double tolerance) {
    std::vector<Match> matches;
    for (int32_t node = 0; node < static_cast<int32_t>(graph.nodes().size()); ++node) {
      for (Match& match : rule.match(graph, node)) matches.push_back(std::move(match));
    }
    std::stable_sort(matches.begin(), matches.end(),
                     [](const Match& a, const Match& b) { return a.nodes.size() > b.nodes.size(); });
    for (const Match& match : matches) {
      const auto mutant = MakeMutant(graph, rule, match);
      if (!mutant.ok()) continue;
      const auto report = Localise(mutant->original, mutant->mutant, {});
      if (!report.ok() || report->verdict != Verdict::kPartial) continue;
      for (const Mend mend : kWaysOfMending) {
        const auto mended = mend(mutant->original, mutant->mutant, *report, 1);
        if (mended.ok() && PatchOf(mended->graph) >= 0)
          Add(*mended, Cat(rule.name, " by ", MendingName(mended->mending)), told, tolerance);
      }
      return true;
    }
    return false;
  }

  const std::vector<MendedPlan>& plans() const { return plans_; }
  const std::map<std::string, Score>& scores() const { return scores_; }

 private:
  void Add(const MendedMutant& mended, const std::string& key, const std::string& told, double tolerance) {
    auto plan = MakeMendedPlan(mended.graph, Cat("p", plans_.size(), "_"), false);
    ASSERT_TRUE(plan.ok()) << key << plan.status();
    plan->told = Cat(key, ", ", told);
    plan->tolerance = tolerance;
    Score& score = scores_[key];
    ++score.plans;
    const CorrectionPlan planned = PlanCorrections(mended.graph, ConstantExpressions(mended.graph));
    size_t kernels = 0;
    for (const PlannedCorrection& correction : planned.corrections) {
      // A chain is a launch each convolution, and terms of a difference are summed in scratch; those of one sign share a launch.
      const bool differs = mended.mending == mendel::Mending::kDifference || mended.mending == mendel::Mending::kElementwise;
      if (correction.mending.scratch_elements == 0) {
        EXPECT_LE(correction.mending.kernels.size(), differs ? 2u : 1u) << plan->told;
      }
      kernels += correction.mending.kernels.size();
      score.copied += correction.in_place ? 0 : 1;
    }
    for (const auto& [patch, reason] : planned.refused) ++score.refused[reason];
    EXPECT_EQ(LaunchesBy(plan->program, "correction:").size(), kernels) << plan->told;
    ++score.launches[kernels];
    const size_t with_copy = std::count_if(plan->program.launches.begin(), plan->program.launches.end(), IsMendedCopy);
    score.over_copies += static_cast<int>(with_copy);
    if (planned.refused.empty()) ExpectNoPieces(*plan);
    if (score.steps.empty()) {
      for (const DeviceLaunch& launch : plan->program.launches)
        score.steps += Cat("\n      ", launch.info.name, ": ", launch.info.kernel);
    }
    plans_.push_back(*std::move(plan));
  }

  std::vector<MendedPlan> plans_;
  std::map<std::string, Score> scores_;
};

TEST(MendedPlans, EveryRuleAndWayOfMending) {
  Plans plans;
  const Layer layers[] = {Layer{.x = {4, 4, 8, 8}}, Layer{.x = {2, 4, 9, 10}, .kernel = 5, .dtype = DType::kF16},
                          Layer{.x = {1, 4, 12, 12}, .dilation = 2, .dtype = DType::kBF16}, Layer{.x = {4, 4, 8, 8}, .group = 4},
                          Layer{.x = {1, 4, 16, 16}, .length = 2}};
  for (const Rule* rule : AllRules()) {
    if (rule->claim != Claim::kPartial) continue;
    for (const Layer& layer : layers) plans.AddMutant(GraphOf(layer), *rule, ToldOf(layer), 0);
    // A sample of the family's own, with weights of any size.
    bool taken = false;
    for (uint64_t seed = 11; !taken; ++seed) {
      ASSERT_LT(seed, 30u) << rule->name << " has no partial mutant";
      Rng rng(seed);
      const auto sample = rule->sample(rng);
      taken = sample.ok() && plans.AddMutant(*sample, *rule, Cat("its sample of seed ", seed), 2e-5);
    }
  }
  ASSERT_FALSE(plans.plans().empty());
  FakeDriver driver;
  const absl::Status prepared = driver.Prepare(ModuleOf(plans.plans()));
  ASSERT_TRUE(prepared.ok()) << std::string(prepared.message()).substr(0, 4000);
  for (const MendedPlan& plan : plans.plans()) EXPECT_EQ(FailureOf(driver.table(), plan), "") << plan.told;
  EXPECT_EQ(driver.Leaks(), "");
  for (const char* rule : {"batch_to_space", "dilation_stack", "space_to_batch"}) {
    EXPECT_GT(plans.scores().at(Cat(rule, " by recompute")).over_copies, 0)
        << rule << ": its last layout change is a launch of its own";
  }
  for (const auto& [key, score] : plans.scores()) {
    std::printf("%s: %d plans, %d in a copy, %d with the mutant's copy-out%s\n", key.c_str(), score.plans, score.copied,
                score.over_copies, score.steps.c_str());
    for (const auto& [launches, count] : score.launches) std::printf("      %d mended by %zu launches\n", count, launches);
    for (const auto& [reason, count] : score.refused) std::printf("      %d not: %s\n", count, reason.c_str());
  }
}

}  // namespace
}  // namespace mendel::cuda
