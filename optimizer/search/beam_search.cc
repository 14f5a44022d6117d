// Cost-ordered search. Candidates are tried in the order of their expected gain a second of trying.
// The gain is made of the measured seconds of their matches in the chain and of the predicted
// seconds of the mutant. Equal subprograms are verified and measured once. A candidate that wins
// alone is tried in the whole program, and kept only if that gets faster. A candidate that lost
// narrowly is measured again while there is time: noise hides gains, and it may gain by later
// changes of the program.
//
// Algorithms of the operators are chosen first, because mutants must be faster than the program as
// it can be without them. Before even that come the mutants that save a good part of their work: no
// choice of algorithms makes up for them, and choosing takes longer in the larger program.

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/deadline.h"
#include "base/hash.h"
#include "base/status.h"
#include "mutator/rule.h"
#include "optimizer/search/candidate_log.h"
#include "optimizer/search/candidates.h"
#include "optimizer/search/matches.h"
#include "optimizer/search/search.h"
#include "optimizer/search/search_record.h"
#include "optimizer/search/search_session.h"
#include "optimizer/search/whole_trials.h"

namespace mendel {
namespace {

// A subprogram alone may be this much slower: views may cancel in the whole.
constexpr double kTryBelow = 1.03;
constexpr double kObviouslyBelow = 0.95;  // obvious candidates are at most so slow alone
// A candidate that saves so much of the program's measured seconds is tried in it at once: what is
// measured after it might use up the time.
constexpr double kLargeGain = 0.1;
// Before algorithms are chosen, only a candidate that saves so much is tried alone in the program:
// others may be inside it. All others share one comparison, and only if that fails those that save
// so much that it can be seen are tried alone.
constexpr double kObviousGain = 0.2, kVisibleGain = 0.03;
constexpr int kObviousRounds = 3;
// Comparisons of whole programs that must fit behind the trial of a small gain: the choice of
// algorithms, which often gains more, takes about as long as five of them.
constexpr double kKeptComparisons = 6;
constexpr double kKeptBehindLarge = 2;   // behind the trial of a large gain
constexpr double kObviousBudget = 0.35;  // of the search's
constexpr double kLeastSaving = 0.05;    // of the work: such mutants deserve more of the time
constexpr double kAlgorithmShare = 0.65, kLessAlgorithmShare = 0.5;
constexpr size_t kMostLogged = 200;

class BeamSearcher {
 public:
  explicit BeamSearcher(SearchSession& session)
      : session_(session),
        options_(session.options()),
        result_(session.result()),
        trials_(session, log_) {}

  absl::Status Run() {
    const std::string key = session_.Key("search 13");
    if (const auto stored = session_.cache().Get("search", key)) {
      MENDEL_ASSIGN_OR_RETURN(const bool replayed, Replay(*stored));
      if (replayed) {
        result_.candidates =
            ParseCandidates(session_.cache().Get("candidates", NamedKey(key)).value_or(""));
        return absl::OkStatus();
      }
    }
    MENDEL_RETURN_IF_ERROR(TakeObvious());
    MENDEL_RETURN_IF_ERROR(session_.Begin(AlgorithmShare()));
    int round = 0;
    for (bool improved = true; improved && !session_.Stopped(); ++round) {
      if (round == options_.max_rounds) {
        session_.Stop(StopReason::kRoundLimit);
        break;
      }
      MENDEL_ASSIGN_OR_RETURN(improved, RunRound());
      if (!improved) {
        MENDEL_ASSIGN_OR_RETURN(improved, trials_.MeasureAgain());
      }
    }
    if (left_out_) session_.Stop(StopReason::kBudget);
    MENDEL_RETURN_IF_ERROR(session_.FinalComparison());
    session_.MeasureParts();
    result_.counters.set_rounds(round);
    session_.FinishCounters(true);
    result_.candidates = log_.Sorted(kMostLogged);
    if (result_.stop_reason == StopReason::kInterrupted || session_.Interrupted())
      return absl::OkStatus();
    MENDEL_RETURN_IF_ERROR(
        session_.cache().Put("candidates", NamedKey(key), PrintCandidates(result_.candidates)));
    const SearchRecord record{static_cast<int>(result_.stop_reason),
                              static_cast<int>(session_.algorithm_trial()), result_.counters,
                              trials_.accepted(), result_.parts};
    return session_.cache().Put("search", key, PrintSearchRecord(record));
  }

 private:
  /// The key of the list of candidates, which names nodes: a program that differs in names alone
  /// has another one.
  std::string NamedKey(const std::string& key) const {
    std::string names = key;
    for (const Node& node : session_.baseline().graph.nodes())
      names += Cat(" ", node.name.size(), ":", node.name);
    return Sha256Hex(names);
  }

