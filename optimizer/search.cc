#include "optimizer/search.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/hash.h"
#include "base/status.h"
#include "graph/rewrite.h"
#include "mutator/rule.h"
#include "optimizer/alternatives.h"
#include "optimizer/normalise.h"
#include "optimizer/search_record.h"
#include "optimizer/subprogram_key.h"

namespace mendel {
namespace {

constexpr double kWholeWin = 0.99;     // a whole program must get this much faster
constexpr double kPromising = 1.03;    // a subprogram alone may be this much slower: views may cancel in the whole
constexpr double kMaxFlopRatio = 2.5;  // more arithmetic than this never won where it was measured
constexpr double kSubprogramSeconds = 0.15;
constexpr double kWholeSeconds = 1.5;
constexpr double kAlgorithmShare = 0.4;  // of the budget, for choosing algorithms in the unmutated program
constexpr double kJudgeShare = 0.25;     // of what is left, for one candidate
constexpr double kJudgeSeconds = 5;

/// One kind of place: equal subprograms under one rule and choice.
struct CandidateClass {
  const Rule* rule = nullptr;
  std::map<std::string, int64_t> choices;
  std::string key;     ///< "rule choice=1 .. hash"
  double seconds = 0;  ///< in the chain, of all occurrences
  int64_t occurrences = 0;
  std::optional<Mutant> first;
  Alternative alternative;
  double ratio = 1;  ///< measured alone: alternative over original
  double original_ns = 0;
  double mutant_ns = 0;
  double Gain() const { return seconds * (1 - ratio); }
};

class Searcher {
 public:
  Searcher(Profiler& profiler, ProfileCache& cache, const SearchOptions& options)
      : profiler_(profiler), cache_(cache), options_(options), deadline_(Deadline::After(options.budget_seconds)) {}

  absl::StatusOr<SearchResult> Run(const Graph& graph) {
    baseline_ = {graph, {}, "the baseline"};
    result_.best = baseline_;
    profiler_.LimitTime(Deadline::After(kAlgorithmShare * options_.budget_seconds), Cat(options_.budget_seconds, " s"));
    if (options_.baseline_only) {
      MENDEL_RETURN_IF_ERROR(FinalComparison());
      FinishCounters();
      return std::move(result_);
    }
    const std::string key = SearchKey(graph);
    if (const auto stored = cache_.Get("search", key)) {
      MENDEL_ASSIGN_OR_RETURN(const bool replayed, Replay(*stored));
      if (replayed) return std::move(result_);
    }
    Report("algorithms");
    MENDEL_RETURN_IF_ERROR(TryWhole(graph, nullptr, {}));
    profiler_.LimitTime(deadline_, Cat(options_.budget_seconds, " s"));
    int round = 0;
    for (bool improved = true; improved && !Stopped(); ++round) {
      if (round == options_.max_rounds) {
        Stop(StopReason::kRoundLimit);
        break;
      }
      MENDEL_ASSIGN_OR_RETURN(improved, RunRound());
    }
    if (left_out_) Stop(StopReason::kBudget);
    MENDEL_RETURN_IF_ERROR(FinalComparison());
    result_.counters.set_rounds(round);
    result_.counters.set_measured(profiler_.measured());
    result_.counters.set_wrong_numbers(static_cast<int64_t>(profiler_.warnings().size()));
    FinishCounters();
    if (result_.stop_reason != StopReason::kInterrupted) {
      const SearchRecord record{static_cast<int>(result_.stop_reason), result_.counters, accepted_};
      MENDEL_RETURN_IF_ERROR(cache_.Put("search", key, PrintSearchRecord(record)));
    }
    return std::move(result_);
  }

 private:
  /// Everything the outcome depends on besides the stored measurements.
  std::string SearchKey(const Graph& graph) const {
    std::string rules;
    for (const Rule* rule : AllRules()) {
      if (options_.disabled_rules.count(std::string(rule->name)) == 0) rules += Cat(rule->name, " ");
    }
    const ProfilerOptions& profile = profiler_.options();
    return Sha256Hex(Cat("search 2 judge ", kJudgeVersion, " rules ", rules, "\nbudget ", options_.budget_seconds, " ",
                         options_.max_candidates, " ", options_.max_rounds, "\nseed ", options_.seed, "\n",
                         profiler_.backend().Identity(), "\nthreads ", profile.threads, " numerics ",
                         NumericsName(profile.numerics), "\n", SubprogramKey(graph)));
  }

