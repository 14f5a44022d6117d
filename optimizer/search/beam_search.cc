// Cost-ordered search: candidates are tried from those with the largest expected gain a second of
// trying (their places' measured seconds in the chain, what the predictor says of the mutant) to
// the least; equal subprograms are verified and measured once. What wins alone is then tried in the
// whole program and kept only if the whole program gets faster. What was refused narrowly is looked
// at again while there is time: noise hides gains, and a program that has changed since may gain by
// it.
//
// Algorithms of the operators are chosen first, because mutants must be faster than the program as
// it can be without them. Before even that come the mutants that save a good part of the program's
// work: no choice of algorithms makes up for them, and choosing takes longer in the larger program.

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/hash.h"
#include "base/status.h"
#include "graph/rewrite.h"
#include "mutator/rule.h"
#include "optimizer/normalize.h"
#include "optimizer/search/candidate_log.h"
#include "optimizer/search/candidates.h"
#include "optimizer/search/matches.h"
#include "optimizer/search/search.h"
#include "optimizer/search/search_record.h"
#include "optimizer/search/search_session.h"

namespace mendel {
namespace {

// A subprogram alone may be this much slower: views may cancel in the whole.
constexpr double kTryBelow = 1.03;
// A whole program that is slower than this is not measured again.
constexpr double kNarrowly = 1.02;
constexpr int kMeasurements = 3;  // at one candidate in the whole program, the first included
constexpr double kObviouslyBelow = 0.8;  // and are at most so slow alone
constexpr int kObviousRounds = 3;
constexpr double kObviousBudget = 0.35;  // of the search's
constexpr double kLeastSaving = 0.05;    // of the work: such mutants deserve more of the time
constexpr double kAlgorithmShare = 0.65, kLessAlgorithmShare = 0.5;
constexpr double kClearlyBelow = 0.95;  // alone, to be tried together with others
constexpr size_t kMostLogged = 200;

class BeamSearcher {
 public:
  explicit BeamSearcher(SearchSession& session)
      : session_(session), options_(session.options()), result_(session.result()) {}

  absl::Status Run() {
    const std::string key = session_.Key("search 7");
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
        MENDEL_ASSIGN_OR_RETURN(improved, MeasureAgain());
      }
    }
    if (left_out_) session_.Stop(StopReason::kBudget);
    MENDEL_RETURN_IF_ERROR(session_.FinalComparison());
    result_.counters.set_rounds(round);
    session_.FinishCounters(true);
    result_.candidates = log_.Sorted(kMostLogged);
    if (result_.stop_reason == StopReason::kInterrupted) return absl::OkStatus();
    MENDEL_RETURN_IF_ERROR(
        session_.cache().Put("candidates", NamedKey(key), PrintCandidates(result_.candidates)));
    const SearchRecord record{static_cast<int>(result_.stop_reason), result_.counters, accepted_};
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
    replaying_ = true;
    if (auto fits = TakeAgain(record->accepted); !fits.ok() || !*fits) {
      session_.Reset();
      accepted_.clear();
      in_best_.clear();
      refused_.clear();
      replaying_ = false;
      return fits;
    }
    MENDEL_RETURN_IF_ERROR(session_.FinalComparison());
    result_.stop_reason = static_cast<StopReason>(record->stop_reason);
    result_.counters = record->counters;
    session_.FinishCounters(false);
    return true;
  }

