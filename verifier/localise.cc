#include <algorithm>
#include <cmath>
#include <utility>

#include "base/status.h"
#include "graph/bound.h"
#include "verifier/box_merge.h"
#include "verifier/probe.h"
#include "verifier/regions.h"
#include "verifier/verifier.h"

namespace mendel {
namespace {

/// A wrong answer of this tier is caught by certification: no need to go further.
constexpr double kEnoughLog2 = -60;
/// Grids of more boxes than this cost more to restrict to than the whole output to evaluate.
constexpr double kMaxBoxes = 4096;
/// Small outputs are not worth restricting to many boxes unless the probes are a small part of them.
constexpr double kFewBoxes = 64;
constexpr double kProbeShare = 0.25;

/// A box of one output in which one probe decides.
struct Region {
  int output = 0;
  Box box;
  Box probe;
  std::vector<bool> alike;  ///< dimensions along which all elements of the box are equal or wrong together
};

void AppendRuns(const Region& region, const Box& probed, const std::vector<bool>& differs, std::vector<Box>& wrong) {
  const Shape extents = probed.Extents();
  const size_t rank = extents.size();
  const int64_t row = rank == 0 ? 1 : extents.back();
  std::vector<int64_t> at(rank, 0);
  for (int64_t flat = 0; flat < static_cast<int64_t>(differs.size()); flat += row) {
    for (int64_t i = 0; i < row;) {
      int64_t end = i;
      while (end < row && differs[static_cast<size_t>(flat + end)]) ++end;
      if (end == i) {
        ++i;
        continue;
      }
      Box box = probed;
      for (size_t d = 0; d < rank; ++d) {
        box.begin[d] = probed.begin[d] + (d + 1 == rank ? i : at[d]);
        box.end[d] = d + 1 == rank ? probed.begin[d] + end : box.begin[d] + 1;
        if (region.alike[d]) box.begin[d] = region.box.begin[d];
        if (region.alike[d]) box.end[d] = region.box.end[d];
      }
      wrong.push_back(std::move(box));
      i = end;
    }
    if (rank > 1) NextIndex(Shape(extents.begin(), extents.end() - 1), std::span(at).first(rank - 1));
  }
}

class Localiser {
 public:
  Localiser(const Graph& f, const Graph& joint, const JudgeOptions& options)
      : f_(f), joint_(joint), options_(options), rng_(options.seed), wrong_(f.outputs().size()) {}

  absl::StatusOr<JudgeReport> Run() {
    PlanRegions();
    std::vector<Probe> probes;
    for (const Region& region : regions_) probes.push_back({region.output, region.probe});
    MENDEL_ASSIGN_OR_RETURN(const ProbeResult first, Evaluate(probes));
    // Where a probe differs along a dimension with several classes, the rest of the box is not decided: look at all of it.
    std::vector<Region> undecided;
    for (size_t k = 0; k < regions_.size(); ++k) {
      const Region& region = regions_[k];
      if (std::find(first.differs[k].begin(), first.differs[k].end(), true) == first.differs[k].end()) continue;
      Region rest = region;
      for (size_t d = 0; d < region.alike.size(); ++d) {
        if (region.alike[d]) continue;
        rest.probe.begin[d] = region.box.begin[d];
        rest.probe.end[d] = region.box.end[d];
      }
      if (rest.probe == region.probe) {
        AppendRuns(region, region.probe, first.differs[k], wrong_[static_cast<size_t>(region.output)]);
      } else {
        undecided.push_back(std::move(rest));
      }
    }
    probes.clear();
    for (const Region& region : undecided) probes.push_back({region.output, region.probe});
    MENDEL_ASSIGN_OR_RETURN(const ProbeResult second, Evaluate(probes));
    for (size_t k = 0; k < undecided.size(); ++k) {
      AppendRuns(undecided[k], undecided[k].probe, second.differs[k], wrong_[static_cast<size_t>(undecided[k].output)]);
    }
    report_.bound_log2 = first.bound_log2;
    if (!undecided.empty()) report_.bound_log2 = std::min(0.0, Log2Sum(first.bound_log2, second.bound_log2));
    report_.tests = std::max(first.tests, second.tests);
    report_.reason = first.reason.empty() ? second.reason : first.reason;
    Conclude();
    return std::move(report_);
  }