  /// Makes the recorded result again without searching; false when the record does not fit (it is then as if there were none).
  absl::StatusOr<bool> Replay(const std::string& text) {
    const std::optional<SearchRecord> record = ParseSearchRecord(text);
    if (!record.has_value()) return false;
    MENDEL_RETURN_IF_ERROR(TryWhole(baseline_.graph, nullptr, {}));
    for (const AcceptedCandidate& accepted : record->accepted) {
      CandidateClass candidate;
      candidate.rule = FindRule(accepted.rule);
      candidate.choices = accepted.choices;
      candidate.key = accepted.key;
      candidate.occurrences = accepted.occurrences;
      candidate.original_ns = accepted.original_ns;
      candidate.mutant_ns = accepted.mutant_ns;
      bool fits = candidate.rule != nullptr;
      if (fits) {
        MENDEL_ASSIGN_OR_RETURN(fits, TryEverywhere(candidate));
      }
      if (!fits) {
        result_ = {};
        result_.best = baseline_;
        accepted_.clear();
        return false;
      }
    }
    MENDEL_RETURN_IF_ERROR(FinalComparison());
    result_.stop_reason = static_cast<StopReason>(record->stop_reason);
    result_.counters = record->counters;
    FinishCounters();
    return true;
  }

  void FinishCounters() {
    result_.counters.set_chosen(static_cast<int64_t>(result_.mutants.size()));
    result_.counters.set_stop_reason(StopReasonName(result_.stop_reason));
    result_.counters.set_seed(options_.seed);
    result_.warnings = profiler_.warnings();
  }

  /// Collects, judges and measures candidates of the current best, then tries the winners in the whole program.
  absl::StatusOr<bool> RunRound() {
    MENDEL_ASSIGN_OR_RETURN(std::vector<CandidateClass> classes, Collect());
    std::vector<CandidateClass> promising;
    for (CandidateClass& candidate : classes) {
      // The best candidates so far must still be tried in the whole program.
      const double trials = static_cast<double>(std::min<size_t>(promising.size(), 3));
      if (Stopped() || (!promising.empty() && !Affords(trials * whole_cost_))) break;
      if (!Affords(AloneCost(candidate))) {
        left_out_ = true;
        continue;
      }
      Report(std::string(candidate.rule->name));
      MENDEL_ASSIGN_OR_RETURN(const bool keep, JudgeAndMeasure(candidate));
      if (keep) promising.push_back(std::move(candidate));
    }
    std::stable_sort(promising.begin(), promising.end(), [](const auto& a, const auto& b) { return a.Gain() > b.Gain(); });
    bool improved = false;
    for (const CandidateClass& candidate : promising) {
      if (!Affords(whole_cost_)) Stop(StopReason::kBudget);
      if (Stopped()) break;
      Report(Cat("whole program with ", candidate.rule->name));
      MENDEL_ASSIGN_OR_RETURN(const bool better, TryEverywhere(candidate));
      improved = improved || better;
    }
    return improved;
  }

  /// True when work of so many seconds would leave time for the last comparison.
  bool Affords(double seconds) const { return deadline_.SecondsLeft() >= seconds + whole_cost_; }

  /// Seconds that measuring a candidate alone takes: four programs, run four times at least.
  static double AloneCost(const CandidateClass& candidate) {
    return 16 * candidate.seconds / static_cast<double>(std::max<int64_t>(1, candidate.occurrences));
  }

  JudgeLimits Limits() const {
    return {.seed = options_.seed, .max_seconds = std::clamp(kJudgeShare * deadline_.SecondsLeft(), 0.1, kJudgeSeconds)};
  }

