// A search session is the part that every search method shares: whole programs compete with the
// best so far, the budget is kept, the outcome is delivered.
#ifndef MENDEL_OPTIMIZER_SEARCH_SEARCH_SESSION_H_
#define MENDEL_OPTIMIZER_SEARCH_SEARCH_SESSION_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "mutator/rule.h"
#include "optimizer/search/alternatives.h"
#include "optimizer/search/gain_parts.h"
#include "optimizer/search/search.h"

namespace mendel {

/// Original and mutant measured alone, each with the better of its default algorithms and the
/// preferred one; with the cheapest ones where seconds are predicted.
struct AloneTimes {
  double ratio = 1;  ///< mutant over original; infinite when the mutant was dropped for its numbers
  double original_ns = 0;
  double mutant_ns = 0;
};

/// Not thread-safe; all arguments must outlive it.
class SearchSession {
 public:
  SearchSession(const Graph& baseline, Profiler& profiler, ProfileCache& cache,
                const SearchOptions& options);

  /// Everything the outcome depends on besides the stored measurements, hashed. `method` names the
  /// method and its version.
  std::string Key(const std::string& method) const;

  /// Chooses algorithms for the best program so far; from here on they are chosen for every whole
  /// program. `algorithm_share`: of the time left, for choosing them.
  absl::Status Begin(double algorithm_share);
  bool begun() const { return begun_; }
  /// The program with the algorithms chosen is compared with the baseline at once; in the last
  /// comparison, because there is time for one only; nowhere.
  enum class AlgorithmTrial : uint8_t { kAtOnce, kLast, kNone };
  AlgorithmTrial algorithm_trial() const {
    return algorithm_trial_.value_or(AlgorithmTrial::kAtOnce);
  }
  /// Begin does as in a search that is made again, whatever time is left.
  void Repeat(AlgorithmTrial trial) { algorithm_trial_ = trial; }
  /// A whole program measured against the best so far.
  struct WholeResult {
    Variant variant;  ///< with the algorithms chosen
    bool accepted = false;
    bool dropped = false;  ///< for wrong numbers, or because of `grows`
    bool grows = false;    ///< makes more weights than --max-weight-growth allows
    double ratio = 1;      ///< to the best so far; infinite if dropped for its numbers
  };
  /// Chooses algorithms for `graph`, which contains the mutants `applied`, and makes it the best
  /// when the whole program gets faster. `measurement`: how often this pair was measured before;
  /// each time is stored on its own.
  absl::StatusOr<WholeResult> TryWhole(const Graph& graph, const std::string& name,
                                       const std::vector<plan::AppliedMutant>& applied,
                                       int measurement = 0);
  /// Verifies a mutant and counts the outcome. True when `alternative` may be used. `seconds`: of
  /// the original in the chain; several ways of correction are compared only where that can be
  /// afforded.
  absl::StatusOr<bool> VerifyCandidate(const Mutant& mutant, double seconds,
                                       Alternative& alternative);
  absl::StatusOr<AloneTimes> MeasureAlone(const Graph& original, const Graph& mutant,
                                          double seconds, const std::string& name);
  /// Seconds of the runs of MeasureAlone where the original takes `seconds`: four programs, run
  /// three times at least.
  static double AloneRuns(double seconds) { return 12 * seconds; }
  /// Seconds of MeasureAlone with everything around the runs, by what it took so far.
  double AloneSeconds(double seconds) const;
  /// Measures the delivered pair once more; the baseline is delivered unless the plan is faster
  /// beyond noise, or was so before and is 3 % faster now. Where no program was, the one with
  /// the largest expected gain is measured, if any: it may have lacked time for enough rounds.
  absl::Status FinalComparison();
  /// Measures what is lost without the mutants, the algorithms or the layouts of the delivered
  /// plan. A part that there is no time for, or that does not run, is not measured.
  void MeasureParts();
  /// Counters that are known at the end. `searched`: measurements were made (else the counters of a
  /// record stand).
  void FinishCounters(bool searched);
  /// Resets the session to the state in which nothing was tried.
  void Reset();

  const Variant& baseline() const { return baseline_; }
  SearchResult& result() { return result_; }
  Profiler& profiler() { return profiler_; }
  ProfileCache& cache() { return cache_; }
  const SearchOptions& options() const { return options_; }
  /// Ranks what rules derive, by the rates of the profiler's backend.
  const Predictor& predictor() const { return predictor_; }

