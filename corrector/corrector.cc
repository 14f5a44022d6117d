#include "corrector/corrector.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "base/status.h"
#include "graph/restrict.h"
#include "graph/rewrite.h"

namespace mendel {
namespace {

constexpr size_t kMaxBoxes = 256;       // more pieces than this are never worth launching
constexpr size_t kMaxMergeTrials = 64;  // pairs whose union is priced

Box Hull(const Box& a, const Box& b) {
  Box hull = a;
  for (size_t d = 0; d < a.begin.size(); ++d) {
    hull.begin[d] = std::min(a.begin[d], b.begin[d]);
    hull.end[d] = std::max(a.end[d], b.end[d]);
  }
  return hull;
}

/// Arithmetic of computing `box` of the output; infinite when it cannot be restricted.
double PriceOf(const Graph& original, int output, const Box& box) {
  const auto part = RestrictToBox(original, output, box);
  return part.ok() ? RunTimeFlops(*part) : std::numeric_limits<double>::infinity();
}

/// Joins boxes whose hull overlaps no other box and costs no more than both: two thin strips beside
/// one seam read almost the same rows.
std::vector<Box> JoinWhereCheaper(const Graph& original, int output, std::vector<Box> boxes) {
  std::vector<double> prices;
  for (const Box& box : boxes) prices.push_back(PriceOf(original, output, box));
  size_t trials = 0;
  for (size_t i = 0; i < boxes.size(); ++i) {
    for (size_t j = i + 1; j < boxes.size() && trials < kMaxMergeTrials; ++j) {
      const Box hull = Hull(boxes[i], boxes[j]);
      if (hull.Volume() > 2 * (boxes[i].Volume() + boxes[j].Volume())) continue;
      bool free = true;
      for (size_t k = 0; k < boxes.size(); ++k)
        free = free && (k == i || k == j || !Intersect(hull, boxes[k]).has_value());
      if (!free) continue;
      ++trials;
      const double price = PriceOf(original, output, hull);
      if (price > prices[i] + prices[j]) continue;
      boxes[i] = hull;
      prices[i] = price;
      boxes.erase(boxes.begin() + static_cast<int64_t>(j));
      prices.erase(prices.begin() + static_cast<int64_t>(j));
      j = i;  // the larger box may now take others
    }
  }
  std::sort(boxes.begin(), boxes.end());
  return boxes;
}

absl::Status CheckShare(const VerifierReport& report, double max_share) {
  for (const OutputReport& output : report.outputs) {
    const double share = static_cast<double>(output.wrong_elements) /
                         static_cast<double>(std::max<int64_t>(1, NumElements(output.shape)));
    if (share > max_share || output.wrong.size() > kMaxBoxes) {
      return absl::FailedPreconditionError(Cat("output '", output.name, "' is wrong in ",
                                               output.wrong.size(), " boxes, ", share * 100,
                                               " % of its elements: not worth correcting"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckMatch(const Graph& original, const Graph& mutant, const VerifierReport& report) {
  const size_t count = original.outputs().size();
  if (mutant.outputs().size() != count || report.outputs.size() != count ||
      mutant.inputs().size() != original.inputs().size()) {
    return InvalidInput(
        "correction: original, mutant and report have different numbers of inputs or outputs");
  }
  for (size_t k = 0; k < count; ++k) {
    const TensorType& type = original.type(original.outputs()[k].value);
    if (mutant.type(mutant.outputs()[k].value) != type || report.outputs[k].shape != type.shape) {
      return InvalidInput("correction: output ", k,
                          " of original, mutant and report differ in type");
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string_view CorrectionName(CorrectionKind correction) {
  switch (correction) {
    case CorrectionKind::kRecompute:
      return "recompute";
    case CorrectionKind::kDifference:
      return "difference";
    case CorrectionKind::kInside:
      return "inside";
    case CorrectionKind::kAtEnd:
      return "end";
    case CorrectionKind::kElementwise:
      return "elementwise";
  }
  return "";
}

absl::Status CheckCorrectable(const Graph& original, const Graph& mutant,
                              const VerifierReport& report, double max_share) {
  MENDEL_RETURN_IF_ERROR(CheckMatch(original, mutant, report));
  return CheckShare(report, max_share);
}

absl::StatusOr<CorrectedMutant> Recompute(const Graph& original, const Graph& mutant,
                                          const VerifierReport& report, double max_share) {
  MENDEL_RETURN_IF_ERROR(CheckCorrectable(original, mutant, report, max_share));
  CorrectedMutant result;
  for (size_t k = 0; k < report.outputs.size(); ++k) {
    result.boxes.push_back(
        JoinWhereCheaper(original, static_cast<int>(k), report.outputs[k].wrong));
  }
  std::vector<OutputBox> wanted;
  for (size_t k = 0; k < result.boxes.size(); ++k) {
    for (const Box& box : result.boxes[k]) wanted.push_back({static_cast<int>(k), box});
  }
  if (wanted.empty()) {
    result.graph = mutant;
    return result;
  }
  MENDEL_ASSIGN_OR_RETURN(const Graph pieces, RestrictToBoxes(original, wanted));
  result.flop_share = RunTimeFlops(pieces) / std::max(1.0, RunTimeFlops(original));
  GraphBuilder builder(mutant.name());
  std::vector<ValueId> inputs;
  for (int32_t id : mutant.inputs())
    inputs.push_back(builder.Input(InputName(mutant.node(id)), mutant.node(id).outputs[0]));
  MENDEL_ASSIGN_OR_RETURN(const std::vector<ValueId> values, Inline(mutant, inputs, builder));
  MENDEL_ASSIGN_OR_RETURN(const std::vector<ValueId> patches, Inline(pieces, inputs, builder));
  auto patch = patches.begin();
  for (size_t k = 0; k < values.size(); ++k) {
    ValueId value = values[k];
    if (!result.boxes[k].empty()) {
      std::vector<ValueId> operands = {value};
      for (size_t b = 0; b < result.boxes[k].size(); ++b) operands.push_back(*patch++);
      MENDEL_ASSIGN_OR_RETURN(
          value, builder.Add("Patch", std::move(operands), {{"boxes", result.boxes[k]}}));
    }
    builder.Output(mutant.outputs()[k].name, value);
  }
  MENDEL_ASSIGN_OR_RETURN(const Graph corrected, builder.Build());
  MENDEL_ASSIGN_OR_RETURN(result.graph, Deduplicate(corrected));
  MENDEL_RETURN_IF_ERROR(Annotate(CheckGraph(result.graph), "correction"));
  return result;
}

}  // namespace mendel