  /// Accepts what a record says was accepted; false where that is not so now.
  absl::StatusOr<bool> TakeAgain(const std::vector<AcceptedCandidate>& accepted) {
    bool begun = false;
    for (size_t k = 0; k < accepted.size();) {
      if (!accepted[k].early && !begun) MENDEL_RETURN_IF_ERROR(session_.Begin(kAlgorithmShare));
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
    if (!begun) MENDEL_RETURN_IF_ERROR(session_.Begin(kAlgorithmShare));
    return true;
  }

  static CandidateClass CandidateOf(const AcceptedCandidate& accepted) {
    CandidateClass candidate;
    candidate.rule = FindRule(accepted.rule);
    candidate.choices = accepted.choices;
    candidate.key = accepted.key;
    candidate.occurrences = accepted.occurrences;
    candidate.measurements = accepted.measurement;
    candidate.alone = {0, accepted.original_ns, accepted.mutant_ns};
    return candidate;
  }

  double AlgorithmShare() const {
    return best_saved_share_ < kLeastSaving ? kAlgorithmShare : kLessAlgorithmShare;
  }

  /// Takes exact mutants that save a good part of the program's work, the largest part first.
  absl::Status TakeObvious() {
    if (session_.IsPredicted()) return absl::OkStatus();
    const Deadline deadline = session_.In(kObviousBudget * session_.SecondsLeft());
    bool left_out = false;
    for (int round = 0; round < kObviousRounds && !deadline.Passed(); ++round) {
      MENDEL_ASSIGN_OR_RETURN(std::vector<CandidateClass> classes,
                              CollectCandidates(session_, tried_, left_out));
      best_saved_share_ = BestSavedShare(classes);
      classes = ObviousOf(std::move(classes));
      bool improved = false;
      for (CandidateClass& candidate : classes) {
        const double trial = session_.AloneSeconds(candidate.SecondsOfOne());
        if (deadline.SecondsLeft() < trial || session_.Stopped()) break;
        session_.Report(std::string(candidate.rule->name));
        MENDEL_ASSIGN_OR_RETURN(const bool keep, VerifyAndMeasure(candidate));
        tried_.erase(candidate.key);  // what is refused now may gain later
        if (!keep || candidate.alone.ratio > kObviouslyBelow) continue;
        MENDEL_ASSIGN_OR_RETURN(improved, TryEverywhere(candidate));
        if (improved) break;  // others may be inside it
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
      if (keep) to_try.push_back(std::move(candidate));
    }
    return TryInTurn(std::move(to_try));
  }

  /// Tries candidates in the whole program, the greatest gain first; true when the best has
  /// changed.
  absl::StatusOr<bool> TryInTurn(std::vector<CandidateClass> candidates) {
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const auto& a, const auto& b) { return a.Gain() > b.Gain(); });
    bool improved = false;
    // One comparison decides about all that are clearly faster alone where time is short.
    const double each = session_.whole_seconds() * static_cast<double>(candidates.size());
    if (!session_.Affords(each) && session_.Affords(session_.whole_seconds())) {
      MENDEL_ASSIGN_OR_RETURN(improved, TryTogether(candidates));
    }
    for (CandidateClass& candidate : candidates) {
      if (!session_.Affords(session_.whole_seconds())) session_.Stop(StopReason::kBudget);
      if (session_.Stopped()) break;
      session_.Report(Cat("whole program with ", candidate.rule->name));
      MENDEL_ASSIGN_OR_RETURN(const bool better, TryEverywhere(candidate));
      improved = improved || better;
    }
    return improved;
  }