  /// Every distinct candidate of the current best program, most expensive first.
  absl::StatusOr<std::vector<CandidateClass>> Collect() {
    const Graph& graph = result_.best.graph;
    const Stopwatch clock;
    MENDEL_ASSIGN_OR_RETURN(const std::vector<double> seconds, profiler_.NodeSeconds(result_.best));
    whole_cost_ = std::max(whole_cost_, 2 * clock.Seconds());  // two programs rather than one
    std::map<std::string, CandidateClass> classes;
    for (const Rule* rule : SearchRules()) {
      for (int32_t node = 0; node < static_cast<int32_t>(graph.nodes().size()); ++node) {
        for (const Match& match : rule->match(graph, node)) {
          double cost = 0;
          for (int32_t id : match.nodes) cost += seconds[static_cast<size_t>(id)];
          auto key = PlaceKey(graph, *rule, match);
          if (!key.ok() || tried_.count(*key) > 0) continue;
          CandidateClass& candidate = classes[*key];
          if (candidate.rule == nullptr) {
            candidate.rule = rule;
            candidate.choices = match.choices;
            candidate.key = *key;
            auto mutant = MakeMutant(graph, *rule, match);
            if (absl::IsInternal(mutant.status())) return mutant.status();
            if (mutant.ok()) candidate.first = *std::move(mutant);
          }
          candidate.seconds += cost;
          ++candidate.occurrences;
        }
      }
    }
    std::vector<CandidateClass> sorted;
    for (auto& [key, candidate] : classes) {
      if (candidate.first.has_value()) sorted.push_back(std::move(candidate));
    }
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
    return sorted;
  }

  std::vector<const Rule*> SearchRules() const {
    std::vector<const Rule*> rules;
    for (const Rule* rule : AllRules()) {
      if (rule->stage == Stage::kSearch && options_.disabled_rules.count(std::string(rule->name)) == 0) rules.push_back(rule);
    }
    return rules;
  }

  static absl::StatusOr<std::string> PlaceKey(const Graph& graph, const Rule& rule, const Match& match) {
    MENDEL_ASSIGN_OR_RETURN(const Subprogram place, MakeSubprogram(graph, match.nodes));
    MENDEL_ASSIGN_OR_RETURN(const Graph original, Extract(graph, place));
    std::string key(rule.name);
    for (const auto& [name, value] : match.choices) key += Cat(" ", name, "=", value);
    return Cat(key, " ", SubprogramKey(original));
  }

  /// True when the candidate is worth trying in the whole program.
  absl::StatusOr<bool> JudgeAndMeasure(CandidateClass& candidate) {
    tried_.insert(candidate.key);
    auto& counters = result_.counters;
    counters.set_proposed(counters.proposed() + 1);
    const Mutant& mutant = *candidate.first;
    if (RunTimeFlops(mutant.mutant) > kMaxFlopRatio * RunTimeFlops(mutant.original)) {
      counters.set_screened_out(counters.screened_out() + 1);
      return false;
    }
    MENDEL_ASSIGN_OR_RETURN(candidate.alternative, Judge(mutant, Limits(), cache_));
    const Judgement judgement = candidate.alternative.judgement;
    if (judgement == Judgement::kMended || judgement == Judgement::kTooWrong) counters.set_partial(counters.partial() + 1);
    if (judgement == Judgement::kMended) counters.set_mended(counters.mended() + 1);
    if (judgement == Judgement::kScreenedOut || judgement == Judgement::kUnproven)
      counters.set_screened_out(counters.screened_out() + 1);
    if (judgement != Judgement::kEqual && judgement != Judgement::kMended) return false;
    return MeasureAlone(candidate);
  }

  /// Original and alternative with default algorithms and with the one that won most often in the whole program.
  absl::StatusOr<bool> MeasureAlone(CandidateClass& candidate) {
    const Graph& original = candidate.first->original;
    const Graph& mutant = candidate.alternative.graph;
    const std::string name = Cat("a mutant of rule ", candidate.rule->name);
    std::vector<Variant> variants = {{original, {}, "the original"}, {mutant, {}, name}};
    if (!preferred_.empty()) {
      variants.push_back({original, profiler_.Everywhere(original, preferred_), Cat("the original by ", preferred_)});
      variants.push_back({mutant, profiler_.Everywhere(mutant, preferred_), Cat(name, " by ", preferred_)});
    }
    MENDEL_ASSIGN_OR_RETURN(const std::vector<Measurement> times, profiler_.Compare(variants, kSubprogramSeconds));
    double best[2] = {times[0].timing.median_ms, times[1].timing.median_ms};
    for (size_t k = 2; k < times.size(); ++k) best[k % 2] = std::min(best[k % 2], times[k].timing.median_ms);
    candidate.original_ns = best[0] * 1e6;
    candidate.mutant_ns = best[1] * 1e6;
    candidate.ratio = best[1] / best[0];
    return candidate.ratio < kPromising;
  }

