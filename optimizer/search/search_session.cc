#include "optimizer/search/search_session.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/hash.h"
#include "base/status.h"
#include "graph/op_definition.h"
#include "graph/rewrite.h"
#include "graph/weight_bytes.h"
#include "mutator/saving.h"
#include "optimizer/profile/subprogram_key.h"

namespace mendel {
namespace {

constexpr double kWholeWin = 0.99;     // a whole program must get this much faster
constexpr double kMaxFlopRatio = 2.5;  // more arithmetic than this never won where it was measured
constexpr double kSubprogramSeconds = 0.15;
constexpr double kWholeSeconds = 1.5;
constexpr double kInterruptedSeconds = 0.5;  // of the last comparison after an interrupt
constexpr double kLastShare = 0.08;          // of the budget, for a last comparison past it
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

std::vector<const Rule*> RulesOfSearch(const SearchOptions& options, bool all) {
  std::vector<const Rule*> rules;
  for (const Rule* rule : AllRules()) {
    const bool wanted = all || rule->stage == Stage::kSearch;
    if (wanted && options.disabled_rules.count(std::string(rule->name)) == 0) rules.push_back(rule);
  }
  return rules;
}

absl::StatusOr<std::string> MatchKey(const Graph& graph, const Rule& rule, const Match& match) {
  MENDEL_ASSIGN_OR_RETURN(const Subprogram place, MakeSubprogram(graph, match.nodes));
  MENDEL_ASSIGN_OR_RETURN(const Graph original, Extract(graph, place));
  std::string key(rule.name);
  for (const auto& [name, value] : match.choices) key += Cat(" ", name, "=", value);
  return Cat(key, " ", SubprogramKey(original));
}

std::string MatchName(std::string_view rule, const std::vector<std::string>& nodes) {
  std::string text(rule);
  for (const std::string& node : nodes) text += "\n" + node;
  return text;
}

std::vector<std::string> NodeNames(const Graph& graph, const Match& match) {
  std::vector<std::string> names;
  for (const int32_t id : match.nodes) names.push_back(graph.node(id).name);
  return names;
}

plan::AppliedMutant DescribeMutant(const Graph& graph, const Mutant& mutant,
                                   const Alternative& alternative, double original_ns,
                                   double mutant_ns) {
  plan::AppliedMutant applied;
  applied.set_rule(std::string(mutant.rule->name));
  applied.set_claim(std::string(ClaimName(mutant.rule->claim)));
  for (const auto& [name, value] : mutant.match.choices) (*applied.mutable_choices())[name] = value;
  for (std::string& name : NodeNames(graph, mutant.match)) applied.add_where(std::move(name));
  for (std::string& saved : DescribeSaving(mutant.original, alternative.graph, *mutant.rule))
    applied.add_saved(std::move(saved));
  applied.set_mending(alternative.correction);
  applied.set_flop_share(alternative.flop_share);
  applied.set_original_ns(original_ns);
  applied.set_mutant_ns(mutant_ns);
  for (size_t k = 0; k < alternative.boxes.size(); ++k) {
    plan::MendedOutput* output = applied.add_mended();
    const GraphOutput& corrected = alternative.graph.outputs()[k];
    output->set_output(corrected.name);
    const TensorType& type = alternative.graph.type(corrected.value);
    output->set_elements(NumElements(type));
    for (const int64_t extent : type.shape) output->add_shape(extent);
    for (const Box& box : alternative.boxes[k]) {
      plan::BoxProto* proto = output->add_boxes();
      for (int64_t value : box.begin) proto->add_begin(value);
      for (int64_t value : box.end) proto->add_end(value);
      output->set_wrong_elements(output->wrong_elements() + box.Volume());
    }
  }
  return applied;
}

SearchSession::SearchSession(const Graph& baseline, Profiler& profiler, ProfileCache& cache,
                             const SearchOptions& options)
    : profiler_(profiler),
      cache_(cache),
      options_(options),
      deadline_(In(options.budget_seconds + options.spare_seconds)),
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
          "\nthreads ", ThreadsText(profile), " numerics ", NumericsName(profile.numerics), "\n",
          SubprogramKey(baseline_.graph), first));
}