 private:
  void PlanRegions() {
    const auto structures = AnalyseStructure(joint_, options_.weights);
    const size_t count = f_.outputs().size();
    for (size_t k = 0; k < count; ++k) {
      const ValueId a = joint_.outputs()[k].value;
      const ValueId b = joint_.outputs()[count + k].value;
      if (a == b || NumElements(joint_.type(a)) == 0) continue;  // congruent
      const auto at = [&](ValueId value) -> const ValueStructure& {
        return structures[static_cast<size_t>(value.node)][static_cast<size_t>(value.output)];
      };
      PlanOutput(static_cast<int>(k), CompareStructures(at(a), at(b)));
    }
  }

  void PlanOutput(int output, const RegionGrid& grid) {
    const Shape& shape = joint_.type(joint_.outputs()[static_cast<size_t>(output)].value).shape;
    const double volume = static_cast<double>(NumElements(shape));
    double probed = 1;  // the grid is a product, so the volume of its probes is one too
    for (size_t d = 0; d < shape.size(); ++d) {
      double along = 0;
      for (size_t k = 0; k < grid.begins[d].size(); ++k) {
        along += static_cast<double>(std::min(grid.classes[d], EndOf(grid, shape, d, k) - grid.begins[d][k]));
      }
      probed *= along;
    }
    const double boxes = grid.Boxes();
    if (probed >= volume || boxes > kMaxBoxes || (boxes > kFewBoxes && probed > kProbeShare * volume)) {
      regions_.push_back({output, Box::Whole(shape), Box::Whole(shape), std::vector<bool>(shape.size(), false)});
      std::string reason = Cat(f_.outputs()[static_cast<size_t>(output)].name, ": ", boxes, " boxes for ", volume, " elements");
      for (const std::string& unknown : grid.unknown) reason += "; " + unknown;
      report_.fallbacks.push_back(std::move(reason));
      return;
    }
    Shape counts;
    for (const auto& begins : grid.begins) counts.push_back(static_cast<int64_t>(begins.size()));
    std::vector<int64_t> at(counts.size(), 0);
    do {
      Region region{output, Box::Whole(shape), Box::Whole(shape), std::vector<bool>(shape.size(), false)};
      for (size_t d = 0; d < shape.size(); ++d) {
        const size_t k = static_cast<size_t>(at[d]);
        region.box.begin[d] = region.probe.begin[d] = grid.begins[d][k];
        region.box.end[d] = EndOf(grid, shape, d, k);
        region.probe.end[d] = std::min(region.box.end[d], region.box.begin[d] + grid.classes[d]);
        // One class: a step translates every term of both values alike, which keeps equal equal and different different.
        region.alike[d] = grid.classes[d] == 1;
      }
      regions_.push_back(std::move(region));
    } while (NextIndex(counts, at));
  }

  static int64_t EndOf(const RegionGrid& grid, const Shape& shape, size_t d, size_t k) {
    return k + 1 < grid.begins[d].size() ? grid.begins[d][k + 1] : shape[d];
  }

  absl::StatusOr<ProbeResult> Evaluate(const std::vector<Probe>& probes) {
    for (const Probe& probe : probes) report_.probes += probe.box.Volume();
    return RunProbes(joint_, probes, options_, std::max(options_.target_log2, kEnoughLog2), rng_);
  }

  void Conclude() {
    int64_t wrong = 0;
    int64_t elements = 0;
    for (size_t k = 0; k < wrong_.size(); ++k) {
      const GraphOutput& output = f_.outputs()[k];
      OutputReport one{output.name, f_.type(output.value).shape, 0, MergeTouching(std::move(wrong_[k]))};
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
  const JudgeOptions& options_;
  Rng rng_;
  std::vector<Region> regions_;
  std::vector<std::vector<Box>> wrong_;  // an entry an output
  JudgeReport report_;
};

}  // namespace

absl::StatusOr<JudgeReport> Localise(const Graph& f, const Graph& g, const JudgeOptions& options) {
  MENDEL_ASSIGN_OR_RETURN(const Graph joint, JoinPrograms(f, g, options.weights));
  auto report = Localiser(f, joint, options).Run();
  const absl::StatusCode code = report.status().code();
  if (report.ok() || (code != absl::StatusCode::kAborted && code != absl::StatusCode::kDeadlineExceeded)) return report;
  JudgeReport unproven;
  unproven.reason = std::string(report.status().message());
  for (const GraphOutput& output : f.outputs()) unproven.outputs.push_back({output.name, f.type(output.value).shape, 0, {}});
  return unproven;
}

}  // namespace mendel