  /// Makes the recorded result again without searching; false when the record does not fit (it is
  /// then as if there were none).
  absl::StatusOr<bool> Replay(const std::string& text) {
    const std::optional<SearchRecord> record = ParseSearchRecord(text);
    if (!record.has_value()) return false;
    session_.Repeat(static_cast<SearchSession::AlgorithmTrial>(record->algorithm_trial));
    MENDEL_ASSIGN_OR_RETURN(const bool fits, trials_.Replay(record->accepted, kAlgorithmShare));
    if (!fits) {
      log_ = {};
      return false;
    }
    MENDEL_RETURN_IF_ERROR(session_.FinalComparison());
    result_.parts = record->parts;
    result_.stop_reason = static_cast<StopReason>(record->stop_reason);
    result_.counters = record->counters;
    session_.FinishCounters(false);
    return true;
  }

  double AlgorithmShare() const {
    return best_saved_share_ < kLeastSaving ? kAlgorithmShare : kLessAlgorithmShare;
  }

  /// Tries the mutants of `small` together; where that fails, the largest of them alone.
  absl::StatusOr<bool> TrySmall(std::vector<CandidateClass>& small, const Deadline& deadline) {
    MENDEL_ASSIGN_OR_RETURN(bool improved, trials_.TryTogether(small));
    for (size_t k = 0; k < small.size() && !improved; ++k) {
      if (small[k].GainShare() < kVisibleGain || session_.Stopped() ||
          deadline.SecondsLeft() < session_.whole_seconds())
        break;
      MENDEL_ASSIGN_OR_RETURN(improved, trials_.TryEverywhere(small[k]));
    }
    return improved;
  }

  /// Tries mutants alone until one is kept, the greatest gain first: others may be inside it, or
  /// another way to save the same work. Other choices of the kept one's rule are tried in its
  /// place: what is fastest alone need not be so in the whole program.
  absl::StatusOr<bool> TryLarge(std::vector<CandidateClass> large, const Deadline& deadline) {
    std::stable_sort(large.begin(), large.end(),
                     [](const auto& a, const auto& b) { return a.Gain() > b.Gain(); });
    std::string kept;  // the key of the mutant that is kept
    for (size_t k = 0; k < large.size(); ++k) {
      const double whole = session_.whole_seconds();
      if (k > 0 && (deadline.SecondsLeft() < whole || !session_.Affords(kKeptBehindLarge * whole)))
        break;
      const std::string key = large[k].key;
      if (!kept.empty() && !AreChoicesOfOne(key, kept)) continue;
      MENDEL_ASSIGN_OR_RETURN(const bool faster, trials_.TryEverywhere(large[k]));
      if (faster) kept = key;
    }
    return !kept.empty();
  }

  /// Half of the candidates that `options_` allows are left for the search's rounds.
  bool MayTryObvious() const {
    return !session_.Stopped() &&
           result_.counters.proposed() < options_.max_candidates - options_.max_candidates / 2;
  }

  /// Takes exact mutants that save a good part of their work, the largest part of the program's
  /// first. Those that save little of it are compared together.
  absl::Status TakeObvious() {
    if (session_.IsPredicted()) return absl::OkStatus();
    const Deadline deadline = session_.In(kObviousBudget * session_.SecondsLeft());
    bool left_out = false;
    for (int round = 0; round < kObviousRounds && !deadline.Passed(); ++round) {
      MENDEL_ASSIGN_OR_RETURN(std::vector<CandidateClass> classes,
                              CollectCandidates(session_, tried_, left_out));
      best_saved_share_ = BestSavedShare(classes);
      classes = ObviousOf(std::move(classes));
      std::vector<CandidateClass> large, small;
      std::set<int32_t> taken;  // nodes of `small`
      bool improved = false;
      for (CandidateClass& candidate : classes) {
        // Only mutants that save about as much compete with a large one.
        if (!large.empty() && !candidate.first_of_all &&
            candidate.saved_share < large[0].GainShare() / 2) {
          MENDEL_ASSIGN_OR_RETURN(improved, TryLarge(std::exchange(large, {}), deadline));
          if (improved) break;  // others are collected again behind it
        }
        const std::vector<int32_t> nodes = candidate.first->place.nodes;
        if (!IsLarge(candidate) && std::any_of(nodes.begin(), nodes.end(),
                                               [&](int32_t id) { return taken.count(id) > 0; }))
          continue;
        const double trial = session_.AloneSeconds(candidate.SecondsOfOne());
        const double whole = large.empty() ? 0 : session_.whole_seconds();
        if (deadline.SecondsLeft() < trial + whole || !MayTryObvious()) break;
        const double kept = IsLarge(candidate) ? kKeptBehindLarge : kKeptComparisons;
        if (!candidate.first_of_all && !session_.Affords(trial + kept * session_.whole_seconds()))
          continue;
        session_.Report(std::string(candidate.rule->name));
        MENDEL_ASSIGN_OR_RETURN(const bool keep, VerifyAndMeasure(candidate));
        tried_.erase(candidate.key);  // what is refused now may gain later
        if (!keep || candidate.alone.ratio > kObviouslyBelow) continue;
        if (candidate.GainShare() >= kObviousGain) large.push_back(candidate);
        taken.insert(nodes.begin(), nodes.end());
        small.push_back(std::move(candidate));  // one that is refused alone may gain with others
      }
      if (!improved) {
        MENDEL_ASSIGN_OR_RETURN(improved, TryLarge(std::move(large), deadline));
      }
      if (!improved) {
        MENDEL_ASSIGN_OR_RETURN(improved, TrySmall(small, deadline));
      }
      if (!improved) break;
    }
    return absl::OkStatus();
  }