absl::Status SearchSession::Begin(double algorithm_share) {
  Report("algorithms");
  begun_ = true;
  profiler_.LimitTime(In(algorithm_share * deadline_.SecondsLeft()), BudgetName(options_));
  const Graph graph = result_.best.graph;
  MENDEL_ASSIGN_OR_RETURN(const Algorithms algorithms,
                          profiler_.ChooseAlgorithms(graph, kWholeSeconds));
  NoteAlgorithms(graph, algorithms);
  if (!algorithms.empty()) {
    const std::vector<plan::AppliedMutant> mutants = result_.mutants;
    MENDEL_RETURN_IF_ERROR(
        TryWhole(graph, "the program with the algorithms chosen", mutants).status());
  }
  profiler_.LimitTime(deadline_, BudgetName(options_));
  return absl::OkStatus();
}

absl::StatusOr<SearchSession::WholeResult> SearchSession::TryWhole(
    const Graph& graph, const std::string& name, const std::vector<plan::AppliedMutant>& applied,
    int measurement) {
  WholeResult trial;
  if (GrowsTooMuch(baseline_.graph, graph)) {
    trial.variant = {graph, {}, name};
    trial.dropped = true;
    return trial;
  }
  Algorithms algorithms;
  if (begun_) {
    // New algorithms must leave time for this comparison and the last one.
    profiler_.LimitTime(In(deadline_.SecondsLeft() - 2 * whole_seconds_), BudgetName(options_));
    MENDEL_ASSIGN_OR_RETURN(algorithms, profiler_.ChooseAlgorithms(graph, kWholeSeconds));
    profiler_.LimitTime(deadline_, BudgetName(options_));
  }
  trial.variant = {graph, std::move(algorithms), name};
  MENDEL_ASSIGN_OR_RETURN(
      const std::vector<Measurement> times,
      profiler_.Compare(
          {result_.best, trial.variant}, kWholeSeconds, kWholeWin,
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

bool SearchSession::GrowsTooMuch(const Graph& before, const Graph& after) {
  if (MadeWeightBytes(after) - MadeWeightBytes(before) <= most_growth_) return false;
  result_.counters.set_weight_growth(result_.counters.weight_growth() + 1);
  return true;
}

std::optional<Mutant> SearchSession::Make(const Graph& graph, const Rule& rule,
                                          const Match& match) {
  auto mutant = MakeMutant(graph, rule, match);
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

double SearchSession::AloneSeconds(double seconds) const {
  const double expected = std::max(kSubprogramSeconds, AloneRuns(seconds));
  return alone_spent_ > alone_expected_ ? expected * alone_spent_ / alone_expected_ : expected;
}

absl::StatusOr<AloneTimes> SearchSession::MeasureAlone(const Graph& original, const Graph& mutant,
                                                       double seconds, const std::string& name) {
  const Stopwatch clock;
  std::vector<Variant> variants = {{original, {}, "the original"}, {mutant, {}, name}};
  MENDEL_RETURN_IF_ERROR(PredictAlgorithms(variants));
  if (!preferred_.empty() && !IsPredicted()) {
    variants.push_back({original, profiler_.Everywhere(original, preferred_),
                        Cat("the original by ", preferred_)});
    variants.push_back(
        {mutant, profiler_.Everywhere(mutant, preferred_), Cat(name, " by ", preferred_)});
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
  const double least = std::min(Interrupted() ? kInterruptedSeconds : 2 * kWholeSeconds,
                                kLastShare * options_.budget_seconds);
  profiler_.LimitTime(Deadline::After(std::max(deadline_.SecondsLeft(), least)),
                      BudgetName(options_));
  if (BestIsBaseline() && expected_best_.has_value()) {
    result_.best = expected_best_->variant;
    result_.mutants = expected_best_->applied;
  }
  if (BestIsBaseline()) {  // nothing to compare
    result_.best = baseline_;
    MENDEL_ASSIGN_OR_RETURN(const std::vector<Measurement> alone,
                            profiler_.Compare({baseline_}, kWholeSeconds));
    result_.baseline_time = result_.best_time = alone[0].timing;
    result_.conditions = profiler_.Conditions({baseline_});
    return absl::OkStatus();
  }
  MENDEL_ASSIGN_OR_RETURN(const std::vector<Measurement> times,
                          profiler_.Compare({baseline_, result_.best}, 2 * kWholeSeconds, kWholeWin,
                                            std::string(Profiler::kLastOccasion)));
  result_.baseline_time = times[0].timing;
  result_.best_time = times[1].timing;
  result_.conditions =
      profiler_.Conditions({baseline_, result_.best}, std::string(Profiler::kLastOccasion));
  if (Faster(times[1].ratio)) return absl::OkStatus();
  result_.best = baseline_;
  result_.best_time = result_.baseline_time;
  result_.mutants.clear();
  return absl::OkStatus();
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
  speedup_ = 1;
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