  /// Applies the candidate wherever it occurs in the current best and keeps the result when it is faster.
  absl::StatusOr<bool> TryEverywhere(const CandidateClass& candidate) {
    Graph graph = result_.best.graph;
    std::vector<plan::AppliedMutant> applied;
    // A mutant of another rule may have taken some places since; what is left is found again.
    for (int32_t node = 0;
         node < static_cast<int32_t>(graph.nodes().size()) && static_cast<int64_t>(applied.size()) < candidate.occurrences;
         ++node) {
      for (const Match& match : candidate.rule->match(graph, node)) {
        if (match.choices != candidate.choices) continue;
        const auto key = PlaceKey(graph, *candidate.rule, match);
        if (!key.ok() || *key != candidate.key) continue;
        // Made anew at every place: the weights have other names there. The verdict is stored, so this is quick.
        MENDEL_ASSIGN_OR_RETURN(const Mutant mutant, MakeMutant(graph, *candidate.rule, match));
        MENDEL_ASSIGN_OR_RETURN(const Alternative alternative, Judge(mutant, Limits(), cache_));
        if (alternative.judgement != Judgement::kEqual && alternative.judgement != Judgement::kMended) break;
        MENDEL_ASSIGN_OR_RETURN(const Graph replaced, Replace(graph, mutant.place, alternative.graph));
        applied.push_back(Describe(graph, candidate, alternative, match));
        graph = replaced;
        break;
      }
    }
    if (applied.empty()) return false;
    MENDEL_ASSIGN_OR_RETURN(graph, Normalise(graph, options_.disabled_rules));
    MENDEL_RETURN_IF_ERROR(TryWhole(graph, &candidate, applied));
    if (last_accepted_) {
      accepted_.push_back({std::string(candidate.rule->name), candidate.choices, candidate.key, candidate.occurrences,
                           candidate.original_ns, candidate.mutant_ns});
    }
    return last_accepted_;
  }

  plan::AppliedMutant Describe(const Graph& graph, const CandidateClass& candidate, const Alternative& alternative,
                               const Match& match) const {
    plan::AppliedMutant applied;
    applied.set_rule(std::string(candidate.rule->name));
    applied.set_claim(std::string(ClaimName(candidate.rule->claim)));
    for (const auto& [name, value] : candidate.choices) (*applied.mutable_choices())[name] = value;
    for (int32_t id : match.nodes) applied.add_where(graph.node(id).name);
    applied.set_mending(alternative.mending);
    applied.set_flop_share(alternative.flop_share);
    applied.set_original_ns(candidate.original_ns);
    applied.set_mutant_ns(candidate.mutant_ns);
    for (size_t k = 0; k < alternative.boxes.size(); ++k) {
      plan::MendedOutput* output = applied.add_mended();
      const GraphOutput& mended = alternative.graph.outputs()[k];
      output->set_output(mended.name);
      output->set_elements(NumElements(alternative.graph.type(mended.value)));
      for (const Box& box : alternative.boxes[k]) {
        plan::BoxProto* proto = output->add_boxes();
        for (int64_t value : box.begin) proto->add_begin(value);
        for (int64_t value : box.end) proto->add_end(value);
        output->set_wrong_elements(output->wrong_elements() + box.Volume());
      }
    }
    return applied;
  }