  /// Collects, verifies and measures candidates of the current best, then tries the winners in the
  /// whole program.
  absl::StatusOr<bool> RunRound() {
    MENDEL_ASSIGN_OR_RETURN(std::vector<CandidateClass> classes,
                            CollectCandidates(session_, tried_, left_out_));
    for (const CandidateClass& candidate : classes) log_.Note(candidate, Outcome::kNotTried);
    std::vector<CandidateClass> to_try;
    bool improved = false;
    for (CandidateClass& candidate : classes) {
      // The best candidates so far must still be tried in the whole program.
      const double trials = static_cast<double>(std::min<size_t>(to_try.size(), 3));
      if (session_.Stopped() ||
          (!to_try.empty() && !session_.Affords(trials * session_.whole_seconds())))
        break;
      if (!session_.Affords(session_.AloneSeconds(candidate.SecondsOfOne()))) {
        left_out_ = true;
        continue;
      }
      session_.Report(std::string(candidate.rule->name));
      MENDEL_ASSIGN_OR_RETURN(const bool keep, VerifyAndMeasure(candidate));
      if (!keep) continue;
      if (candidate.GainShare() < kLargeGain || !session_.Affords(session_.whole_seconds())) {
        to_try.push_back(std::move(candidate));
        continue;
      }
      MENDEL_ASSIGN_OR_RETURN(improved, trials_.TryEverywhere(candidate));
      if (improved) break;  // others are collected again from the program that is the best now
    }
    MENDEL_ASSIGN_OR_RETURN(const bool others, trials_.TryInTurn(std::move(to_try)));
    return improved || others;
  }

  /// True when the candidate is worth trying in the whole program.
  absl::StatusOr<bool> VerifyAndMeasure(CandidateClass& candidate) {
    tried_.insert(candidate.key);
    const Mutant& mutant = *candidate.first;
    MENDEL_ASSIGN_OR_RETURN(
        const bool usable,
        session_.VerifyCandidate(mutant, candidate.SecondsOfOne(), candidate.alternative));
    if (!usable) {
      const bool undecided = candidate.alternative.verification == Verification::kUnproven;
      log_.Note(candidate, undecided ? Outcome::kUndecided : Outcome::kRefused,
                candidate.alternative.reason);
      return false;
    }
    MENDEL_ASSIGN_OR_RETURN(candidate.alone,
                            session_.MeasureAlone(mutant.original, candidate.alternative.graph,
                                                  candidate.SecondsOfOne(),
                                                  Cat("a mutant of rule ", candidate.rule->name)));
    const bool keep = candidate.alone.ratio < kTryBelow;
    const bool dropped = std::isinf(candidate.alone.ratio);
    const Outcome loss = dropped ? Outcome::kWrongNumbers : Outcome::kSlowerAlone;
    log_.Note(candidate, keep ? Outcome::kNotTriedInWhole : loss);
    return keep;
  }

  SearchSession& session_;
  const SearchOptions& options_;
  SearchResult& result_;
  CandidateLog log_;
  WholeTrials trials_;
  std::set<std::string> tried_;
  bool left_out_ = false;        // some candidate could not be afforded
  double best_saved_share_ = 0;  // of the program's work, by one exact candidate
};

}  // namespace

absl::Status BeamSearch(SearchSession& session) { return BeamSearcher(session).Run(); }

}  // namespace mendel
