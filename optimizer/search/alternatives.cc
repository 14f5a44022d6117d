#include "optimizer/search/alternatives.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "base/hash.h"
#include "base/status.h"
#include "graph/text.h"
#include "optimizer/profile/subprogram_key.h"

namespace mendel {
namespace {

std::string VerdictKey(const Mutant& mutant) {
  // "judge" is the verifier's old name: a new key would make stored verdicts invalid.
  return Sha256Hex(Cat("judge ", kVerifierVersion, " rule ", mutant.rule->name, "\n",
                       SubprogramKey(mutant.original), "\n", SubprogramKey(mutant.mutant)));
}

/// "verdict outputs {wrong_elements boxes rank {begin end}...}..." - numbers only.
std::string PrintReport(const VerifierReport& report) {
  std::ostringstream text;
  text << static_cast<int>(report.verdict) << ' ' << report.outputs.size();
  for (const OutputReport& output : report.outputs) {
    text << ' ' << output.wrong_elements << ' ' << output.wrong.size() << ' '
         << output.shape.size();
    for (int64_t extent : output.shape) text << ' ' << extent;
    for (const Box& box : output.wrong) {
      for (size_t d = 0; d < box.begin.size(); ++d)
        text << ' ' << box.begin[d] << ' ' << box.end[d];
    }
  }
  return text.str();
}

std::optional<VerifierReport> ParseReport(const std::string& text) {
  std::istringstream in(text);
  VerifierReport report;
  int verdict = 0;
  size_t outputs = 0;
  in >> verdict >> outputs;
  if (!in || verdict < 0 || verdict > static_cast<int>(Verdict::kUnproven) || outputs > 4096)
    return std::nullopt;
  report.verdict = static_cast<Verdict>(verdict);
  for (size_t k = 0; k < outputs; ++k) {
    OutputReport output;
    size_t boxes = 0, rank = 0;
    in >> output.wrong_elements >> boxes >> rank;
    if (!in || rank > static_cast<size_t>(kMaxRank) || boxes > (size_t{1} << 20))
      return std::nullopt;
    output.shape.resize(rank);
    for (int64_t& extent : output.shape) in >> extent;
    output.wrong.assign(boxes, {Shape(rank), Shape(rank)});
    for (Box& box : output.wrong) {
      for (size_t d = 0; d < rank; ++d) in >> box.begin[d] >> box.end[d];
    }
    report.outputs.push_back(std::move(output));
  }
  return in ? std::optional<VerifierReport>(report) : std::nullopt;
}

/// The verifier ran out of time or cannot decide: the candidate is not used, the search goes on.
bool Undecided(const absl::Status& status) {
  return absl::IsDeadlineExceeded(status) || absl::IsUnimplemented(status);
}

absl::StatusOr<VerifierReport> Report(const Mutant& mutant, const VerifierLimits& limits,
                                      ProfileCache& cache) {
  const std::string key = VerdictKey(mutant);
  if (const auto stored = cache.Get("verdict", key)) {
    if (const auto report = ParseReport(*stored)) return *report;
  }
  VerifierOptions options;
  options.seed = limits.seed;
  options.deadline = Deadline::After(limits.max_seconds);
  VerifierReport report;
  const auto screened = ScreenedEqual(mutant.original, mutant.mutant, options);
  if (Undecided(screened.status())) {
    report.reason = Cat("screening: ", screened.status().message());
    return report;
  }
  MENDEL_RETURN_IF_ERROR(screened.status());
  if (mutant.rule->claim == Claim::kExact) {
    report.verdict = *screened ? Verdict::kEquivalent : Verdict::kDifferent;
  } else {
    options.target_log2 = 0;  // the plan is certified
    auto localized = Localize(mutant.original, mutant.mutant, options);
    if (Undecided(localized.status())) {
      report.reason = Cat("localizing: ", localized.status().message());
      return report;
    }
    MENDEL_RETURN_IF_ERROR(localized.status());
    report = *std::move(localized);
  }
  const bool timed_out = report.verdict == Verdict::kUnproven && options.deadline.Passed();
  if (!timed_out) MENDEL_RETURN_IF_ERROR(cache.Put("verdict", key, PrintReport(report)));
  return report;
}

/// Recomputation and, where they apply, the other ways (at the end only where not inside the
/// mutant: both ride in its last layout change); only the one that was preferred, if one was.
/// FailedPrecondition when the mutant is not worth correcting.
absl::StatusOr<std::vector<CorrectedMutant>> CorrectionKinds(const Mutant& mutant,
                                                             const VerifierReport& report,
                                                             const VerifierLimits& limits,
                                                             ProfileCache& cache) {
  std::vector<CorrectedMutant> ways;
  // "mending" is the correction's old name: a new key would make stored choices invalid.
  const std::optional<std::string> preferred = cache.Get("mending", VerdictKey(mutant));
  for (const Correct correct : kCorrectionKinds) {
    if (correct == &AtEnd && ways.back().correction == CorrectionKind::kInside) continue;
    auto corrected = correct(mutant.original, mutant.mutant, report, limits.max_wrong_share);
    if (absl::IsFailedPrecondition(corrected.status()) && correct != &Recompute) continue;
    MENDEL_RETURN_IF_ERROR(corrected.status());
    ways.push_back(*std::move(corrected));
  }
  const auto other = [&](const CorrectedMutant& way) {
    return CorrectionName(way.correction) != *preferred;
  };
  if (preferred.has_value() && !std::all_of(ways.begin(), ways.end(), other)) {
    ways.erase(std::remove_if(ways.begin(), ways.end(), other), ways.end());
  }
  return ways;
}

/// FailedPrecondition when the verifier refuses the corrected mutant, Undecided when it cannot
/// report.
absl::Status ScreenCorrected(const Mutant& mutant, const CorrectedMutant& corrected,
                             const VerifierLimits& limits, ProfileCache& cache) {
  VerifierOptions options;
  options.seed = limits.seed + 1;
  options.deadline = Deadline::After(limits.max_seconds);
  const std::string way(CorrectionName(corrected.correction));
  // "mended" is the old word for corrected: a new key would make stored verdicts invalid.
  const std::string key = Cat("mended by ", way, " ", VerdictKey(mutant));
  if (cache.Get("verdict", key).has_value()) return absl::OkStatus();
  MENDEL_ASSIGN_OR_RETURN(const bool equal,
                          ScreenedEqual(mutant.original, corrected.graph, options));
  if (!equal)
    return absl::FailedPreconditionError(Cat("the verifier refuses it corrected by ", way));
  return cache.Put("verdict", key, "equal");
}

void Use(CorrectedMutant&& way, Alternative& alternative) {
  alternative.graph = std::move(way.graph);
  alternative.correction = std::string(CorrectionName(way.correction));
  alternative.boxes = std::move(way.boxes);
  alternative.flop_share = way.flop_share;
}

}  // namespace

std::string DescribeFault(const Rule& rule, std::string_view what) {
  return Cat("rule ", rule.name, ": ", what, "; the candidate is not used. Please report this");
}

absl::StatusOr<Alternative> Verify(const Mutant& mutant, const VerifierLimits& limits,
                                   ProfileCache& cache) {
  MENDEL_ASSIGN_OR_RETURN(const VerifierReport report, Report(mutant, limits, cache));
  Alternative result;
  result.reason = report.reason;
  if (report.verdict == Verdict::kEquivalent) {
    result.verification = Verification::kEqual;
    result.graph = mutant.mutant;
    return result;
  }
  if (report.verdict == Verdict::kUnproven) return result;
  if (report.verdict == Verdict::kDifferent) {
    result.verification = Verification::kScreenedOut;
    result.faulty = mutant.rule->claim == Claim::kExact;
    result.reason = result.faulty ? "claims to be exact, which the verifier refuses"
                                  : "no output element is right";
    return result;
  }
  auto ways = CorrectionKinds(mutant, report, limits, cache);
  if (absl::IsFailedPrecondition(ways.status())) {
    result.verification = Verification::kTooWrong;
    result.reason = std::string(ways.status().message());
    return result;
  }
  MENDEL_RETURN_IF_ERROR(ways.status());
  for (CorrectedMutant& way : *ways) {
    const absl::Status screened = ScreenCorrected(mutant, way, limits, cache);
    if (absl::IsFailedPrecondition(screened) || Undecided(screened)) {
      result.faulty = result.faulty || !Undecided(screened);
      result.reason = std::string(screened.message());
      continue;
    }
    MENDEL_RETURN_IF_ERROR(screened);
    if (result.verification == Verification::kCorrected) {
      result.others.push_back(std::move(way));
    } else {
      result.verification = Verification::kCorrected;
      Use(std::move(way), result);
    }
  }
  return result;
}

absl::Status PreferCorrection(const Mutant& mutant, int number, Alternative& alternative,
                              ProfileCache& cache) {
  if (number >= 0) Use(std::move(alternative.others[static_cast<size_t>(number)]), alternative);
  alternative.others.clear();
  // "mending" is the correction's old name: a new key would make stored choices invalid.
  return cache.Put("mending", VerdictKey(mutant), alternative.correction);
}

}  // namespace mendel