  /// Chooses algorithms for `graph` and makes it the best when the whole program gets faster.
  absl::Status TryWhole(const Graph& graph, const CandidateClass* candidate, const std::vector<plan::AppliedMutant>& applied) {
    last_accepted_ = false;
    MENDEL_ASSIGN_OR_RETURN(const Algorithms algorithms, profiler_.ChooseAlgorithms(graph, kWholeSeconds));
    if (candidate == nullptr) NoteAlgorithms(algorithms);
    if (candidate == nullptr && algorithms.empty()) return absl::OkStatus();
    const Variant variant{
        graph, algorithms,
        candidate == nullptr ? "the program with the algorithms chosen" : Cat("the program with rule ", candidate->rule->name)};
    const Stopwatch clock;
    MENDEL_ASSIGN_OR_RETURN(const std::vector<Measurement> times, profiler_.Compare({result_.best, variant}, kWholeSeconds));
    whole_cost_ = std::max(whole_cost_, clock.Seconds());
    const double before = times[0].timing.median_ms, after = times[1].timing.median_ms;
    // On a busy machine medians alone may be luck: the undisturbed runs must be faster too.
    if (after >= kWholeWin * before || times[1].timing.min_ms >= times[0].timing.min_ms) return absl::OkStatus();
    speedup_ *= before / after;
    result_.best = variant;
    result_.mutants.insert(result_.mutants.end(), applied.begin(), applied.end());
    last_accepted_ = true;
    return absl::OkStatus();
  }

  /// What won in the unmutated program is what is tried from here on.
  void NoteAlgorithms(const Algorithms& algorithms) {
    std::map<std::string, int> wins;
    std::set<std::string> names;
    for (const auto& [node, name] : algorithms) ++wins[name];
    for (const auto& [name, count] : wins) {
      names.insert(name);
      if (preferred_.empty() || count > wins[preferred_]) preferred_ = name;
    }
    profiler_.KeepAlgorithms(std::move(names));
  }

  /// The delivered pair, measured once more; the baseline is delivered when it turns out faster.
  absl::Status FinalComparison() {
    // Its time was kept free; past the deadline it still gets more than one run.
    profiler_.LimitTime(Deadline::After(std::max(deadline_.SecondsLeft(), 2 * kWholeSeconds)), Cat(options_.budget_seconds, " s"));
    if (result_.mutants.empty() && result_.best.algorithms.empty()) {  // nothing to compare: the plan is the baseline
      MENDEL_ASSIGN_OR_RETURN(const std::vector<Measurement> alone, profiler_.Compare({baseline_}, kWholeSeconds));
      result_.baseline_time = result_.best_time = alone[0].timing;
      return absl::OkStatus();
    }
    MENDEL_ASSIGN_OR_RETURN(const std::vector<Measurement> times, profiler_.Compare({baseline_, result_.best}, 2 * kWholeSeconds));
    result_.baseline_time = times[0].timing;
    result_.best_time = times[1].timing;
    if (times[1].timing.median_ms <= times[0].timing.median_ms) return absl::OkStatus();
    result_.best = baseline_;
    result_.best_time = result_.baseline_time;
    result_.mutants.clear();
    return absl::OkStatus();
  }

  void Stop(StopReason reason) {
    if (!stopped_) result_.stop_reason = reason;
    stopped_ = true;
  }
  bool Stopped() {
    if (options_.interrupted != nullptr && options_.interrupted->load()) Stop(StopReason::kInterrupted);
    if (deadline_.Passed()) Stop(StopReason::kBudget);
    if (result_.counters.proposed() >= options_.max_candidates) Stop(StopReason::kCandidateLimit);
    return stopped_;
  }
  void Report(const std::string& detail) {
    if (!options_.progress) return;
    const int64_t candidates = result_.counters.proposed();
    options_.progress({"search", detail, candidates, static_cast<double>(candidates) / std::max(1e-3, clock_.Seconds()), speedup_,
                       deadline_.SecondsLeft()});
  }

  Profiler& profiler_;
  ProfileCache& cache_;
  const SearchOptions& options_;
  Deadline deadline_;
  Stopwatch clock_;
  Variant baseline_;
  SearchResult result_;
  std::set<std::string> tried_;
  double speedup_ = 1;
  double whole_cost_ = 0;  // seconds that a comparison of whole programs took at most so far
  bool left_out_ = false;  // some candidate could not be afforded
  bool stopped_ = false;
  bool last_accepted_ = false;
  std::string preferred_;
  std::vector<AcceptedCandidate> accepted_;
};

}  // namespace

absl::StatusOr<SearchResult> Search(const Graph& graph, Profiler& profiler, ProfileCache& cache, const SearchOptions& options) {
  return Searcher(profiler, cache, options).Run(graph);
}

}  // namespace mendel
