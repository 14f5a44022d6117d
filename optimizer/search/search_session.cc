#include "optimizer/search/search_session.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/hash.h"
#include "base/status.h"
#include "graph/op_definition.h"
#include "graph/weight_bytes.h"
#include "optimizer/profile/subprogram_key.h"
#include "optimizer/search/matches.h"

namespace mendel {
namespace {

constexpr double kWholeWin = 0.99;  // a whole program must get this much faster
// A program that was faster beyond noise, and is so much faster in the last comparison, is
// delivered: the disturbed rounds of one comparison decide nothing.
constexpr double kFasterAgain = 0.97;
// Seconds of the runs of two whole programs, and the share of a short budget.
constexpr double kWholeSeconds = 1.5, kLeastWholeSeconds = 0.3, kWholeShare = 0.06;
// A comparison takes this share of its seconds where the baseline is compiled already.
constexpr double kLastOfWhole = 0.8;
constexpr double kInterruptedSeconds = 0.5;  // of the last comparison after an interrupt
constexpr double kLastShare = 0.08;          // of the budget, for a last comparison past it
constexpr double kPartShare = 0.03;          // of the budget, for each part of the gain
constexpr double kVerifyShare = 0.25;        // of what is left, for one candidate
constexpr double kVerifySeconds = 5;
constexpr double kGrowthShare = 1.5;                 // of the stored weights
constexpr int64_t kLeastGrowth = int64_t{64} << 20;  // allowed for small models

int64_t MostGrowth(const Graph& baseline, const SearchOptions& options) {
  if (options.max_weight_growth > 0) return options.max_weight_growth;
  return std::max(kLeastGrowth,
                  static_cast<int64_t>(kGrowthShare * static_cast<double>(StoredBytes(baseline))));
}

std::string BudgetName(const SearchOptions& options) { return Cat(options.budget_seconds, " s"); }

}  // namespace

SearchSession::SearchSession(const Graph& baseline, Profiler& profiler, ProfileCache& cache,
                             const SearchOptions& options)
    : profiler_(profiler),
      cache_(cache),
      options_(options),
      predictor_(profiler.backend().Rates()),
      deadline_(In(options.budget_seconds + options.spare_seconds)),
      measure_seconds_(
          std::clamp(kWholeShare * options.budget_seconds, kLeastWholeSeconds, kWholeSeconds)),
      baseline_{baseline, {}, "the baseline"},
      most_growth_(MostGrowth(baseline, options)) {
  result_.best = baseline_;
  profiler_.LimitTime(deadline_, BudgetName(options_));
}

std::string SearchSession::Key(const std::string& method) const {
  std::string rules;
  for (const Rule* rule : AllRules()) {
    if (options_.disabled_rules.count(std::string(rule->name)) == 0) rules += Cat(rule->name, " ");
  }
  std::string first;
  for (const std::string& place : options_.tried_first) first += Cat("\nfirst ", place);
  const ProfilerOptions& profile = profiler_.options();
  return Sha256Hex(
      // "judge" is the verifier's old name: a new key would make stored searches invalid.
      Cat(method, " judge ", kVerifierVersion, " rules ", rules, "\nbudget ",
          options_.budget_seconds, " ", options_.max_candidates, " ", options_.max_rounds,
          " growth ", most_growth_, "\nseed ", options_.seed, "\n", profiler_.backend().Identity(),
          "\npredictor ", predictor_.Key(), "\nthreads ", ThreadsText(profile), " numerics ",
          NumericsName(profile.numerics), "\n", SubprogramKey(baseline_.graph), first));
}

absl::Status SearchSession::Begin(double algorithm_share) {
  Report("algorithms");
  begun_ = true;
  // The program with the algorithms chosen must still be compared, and once more at the end. By
  // then it is faster than the pair whose comparison `whole_seconds_` estimates.
  const double left = deadline_.SecondsLeft();
  profiler_.LimitTime(In(std::min(algorithm_share * left, left - 1.5 * whole_seconds_)),
                      BudgetName(options_));
  const Graph graph = result_.best.graph;
  MENDEL_ASSIGN_OR_RETURN(const Algorithms algorithms,
                          profiler_.ChooseAlgorithms(graph, measure_seconds_));
  NoteAlgorithms(graph, algorithms);
  const std::string name = "the program with the algorithms chosen";
  if (!algorithm_trial_.has_value()) algorithm_trial_ = ChooseTrial();
  if (!algorithms.empty() && algorithm_trial_ == AlgorithmTrial::kAtOnce) {
    const std::vector<plan::AppliedMutant> mutants = result_.mutants;
    MENDEL_RETURN_IF_ERROR(TryWhole(graph, name, mutants).status());
  } else if (!algorithms.empty() && algorithm_trial_ == AlgorithmTrial::kLast) {
    expected_best_ = {{graph, algorithms, name}, {}, kWholeWin};
  }
  profiler_.LimitTime(deadline_, BudgetName(options_));
  return absl::OkStatus();
}

SearchSession::AlgorithmTrial SearchSession::ChooseTrial() const {
  const double left = deadline_.SecondsLeft();
  if (!BestIsBaseline() || left >= 2 * whole_seconds_) return AlgorithmTrial::kAtOnce;
  return left >= kLastOfWhole * whole_seconds_ ? AlgorithmTrial::kLast : AlgorithmTrial::kNone;
}

absl::StatusOr<SearchSession::WholeResult> SearchSession::TryWhole(
    const Graph& graph, const std::string& name, const std::vector<plan::AppliedMutant>& applied,
    int measurement) {
  WholeResult trial;
  if (GrowsTooMuch(baseline_.graph, graph)) {
    trial.variant = {graph, {}, name};
    trial.dropped = trial.grows = true;
    return trial;
  }
  Algorithms algorithms;
  if (begun_) {
    // New algorithms must leave time for this comparison and the last one.
    profiler_.LimitTime(In(deadline_.SecondsLeft() - 2 * whole_seconds_), BudgetName(options_));
    MENDEL_ASSIGN_OR_RETURN(algorithms, profiler_.ChooseAlgorithms(graph, measure_seconds_));
    profiler_.LimitTime(deadline_, BudgetName(options_));
  }
  trial.variant = {graph, std::move(algorithms), name};
  MENDEL_ASSIGN_OR_RETURN(
      const std::vector<Measurement> times,
      profiler_.Compare(
          {result_.best, trial.variant}, measure_seconds_, kWholeWin,
          // "look" is a measurement's old name: a new key would make stored ones invalid.
          measurement == 0 ? "whole" : Cat("whole, look ", measurement)));
  NoteWholeSeconds(profiler_.plain_seconds());
  trial.dropped = times[1].dropped;
  trial.ratio = times[1].ratio.median;
  if (!Faster(times[1].ratio)) {
    NoteExpectedBest(trial.variant, applied, times[1].ratio);
    return trial;
  }
  speedup_ /= times[1].ratio.median;
  result_.best = trial.variant;
  result_.mutants = applied;
  const int parts = CountParts(trial.variant, static_cast<int64_t>(applied.size()));
  parts_seconds_ = parts > 1 ? parts * kPartShare * options_.budget_seconds : 0;
  trial.accepted = true;
  return trial;
}

void SearchSession::NoteExpectedBest(const Variant& variant,
                                     const std::vector<plan::AppliedMutant>& applied,
                                     const PairedRatio& ratio) {
  const double least = expected_best_.has_value() ? expected_best_->median : kWholeWin;
  if (BestIsBaseline() && ratio.median < least) expected_best_ = {variant, applied, ratio.median};
}

bool SearchSession::Faster(const PairedRatio& ratio) {
  return ratio.median < kWholeWin && ratio.high < 1;
}

/// From here on, those that won are tried; most arithmetic, not most nodes, makes the preferred
/// one.
void SearchSession::NoteAlgorithms(const Graph& graph, const Algorithms& algorithms) {
  std::map<std::string, double> wins;
  std::set<std::string> names;
  for (const auto& [node, name] : algorithms) {
    const OpDefinition& op = *graph.node(node).op;
    wins[name] +=
        WithView(graph, node, [&](const NodeView& view) { return CostOf(op, view).flops; });
  }
  for (const auto& [name, flops] : wins) {
    names.insert(name);
    if (preferred_.empty() || flops > wins[preferred_]) preferred_ = name;
  }
  // Predictions are cheap, so that every algorithm of a mutant may be tried, such as another
  // library's products.
  if (!IsPredicted()) profiler_.KeepAlgorithms(std::move(names));
}

absl::Status SearchSession::FinalComparison() {
  // Its time was kept free. Past the deadline, or after an interrupt, it still gets a little.
  const double least = std::min(Interrupted() ? kInterruptedSeconds : 2 * measure_seconds_,
                                kLastShare * options_.budget_seconds);
  profiler_.LimitTime(Deadline::After(std::max(deadline_.SecondsLeft() - parts_seconds_, least)),
                      BudgetName(options_));
  const bool was_faster = !BestIsBaseline();
  if (!was_faster && expected_best_.has_value()) {
    result_.best = expected_best_->variant;
    result_.mutants = expected_best_->applied;
  }
  if (BestIsBaseline()) {  // nothing to compare
    result_.best = baseline_;
    MENDEL_ASSIGN_OR_RETURN(const std::vector<Measurement> alone,
                            profiler_.Compare({baseline_}, measure_seconds_));
    result_.baseline_time = result_.best_time = alone[0].timing;
    result_.conditions = profiler_.Conditions({baseline_});
    return absl::OkStatus();
  }
  MENDEL_ASSIGN_OR_RETURN(const std::vector<Measurement> times,
                          profiler_.Compare({baseline_, result_.best}, 2 * measure_seconds_,
                                            kWholeWin, std::string(Profiler::kLastOccasion)));
  result_.baseline_time = times[0].timing;
  result_.best_time = times[1].timing;
  result_.conditions =
      profiler_.Conditions({baseline_, result_.best}, std::string(Profiler::kLastOccasion));
  const bool again = was_faster && times[1].ratio.median < kFasterAgain && !times[1].dropped;
  if (Faster(times[1].ratio) || again) return absl::OkStatus();
  result_.best = baseline_;
  result_.best_time = result_.baseline_time;
  result_.mutants.clear();
  return absl::OkStatus();
}

void SearchSession::MeasureParts() {
  std::vector<LeftOut> parts =
      LeaveOut(profiler_.backend(), profiler_.options().numerics, baseline_, result_.best,
               static_cast<int64_t>(result_.mutants.size()));
  const double gain = result_.best_time.median_ms > 0
                          ? result_.baseline_time.median_ms / result_.best_time.median_ms
                          : 0;
  const double seconds = kPartShare * options_.budget_seconds;
  // Compilations and first runs are not shortened by a limit.
  const double least = std::max(0.0, whole_seconds_ - measure_seconds_);
  for (auto& [part, variant] : parts) {
    if (parts.size() == 1) {
      part.set_without(gain);  // the plan without its only part is the baseline
    } else if (!Interrupted() && deadline_.SecondsLeft() + seconds > least) {
      profiler_.LimitTime(In(seconds), BudgetName(options_));
      const auto times =
          profiler_.Compare({result_.best, variant}, std::min(seconds, measure_seconds_), 1,
                            Cat("without ", part.kind()));
      if (times.ok() && !(*times)[1].dropped) part.set_without((*times)[1].ratio.median);
    }
    result_.parts.push_back(part);
  }
}

void SearchSession::FinishCounters(bool searched) {
  plan::SearchCounters& counters = result_.counters;
  if (searched) {
    counters.set_measured(profiler_.measured());
    counters.set_wrong_numbers(static_cast<int64_t>(profiler_.warnings().size()));
  }
  counters.set_chosen(static_cast<int64_t>(result_.mutants.size()));
  counters.set_stop_reason(StopReasonName(result_.stop_reason));
  counters.set_seed(options_.seed);
  result_.warnings = profiler_.warnings();
  result_.warnings.insert(result_.warnings.end(), faults_.begin(), faults_.end());
  if (counters.weight_growth() > 0) {
    result_.warnings.push_back(Cat(counters.weight_growth(),
                                   " candidates are refused, because they make more than ",
                                   most_growth_,
                                   " bytes of weights at load time: --max-weight-growth allows "
                                   "more"));
  }
}

void SearchSession::Reset() {
  result_ = {};
  result_.best = baseline_;
  expected_best_.reset();
  algorithm_trial_.reset();
  speedup_ = 1;
  parts_seconds_ = 0;
  stopped_ = begun_ = false;
}

void SearchSession::Stop(StopReason reason) {
  if (!stopped_) result_.stop_reason = reason;
  stopped_ = true;
}

bool SearchSession::Stopped() {
  if (Interrupted()) Stop(StopReason::kInterrupted);
  if (deadline_.Passed()) Stop(StopReason::kBudget);
  if (result_.counters.proposed() >= options_.max_candidates) Stop(StopReason::kCandidateLimit);
  return stopped_;
}

void SearchSession::NoteWholeSeconds(double seconds) {
  whole_seconds_ = std::max(whole_seconds_, seconds);
}

VerifierLimits SearchSession::Limits() const {
  return {.seed = options_.seed,
          .max_seconds = std::clamp(kVerifyShare * SpareSeconds(), 0.1, kVerifySeconds)};
}

bool SearchSession::TriedFirst(const Graph& graph, const Rule& rule, const Match& match) const {
  return !options_.tried_first.empty() &&
         options_.tried_first.count(MatchName(rule.name, NodeNames(graph, match))) > 0;
}

void SearchSession::Report(const std::string& detail, bool last) {
  if (!options_.progress) return;
  const int64_t candidates = result_.counters.proposed();
  options_.progress({"search", detail, candidates,
                     static_cast<double>(candidates) / std::max(1e-3, clock_.Seconds()), speedup_,
                     deadline_.SecondsLeft(), last});
}

void SearchSession::ReportOutcome() {
  const double best = result_.best_time.median_ms;
  const bool gained = !BestIsBaseline() && best > 0;
  speedup_ = gained ? result_.baseline_time.median_ms / best : 1;
  Report("done", true);
}

}  // namespace mendel
