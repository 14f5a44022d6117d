#include "optimizer/search/whole_trials.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "base/status.h"
#include "mutator/rule.h"
#include "optimizer/search/candidate_program.h"

namespace mendel {
namespace {

// A whole program that is slower than this is not measured again.
constexpr double kNarrowly = 1.02;
constexpr int kMeasurements = 3;        // at one candidate in the whole program, the first included
constexpr double kClearlyBelow = 0.95;  // alone, to be tried together with others

CandidateClass CandidateOf(const AcceptedCandidate& accepted) {
  CandidateClass candidate;
  candidate.rule = FindRule(accepted.rule);
  candidate.choices = accepted.choices;
  candidate.key = accepted.key;
  candidate.occurrences = accepted.occurrences;
  candidate.measurements = accepted.measurement;
  candidate.alone = {0, accepted.original_ns, accepted.mutant_ns};
  return candidate;
}

Outcome OutcomeOf(const SearchSession::WholeResult& trial) {
  if (trial.accepted) return Outcome::kUsed;
  if (trial.grows) return Outcome::kRefused;
  return trial.dropped ? Outcome::kWrongNumbers : Outcome::kSlowerInWhole;
}

}  // namespace

absl::StatusOr<bool> WholeTrials::TryInTurn(std::vector<CandidateClass> candidates) {
  MENDEL_ASSIGN_OR_RETURN(bool improved, TryTogether(candidates));
  for (CandidateClass& candidate : candidates) {
    if (!session_.Affords(session_.whole_seconds())) session_.Stop(StopReason::kBudget);
    if (session_.Stopped()) break;
    session_.Report(Cat("whole program with ", candidate.rule->name));
    MENDEL_ASSIGN_OR_RETURN(const bool better, TryEverywhere(candidate));
    improved = improved || better;
  }
  return improved;
}

absl::StatusOr<bool> WholeTrials::TryEverywhere(CandidateClass& candidate) {
  const AcceptedCandidate entry = EntryOf(candidate);
  CandidateProgram program{session_.result().best.graph, session_.result().mutants, in_best_};
  MENDEL_ASSIGN_OR_RETURN(bool applied, ApplyCandidate(session_, entry, replaying_, program));
  if (!applied) {
    MENDEL_ASSIGN_OR_RETURN(applied,
                            ApplyCandidateFirst(session_, entry, in_best_, replaying_, program));
  }
  if (!applied) return false;
  MENDEL_ASSIGN_OR_RETURN(
      const SearchSession::WholeResult trial,
      session_.TryWhole(program.graph, Cat("the program with rule ", entry.rule), program.mutants,
                        candidate.measurements));
  log_.Note(
      candidate, OutcomeOf(trial),
      trial.grows ? "the whole program makes more weights than --max-weight-growth allows" : "");
  if (trial.accepted) {
    accepted_.push_back(entry);
    in_best_ = std::move(program.candidates);
  } else if (!trial.dropped && trial.ratio < kNarrowly &&
             candidate.measurements + 1 < kMeasurements) {
    std::erase_if(refused_, [&](const auto& before) { return before.key == candidate.key; });
    refused_.push_back(std::move(candidate));
    ++refused_.back().measurements;
    refused_.back().best_changed = accepted_.size();
  }
  return trial.accepted;
}

absl::StatusOr<bool> WholeTrials::MeasureAgain() {
  bool improved = false;
  while (!improved && !session_.Stopped()) {
    std::vector<CandidateClass> again, kept;
    for (CandidateClass& candidate : refused_) {
      const bool unlike = !session_.IsPredicted() || candidate.best_changed < accepted_.size();
      (unlike ? again : kept).push_back(std::move(candidate));
    }
    refused_ = std::move(kept);
    if (again.empty()) break;
    MENDEL_ASSIGN_OR_RETURN(improved, TryInTurn(std::move(again)));
  }
  return improved;
}

absl::StatusOr<bool> WholeTrials::Replay(const std::vector<AcceptedCandidate>& accepted,
                                         double algorithm_share) {
  replaying_ = true;
  auto fits = TakeAgain(accepted, algorithm_share);
  if (fits.ok() && *fits) return true;
  session_.Reset();
  accepted_.clear();
  in_best_.clear();
  refused_.clear();
  replaying_ = false;
  return fits;
}

AcceptedCandidate WholeTrials::EntryOf(const CandidateClass& candidate) const {
  return {std::string(candidate.rule->name),
          candidate.choices,
          candidate.key,
          candidate.occurrences,
          candidate.measurements,
          candidate.alone.original_ns,
          candidate.alone.mutant_ns,
          !session_.begun()};
}

absl::StatusOr<bool> WholeTrials::TryTogether(std::vector<CandidateClass>& candidates) {
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto& a, const auto& b) { return a.Gain() > b.Gain(); });
  if (!replaying_ && !session_.Affords(session_.whole_seconds())) return false;
  CandidateProgram program{session_.result().best.graph, session_.result().mutants, in_best_};
  std::vector<AcceptedCandidate> entries;
  for (const CandidateClass& candidate : candidates) {
    if (candidate.alone.ratio > kClearlyBelow) continue;
    MENDEL_ASSIGN_OR_RETURN(const bool applied,
                            ApplyCandidate(session_, EntryOf(candidate), replaying_, program));
    if (!applied && replaying_) return false;
    if (!applied) continue;
    entries.push_back(EntryOf(candidate));
    entries.back().together = groups_ + 1;
  }
  if (entries.size() < 2) return false;
  // Making many candidates takes time.
  if (replaying_ ? session_.Interrupted() : !session_.Affords(session_.whole_seconds()))
    return false;
  session_.Report(Cat("whole program with ", entries.size(), " rules' mutants"));
  MENDEL_ASSIGN_OR_RETURN(
      const SearchSession::WholeResult trial,
      session_.TryWhole(program.graph, "the program with several rules", program.mutants));
  if (!trial.accepted) return false;
  ++groups_;
  accepted_.insert(accepted_.end(), entries.begin(), entries.end());
  in_best_ = std::move(program.candidates);
  std::erase_if(candidates, [&](const CandidateClass& candidate) {
    const bool taken = std::any_of(entries.begin(), entries.end(),
                                   [&](const auto& entry) { return entry.key == candidate.key; });
    if (taken) log_.Note(candidate, Outcome::kUsed);
    return taken;
  });
  return true;
}

absl::StatusOr<bool> WholeTrials::TakeAgain(const std::vector<AcceptedCandidate>& accepted,
                                            double algorithm_share) {
  bool begun = false;
  for (size_t k = 0; k < accepted.size();) {
    if (!accepted[k].early && !begun) MENDEL_RETURN_IF_ERROR(session_.Begin(algorithm_share));
    begun = begun || !accepted[k].early;
    std::vector<CandidateClass> group;
    const int together = accepted[k].together;
    do {
      group.push_back(CandidateOf(accepted[k++]));
      if (group.back().rule == nullptr) return false;
    } while (k < accepted.size() && together != 0 && accepted[k].together == together);
    MENDEL_ASSIGN_OR_RETURN(const bool fits,
                            together == 0 ? TryEverywhere(group[0]) : TryTogether(group));
    if (!fits) return false;
  }
  if (!begun) MENDEL_RETURN_IF_ERROR(session_.Begin(algorithm_share));
  return true;
}

}  // namespace mendel