  /// Tries the narrowly refused again until the best has changed, those that may say something new:
  /// predicted seconds of equal programs are equal.
  absl::StatusOr<bool> MeasureAgain() {
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

  bool MayGoOn() const { return replaying_ ? !session_.Interrupted() : session_.MayGoOn(); }

  /// The entry's mutants at places of `graph` that do not overlap, as long as `applied`, which
  /// gets them, has less than `all`. A mutant of another rule may have taken some places since.
  absl::StatusOr<std::vector<Replacement>> FindPlaces(const Graph& graph,
                                                      const AcceptedCandidate& entry, size_t all,
                                                      std::vector<plan::AppliedMutant>& applied) {
    const Rule& rule = *FindRule(entry.rule);
    std::vector<Replacement> replacements;
    for (int32_t node = 0; node < static_cast<int32_t>(graph.nodes().size()); ++node) {
      if (applied.size() >= all || !MayGoOn()) break;
      for (const Match& match : rule.match(graph, node)) {
        if (match.choices != entry.choices) continue;
        const auto key = MatchKey(graph, rule, match);
        if (!key.ok() || *key != entry.key) continue;
        // Made anew at every place: the weights have other names there. The verdict is stored, so
        // this is quick.
        std::optional<Mutant> mutant = session_.Make(graph, rule, match);
        if (!mutant.has_value()) break;
        if (!replacements.empty() &&
            mutant->place.nodes.front() <= replacements.back().place.nodes.back())
          break;
        MENDEL_ASSIGN_OR_RETURN(Alternative alternative,
                                Verify(*mutant, session_.Limits(), session_.cache()));
        if (alternative.verification != Verification::kEqual &&
            alternative.verification != Verification::kCorrected)
          break;
        applied.push_back(
            DescribeMutant(graph, *mutant, alternative, entry.original_ns, entry.mutant_ns));
        replacements.push_back({std::move(mutant->place), std::move(alternative.graph)});
        break;
      }
    }
    return replacements;
  }

  /// A program and what it was made by.
  struct Program {
    Graph graph;
    std::vector<plan::AppliedMutant> mutants;
    std::vector<AcceptedCandidate> candidates;
  };

  AcceptedCandidate EntryOf(const CandidateClass& candidate) const {
    return {std::string(candidate.rule->name),
            candidate.choices,
            candidate.key,
            candidate.occurrences,
            candidate.measurements,
            candidate.alone.original_ns,
            candidate.alone.mutant_ns,
            !session_.begun()};
  }

  /// Applies all candidates that are clearly faster alone and do not get into each other's way, and
  /// keeps them if the whole program gets faster. Kept ones leave `candidates`.
  absl::StatusOr<bool> TryTogether(std::vector<CandidateClass>& candidates) {
    Program program{result_.best.graph, result_.mutants, in_best_};
    std::vector<AcceptedCandidate> entries;
    for (const CandidateClass& candidate : candidates) {
      if (candidate.alone.ratio > kClearlyBelow) continue;
      MENDEL_ASSIGN_OR_RETURN(const bool applied, Apply(EntryOf(candidate), program));
      if (!applied) continue;
      entries.push_back(EntryOf(candidate));
      entries.back().together = groups_ + 1;
    }
    if (entries.size() < 2) return false;
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

  /// Applies the candidate wherever it occurs in the current best, or in the baseline where other
  /// mutants have taken its places, and keeps the result when it is faster. A candidate that is
  /// narrowly refused moves to refused_.
  absl::StatusOr<bool> TryEverywhere(CandidateClass& candidate) {
    const AcceptedCandidate entry = EntryOf(candidate);
    Program program{result_.best.graph, result_.mutants, in_best_};
    MENDEL_ASSIGN_OR_RETURN(bool applied, Apply(entry, program));
    if (!applied) {
      MENDEL_ASSIGN_OR_RETURN(applied, ApplyFirst(entry, program));
    }
    if (!applied) return false;
    MENDEL_ASSIGN_OR_RETURN(
        const SearchSession::WholeResult trial,
        session_.TryWhole(program.graph, Cat("the program with rule ", entry.rule), program.mutants,
                          candidate.measurements));
    log_.Note(candidate, trial.accepted  ? Outcome::kUsed
                         : trial.dropped ? Outcome::kWrongNumbers
                                         : Outcome::kSlowerInWhole);
    if (trial.accepted) {
      accepted_.push_back(entry);
      in_best_ = std::move(program.candidates);
    } else if (!trial.dropped && trial.ratio < kNarrowly &&
               candidate.measurements + 1 < kMeasurements) {
      refused_.push_back(std::move(candidate));
      ++refused_.back().measurements;
      refused_.back().best_changed = accepted_.size();
    }
    return trial.accepted;
  }

  /// The candidate in the baseline, then what is in the best, as far as its places are still there.
  /// False where the candidate gains no more than what has to give way to it.
  absl::StatusOr<bool> ApplyFirst(const AcceptedCandidate& entry, Program& program) {
    program = {session_.baseline().graph, {}, {}};
    MENDEL_ASSIGN_OR_RETURN(const bool applied, Apply(entry, program));
    if (!applied) return false;
    double lost = 0;
    for (const AcceptedCandidate& other : in_best_) {
      MENDEL_ASSIGN_OR_RETURN(const bool kept, Apply(other, program));
      lost += kept ? 0 : GainOf(other);
    }
    return GainOf(entry) > lost;
  }

  static double GainOf(const AcceptedCandidate& entry) {
    return static_cast<double>(entry.occurrences) * (entry.original_ns - entry.mutant_ns);
  }

  /// Applies the candidate wherever it occurs in `program`; false where it does not.
  absl::StatusOr<bool> Apply(const AcceptedCandidate& entry, Program& program) {
    const size_t before = program.mutants.size();
    const size_t all = before + static_cast<size_t>(entry.occurrences);
    // Places that overlap are replaced in several passes, each of those that are left.
    for (bool found = true; found && program.mutants.size() < all;) {
      MENDEL_ASSIGN_OR_RETURN(const std::vector<Replacement> replacements,
                              FindPlaces(program.graph, entry, all, program.mutants));
      if (!MayGoOn()) return false;
      found = !replacements.empty();
      MENDEL_ASSIGN_OR_RETURN(program.graph, ReplaceAll(program.graph, replacements));
    }
    if (program.mutants.size() == before) return false;
    program.candidates.push_back(entry);
    MENDEL_ASSIGN_OR_RETURN(program.graph,
                            Normalize(program.graph, options_.disabled_rules, session_.faults()));
    return true;
  }

  SearchSession& session_;
  const SearchOptions& options_;
  SearchResult& result_;
  CandidateLog log_;
  std::set<std::string> tried_;
  bool replaying_ = false;  // stored outcomes are quick, and are made again whatever time is left
  bool left_out_ = false;   // some candidate could not be afforded
  double best_saved_share_ = 0;              // of the program's work, by one exact candidate
  int groups_ = 0;                           // groups of candidates that were accepted together
  std::vector<AcceptedCandidate> accepted_;  // in the order of acceptance
  std::vector<AcceptedCandidate> in_best_;
  std::vector<CandidateClass> refused_;  // narrowly
};

}  // namespace

absl::Status BeamSearch(SearchSession& session) { return BeamSearcher(session).Run(); }

}  // namespace mendel
