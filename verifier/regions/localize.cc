// Finds where two programs differ: the wrong boxes of every output.
//
// The structure of each value (structure.h) and cut points give a grid of regions (region_grid.h).
// A few elements of a region, its probe, are evaluated in the field and decide all of it
// (region_plan.h, probe.h). What stays open is probed element by element.
#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "base/status.h"
#include "graph/bound.h"
#include "graph/rewrite.h"
#include "verifier/axioms/rewritten_pair.h"
#include "verifier/certify/shared_values.h"
#include "verifier/regions/box_merge.h"
#include "verifier/regions/probe.h"
#include "verifier/regions/region_plan.h"
#include "verifier/verifier.h"
#include "verifier/weights/shared_weights.h"

namespace mendel {
namespace {

/// A wrong answer of this tier is caught by certification: no need to go further.
constexpr double kEnoughLog2 = -60;
/// Bound of what congruence alone proves: no probability enters.
constexpr double kProvenLog2 = -1024;
/// Cutting shared values free is not tried where it leaves more of the arithmetic than this.
constexpr double kMostOfTheWork = 0.5;

bool AnyWrong(const std::vector<bool>& differs) {
  return std::find(differs.begin(), differs.end(), true) != differs.end();
}

class Localizer {
 public:
  Localizer(const Graph& f, const Graph& joint, const VerifierOptions& options)
      : f_(f),
        joint_(joint),
        options_(options),
        rng_(options.seed),
        wrong_(f.outputs().size()),
        proven_(f.outputs().size(), false) {}

  absl::StatusOr<VerifierReport> Run() {
    report_.bound_log2 = -std::numeric_limits<double>::infinity();
    MENDEL_RETURN_IF_ERROR(ProveWithSharedValuesFree());
    MENDEL_ASSIGN_OR_RETURN(const RegionProgram program,
                            MakeRegionProgram(joint_, options_.weights));
    std::vector<Region> regions = Plan(program);
    std::vector<Region> open;  // to be decided in the given weights
    if (program.stronger) {
      std::vector<Region> small;
      for (Region& region : regions) (region.Whole() ? open : small).push_back(std::move(region));
      MENDEL_ASSIGN_OR_RETURN(const ProbeResult free, Evaluate(program.graph, program.weights,
                                                               small, options_.target_log2));
      Account(free);
      // Elements that differ for some weights may be equal for these, at some positions.
      for (size_t k = 0; k < small.size(); ++k) {
        if (!AnyWrong(free.differs[k])) continue;
        open.push_back(
            {small[k].output, small[k].box, small[k].box, Shape(small[k].periods.size(), 0)});
      }
    } else {
      open = std::move(regions);
    }
    MENDEL_RETURN_IF_ERROR(Decide(open));
    report_.bound_log2 = std::max(report_.bound_log2, kProvenLog2);
    Conclude();
    return std::move(report_);
  }

 private:
  /// Values that both programs compute need not be computed where the rest agrees whatever they
  /// are.
  absl::Status ProveWithSharedValuesFree() {
    MENDEL_ASSIGN_OR_RETURN(const std::optional<Graph> cut, CutAtSharedValues(joint_));
    if (!cut.has_value() || RunTimeFlops(*cut) > kMostOfTheWork * RunTimeFlops(joint_))
      return absl::OkStatus();
    MENDEL_ASSIGN_OR_RETURN(const RegionProgram program, MakeRegionProgram(*cut, options_.weights));
    std::vector<Region> regions = Plan(program);
    std::vector<bool> equal(proven_.size(), true);
    for (const double target : {0.0, options_.target_log2}) {
      const int64_t probes = report_.probes;
      auto result = Evaluate(program.graph, program.weights, regions, target);
      if (target < 0) report_.probes = probes;  // the same elements again
      if (absl::IsAborted(result.status())) break;
      MENDEL_RETURN_IF_ERROR(result.status());
      for (size_t k = 0; k < regions.size(); ++k) {
        if (AnyWrong(result->differs[k])) equal[static_cast<size_t>(regions[k].output)] = false;
      }
      std::erase_if(regions, [&](const Region& region) {
        return !equal[static_cast<size_t>(region.output)];
      });
      if (regions.empty() || !result->reason.empty()) break;
      if (target == 0 && options_.target_log2 < 0) continue;
      Account(*result);
      proven_ = equal;
      break;
    }
    std::erase_if(fallbacks_,
                  [&](const auto& one) { return !proven_[static_cast<size_t>(one.first)]; });
    return absl::OkStatus();
  }

  /// Regions of all outputs that are neither congruent nor proven equal.
  std::vector<Region> Plan(const RegionProgram& program) {
    std::vector<Region> regions;
    const Graph& joint = program.graph;
    const auto structures = AnalyzeStructure(joint, program.weights);
    const size_t count = f_.outputs().size();
    for (size_t k = 0; k < count; ++k) {
      const ValueId a = joint.outputs()[k].value;
      const ValueId b = joint.outputs()[count + k].value;
      const Shape& shape = joint.type(a).shape;
      if (a == b || NumElements(shape) == 0 || proven_[k]) continue;
      const auto at = [&](ValueId value) -> const ValueStructure& {
        return structures[static_cast<size_t>(value.node)][static_cast<size_t>(value.output)];
      };
      const RegionGrid grid = CompareStructures(at(a), at(b));
      const std::vector<Region> planned = RegionsOfGrid(static_cast<int>(k), shape, grid);
      regions.insert(regions.end(), planned.begin(), planned.end());
      if (planned.size() > 1 || !planned[0].Whole()) continue;
      std::string reason = Cat(f_.outputs()[k].name, ": ", grid.Boxes(), " boxes for ",
                               NumElements(shape), " elements");
      for (const std::string& unknown : grid.unknown) reason += "; " + unknown;
      fallbacks_.emplace_back(static_cast<int>(k), std::move(reason));
    }
    return regions;
  }

