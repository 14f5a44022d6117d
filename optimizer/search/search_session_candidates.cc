// Candidates of a search session: made, screened, verified, corrected, and measured alone.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "base/status.h"
#include "corrector/corrector.h"
#include "graph/rewrite.h"
#include "graph/weight_bytes.h"
#include "optimizer/search/search_session.h"

namespace mendel {
namespace {

constexpr double kMaxFlopRatio = 2.5;  // more arithmetic than this never won where it was measured
constexpr double kSubprogramSeconds = 0.15;

}  // namespace

bool SearchSession::GrowsTooMuch(const Graph& before, const Graph& after) {
  if (MadeWeightBytes(after) - MadeWeightBytes(before) <= most_growth_) return false;
  result_.counters.set_weight_growth(result_.counters.weight_growth() + 1);
  return true;
}

std::optional<Mutant> SearchSession::Make(const Graph& graph, const Rule& rule,
                                          const Match& match) {
  auto mutant = MakeMutant(graph, rule, match, predictor_);
  if (mutant.ok()) return *std::move(mutant);
  if (absl::IsInternal(mutant.status())) NoteFault(rule, std::string(mutant.status().message()));
  return std::nullopt;
}

void SearchSession::NoteFault(const Rule& rule, std::string_view what) {
  faults_.insert(DescribeFault(rule, what));
}

absl::StatusOr<bool> SearchSession::VerifyCandidate(const Mutant& mutant, double seconds,
                                                    Alternative& alternative) {
  plan::SearchCounters& counters = result_.counters;
  counters.set_proposed(counters.proposed() + 1);
  if (RunTimeFlops(mutant.mutant) > kMaxFlopRatio * RunTimeFlops(mutant.original)) {
    counters.set_screened_out(counters.screened_out() + 1);
    alternative.verification = Verification::kScreenedOut;
    alternative.reason =
        Cat("computes more than ", kMaxFlopRatio, " times as much as what it replaces");
    return false;
  }
  if (GrowsTooMuch(mutant.original, mutant.mutant)) {
    alternative.verification = Verification::kScreenedOut;
    alternative.reason = "makes more weights than --max-weight-growth allows";
    return false;
  }
  MENDEL_ASSIGN_OR_RETURN(alternative, Verify(mutant, Limits(), cache_));
  if (alternative.faulty) NoteFault(*mutant.rule, alternative.reason);
  const Verification verification = alternative.verification;
  if (verification == Verification::kCorrected || verification == Verification::kTooWrong)
    counters.set_partial(counters.partial() + 1);
  if (verification == Verification::kCorrected) counters.set_mended(counters.mended() + 1);
  if (verification == Verification::kScreenedOut || verification == Verification::kUnproven)
    counters.set_screened_out(counters.screened_out() + 1);
  const bool compared = verification == Verification::kCorrected && !alternative.others.empty() &&
                        Affords(AloneSeconds(seconds));
  if (compared) MENDEL_RETURN_IF_ERROR(ChooseCorrection(mutant, alternative));
  return verification == Verification::kEqual || verification == Verification::kCorrected;
}

absl::Status SearchSession::ChooseCorrection(const Mutant& mutant, Alternative& alternative) {
  std::vector<Variant> variants = {
      {alternative.graph, {}, Cat("corrected by ", alternative.correction)}};
  for (const CorrectedMutant& other : alternative.others) {
    variants.push_back({other.graph, {}, Cat("corrected by ", CorrectionName(other.correction))});
  }
  MENDEL_RETURN_IF_ERROR(PredictAlgorithms(variants));
  MENDEL_ASSIGN_OR_RETURN(const std::vector<Measurement> times,
                          profiler_.Compare(variants, kSubprogramSeconds));
  size_t fastest = 0;
  for (size_t k = 1; k < times.size(); ++k) {
    if (!times[k].dropped && times[k].timing.median_ms < times[fastest].timing.median_ms)
      fastest = k;
  }
  return PreferCorrection(mutant, static_cast<int>(fastest) - 1, alternative, cache_);
}

absl::Status SearchSession::PredictAlgorithms(std::vector<Variant>& variants) const {
  if (!IsPredicted()) return absl::OkStatus();
  for (Variant& variant : variants) {
    MENDEL_ASSIGN_OR_RETURN(variant.algorithms, profiler_.PredictedAlgorithms(variant.graph));
  }
  return absl::OkStatus();
}

Algorithms SearchSession::LikelyAlgorithms(const Graph& graph) const {
  if (IsPredicted()) return {};
  if (!begun_) return profiler_.FirstRanked(graph);
  return preferred_.empty() ? Algorithms{} : profiler_.Everywhere(graph, preferred_);
}

double SearchSession::AloneSeconds(double seconds) const {
  const double expected = std::max(kSubprogramSeconds, AloneRuns(seconds));
  return alone_spent_ > alone_expected_ ? expected * alone_spent_ / alone_expected_ : expected;
}

absl::StatusOr<AloneTimes> SearchSession::MeasureAlone(const Graph& original, const Graph& mutant,
                                                       double seconds, const std::string& name) {
  const Stopwatch clock;
  std::vector<Variant> variants = {{original, {}, "the original"}, {mutant, {}, name}};
  MENDEL_RETURN_IF_ERROR(PredictAlgorithms(variants));
  Algorithms faster[2] = {LikelyAlgorithms(original), LikelyAlgorithms(mutant)};
  if (!faster[0].empty() || !faster[1].empty()) {
    variants.push_back({original, std::move(faster[0]), "the original by likely algorithms"});
    variants.push_back({mutant, std::move(faster[1]), Cat(name, " by likely algorithms")});
  }
  MENDEL_ASSIGN_OR_RETURN(const std::vector<Measurement> times,
                          profiler_.Compare(variants, kSubprogramSeconds));
  alone_expected_ += std::max(kSubprogramSeconds, AloneRuns(seconds));
  alone_spent_ += clock.Seconds();
  // Ratios count round by round: a machine that is slower for a while is so for all programs.
  double best[2] = {times[0].ratio.median, times[1].ratio.median};
  for (size_t k = 2; k < times.size(); ++k)
    best[k % 2] = std::min(best[k % 2], times[k].ratio.median);
  const double unit_ns = times[0].timing.median_ms * 1e6;
  return AloneTimes{best[1] / best[0], best[0] * unit_ns, best[1] * unit_ns};
}

}  // namespace mendel