  void Stop(StopReason reason);
  /// Queries the caller's signal, the clock and the candidate limit, too.
  bool Stopped();
  /// Neither interrupted nor out of time; a search that is stopped for another reason may still try
  /// what it has.
  bool MayGoOn() const { return !deadline_.Passed(); }
  /// Seconds are predicted rather than measured (ProfilerOptions::costs).
  bool IsPredicted() const { return profiler_.options().costs != nullptr; }
  bool Interrupted() const {
    return options_.interrupted != nullptr && options_.interrupted->load();
  }
  double SecondsLeft() const { return deadline_.SecondsLeft(); }
  const Deadline& deadline() const { return deadline_; }
  /// A deadline in `seconds`, which an interrupt ends as well.
  Deadline In(double seconds) const {
    return Deadline::After(seconds).StoppedBy(options_.interrupted);
  }
  /// Reserves seconds that candidates may not use, besides those of the last comparison.
  void KeepFree(double seconds) { kept_seconds_ = seconds; }
  /// True if work of `seconds` leaves time for the last comparison and the seconds kept free.
  bool Affords(double seconds) const { return SpareSeconds() >= seconds; }
  double SpareSeconds() const {
    return deadline_.SecondsLeft() - whole_seconds_ - kept_seconds_ - parts_seconds_;
  }
  /// Seconds that a comparison of whole programs took at most so far.
  double whole_seconds() const { return whole_seconds_; }
  void NoteWholeSeconds(double seconds);
  /// Seconds of runs by which two whole programs are compared.
  double measure_seconds() const { return measure_seconds_; }
  VerifierLimits Limits() const;
  /// True for the matches of SearchOptions::tried_first.
  bool TriedFirst(const Graph& graph, const Rule& rule, const Match& match) const;
  /// The mutant, or nullopt: the rule does not apply there after all. A graph that is no program is
  /// noted as the rule's fault.
  std::optional<Mutant> Make(const Graph& graph, const Rule& rule, const Match& match);
  /// Sentences about defects of rules, as NoteFault makes them; for what works without a search
  /// session.
  std::set<std::string>& faults() { return faults_; }
  void Report(const std::string& detail, bool last = false);
  /// The last report: what the delivered pair was measured at.
  void ReportOutcome();

 private:
  /// Algorithms that won in `graph`, a program without choices before.
  void NoteAlgorithms(const Graph& graph, const Algorithms& algorithms);
  /// By the time left.
  AlgorithmTrial ChooseTrial() const;
  /// True where `after` makes more weights beyond those of `before` than the limit allows.
  bool GrowsTooMuch(const Graph& before, const Graph& after);
  /// Gives small programs their cheapest algorithms where seconds are predicted; others are left as
  /// they are.
  absl::Status PredictAlgorithms(std::vector<Variant>& variants) const;
  /// A defect of a rule or of the corrector costs its candidate, not the search. The user gets one
  /// warning.
  void NoteFault(const Rule& rule, std::string_view what);
  /// Chooses the fastest of several ways of correction.
  absl::Status ChooseCorrection(const Mutant& mutant, Alternative& alternative);
  bool BestIsBaseline() const { return result_.mutants.empty() && result_.best.algorithms.empty(); }
  /// The program that seemed fastest while none is faster than the baseline beyond noise.
  struct ExpectedBest {
    Variant variant;
    std::vector<plan::AppliedMutant> applied;
    double median;  ///< its ratio
  };
  /// Algorithms that are likely to be faster than the standard ones: those that most of the program
  /// has chosen, or those that the backend ranks first as long as nothing is chosen.
  Algorithms LikelyAlgorithms(const Graph& graph) const;
  void NoteExpectedBest(const Variant& variant, const std::vector<plan::AppliedMutant>& applied,
                        const PairedRatio& ratio);
  /// True when the difference is no noise and large enough.
  static bool Faster(const PairedRatio& ratio);

  Profiler& profiler_;
  ProfileCache& cache_;
  const SearchOptions& options_;
  const RooflinePredictor predictor_;
  Deadline deadline_;
  Stopwatch clock_;
  double measure_seconds_;
  Variant baseline_;
  SearchResult result_;
  std::optional<ExpectedBest> expected_best_;
  std::optional<AlgorithmTrial> algorithm_trial_;
  int64_t most_growth_ = 0;  // bytes
  double speedup_ = 1;
  double whole_seconds_ = 0;
  double kept_seconds_ = 0;
  double parts_seconds_ = 0;                     // that MeasureParts takes for the best program
  double alone_expected_ = 0, alone_spent_ = 0;  // seconds of all measurements of candidates alone
  bool stopped_ = false;
  bool begun_ = false;
  std::string preferred_;
  std::set<std::string> faults_;
};

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_SEARCH_SEARCH_SESSION_H_