  /// A probe that differs along a dimension with several classes does not decide the rest of the
  /// box: all of it is looked at.
  absl::Status Decide(const std::vector<Region>& regions) {
    MENDEL_ASSIGN_OR_RETURN(const ProbeResult first,
                            Evaluate(joint_, options_.weights, regions, options_.target_log2));
    Account(first);
    std::vector<Region> undecided;
    for (size_t k = 0; k < regions.size(); ++k) {
      if (!AnyWrong(first.differs[k])) continue;
      Region rest = Undecided(regions[k]);
      if (rest.probe == regions[k].probe) {
        Collect(rest, first.differs[k]);
      } else {
        undecided.push_back(std::move(rest));
      }
    }
    MENDEL_ASSIGN_OR_RETURN(const ProbeResult second,
                            Evaluate(joint_, options_.weights, undecided, options_.target_log2));
    Account(second);
    for (size_t k = 0; k < undecided.size(); ++k) Collect(undecided[k], second.differs[k]);
    return absl::OkStatus();
  }

  void Collect(const Region& region, const std::vector<bool>& differs) {
    std::vector<Box>& wrong = wrong_[static_cast<size_t>(region.output)];
    const std::vector<Box> boxes = WrongBoxes(region, differs);
    wrong.insert(wrong.end(), boxes.begin(), boxes.end());
  }

  absl::StatusOr<ProbeResult> Evaluate(const Graph& joint, WeightMode weights,
                                       const std::vector<Region>& regions, double target_log2) {
    std::vector<Probe> probes;
    for (const Region& region : regions) {
      probes.push_back({region.output, region.probe});
      report_.probes += region.probe.Volume();
    }
    VerifierOptions options = options_;
    options.weights = weights;
    return RunProbes(joint, probes, options, std::max(target_log2, kEnoughLog2), rng_);
  }

  /// Adds what an evaluation whose answer counts may have overlooked.
  void Account(const ProbeResult& result) {
    report_.bound_log2 = std::min(0.0, Log2Sum(report_.bound_log2, result.bound_log2));
    report_.tests = std::max(report_.tests, result.tests);
    if (report_.reason.empty()) report_.reason = result.reason;
  }

  void Conclude() {
    for (auto& [output, reason] : fallbacks_) report_.fallbacks.push_back(std::move(reason));
    int64_t wrong = 0;
    int64_t elements = 0;
    for (size_t k = 0; k < wrong_.size(); ++k) {
      const GraphOutput& output = f_.outputs()[k];
      OutputReport one{output.name, f_.type(output.value).shape, 0,
                       MergeTouching(std::move(wrong_[k]))};
      for (const Box& box : one.wrong) one.wrong_elements += box.Volume();
      wrong += one.wrong_elements;
      elements += NumElements(one.shape);
      report_.outputs.push_back(std::move(one));
    }
    if (wrong > 0 && wrong == elements) {
      report_.verdict = Verdict::kDifferent;  // an inequality in one test is a proof
    } else if (!report_.reason.empty()) {
      report_.verdict = Verdict::kUnproven;
    } else {
      report_.verdict = wrong == 0 ? Verdict::kEquivalent : Verdict::kPartial;
    }
  }

  const Graph& f_;
  const Graph& joint_;
  const VerifierOptions& options_;
  Rng rng_;
  std::vector<std::vector<Box>> wrong_;                 // an entry an output
  std::vector<bool> proven_;                            // an entry an output: equal
  std::vector<std::pair<int, std::string>> fallbacks_;  // output, reason
  VerifierReport report_;
};

absl::StatusOr<VerifierReport> LocalizeGiven(const Graph& f, const Graph& g,
                                             const VerifierOptions& options) {
  MENDEL_ASSIGN_OR_RETURN(const Graph joint, JoinPrograms(f, g, options.weights));
  auto report = Localizer(f, joint, options).Run();
  const absl::StatusCode code = report.status().code();
  if (report.ok() ||
      (code != absl::StatusCode::kAborted && code != absl::StatusCode::kDeadlineExceeded))
    return report;
  VerifierReport unproven;
  unproven.reason = std::string(report.status().message());
  for (const GraphOutput& output : f.outputs())
    unproven.outputs.push_back({output.name, f.type(output.value).shape, 0, {}});
  return unproven;
}

}  // namespace

absl::StatusOr<VerifierReport> Localize(const Graph& f, const Graph& g,
                                        const VerifierOptions& options) {
  auto given = LocalizeGiven(f, g, options);
  if (!given.ok() || given->verdict == Verdict::kEquivalent) return given;
  for (const PairForm form : kPairForms) {
    MENDEL_ASSIGN_OR_RETURN(const auto both, RewriteBoth(form, f, g, options.weights));
    if (!both.has_value()) continue;
    auto report = LocalizeGiven(both->f, both->g, options);
    if (report.ok() && report->verdict == Verdict::kEquivalent) return report;
  }
  return given;
}

}  // namespace mendel
