#include "optimizer/pipeline.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "base/deadline.h"
#include "base/hash.h"
#include "base/heap.h"
#include "base/status.h"
#include "optimizer/certificate_proto.h"
#include "optimizer/normalize.h"
#include "optimizer/search/automatic_budget.h"
#include "optimizer/stored_values.h"
#include "runtime/backend_names.h"
#include "runtime/quantized.h"

namespace mendel {
namespace {

/// A search that follows a refused plan has what is left of the budget, and at least this share.
constexpr double kLeastShareOfASecondSearch = 0.05;
/// Normalization leaves the rest to the search, which compiles and runs a program at least.
constexpr double kNormalizeShare = 0.6;

/// Runs `step`, notes its seconds under `phase` and reports its beginning to the watcher.
template <class Step>
auto Timed(const std::string& phase, const OptimizeOptions& options, OptimizeResult& result,
           Step&& step) {
  if (options.search.progress)
    options.search.progress({.phase = phase, .detail = "", .seconds_left = -1});
  const Stopwatch clock;
  auto outcome = step();
  ReturnFreedMemory();
  result.phases.emplace_back(phase, clock.Seconds());
  return outcome;
}

std::string CertificateKey(const Graph& original, const Graph& plan,
                           const VerifierOptions& options) {
  // "judge" is the verifier's old name: a new key would make stored results invalid.
  return Sha256Hex(Cat("judge ", kVerifierVersion, " target ", options.target_log2, " weights ",
                       static_cast<int>(options.weights), " ", GraphHash(original, options.weights),
                       " ", GraphHash(plan, options.weights)));
}

/// A stored certificate of the same two graphs, options and verifier, or a fresh one.
absl::StatusOr<Certificate> CertifyOrReuse(const Graph& original, const Graph& plan,
                                           const VerifierOptions& options, ProfileCache& cache,
                                           bool& reused) {
  const std::string key = CertificateKey(original, plan, options);
  reused = false;
  if (options.fixed_draws.empty()) {
    if (const auto stored = cache.Get("certificate", key)) {
      auto certificate = ParseCertificate(*stored);
      reused = certificate.ok() && certificate->bound_log2 <= options.target_log2;
      if (reused) return certificate;
    }
  }
  MENDEL_ASSIGN_OR_RETURN(const Certificate certificate, Certify(original, plan, options));
  if (options.fixed_draws.empty())
    MENDEL_RETURN_IF_ERROR(cache.Put("certificate", key, SerializeCertificate(certificate)));
  return certificate;
}

/// Everything a plan says about itself that is the same for equal inputs, options and measurements.
plan::PlanInfo MakeInfo(const OptimizeOptions& options, const Backend& backend,
                        const OptimizeResult& result) {
  plan::PlanInfo info;
  info.set_format_version(kPlanInfoVersion);
  info.set_mendel_version(options.mendel_version);
  info.mutable_target()->set_backend(options.backend);
  info.mutable_target()->set_identity(backend.Identity());
  info.mutable_target()->set_isa(backend.Isa());
  info.mutable_target()->set_threads(options.threads);
  info.mutable_target()->set_numerics(std::string(NumericsName(options.numerics)));
  for (const auto& [node, name] : result.search.best.algorithms)
    (*info.mutable_algorithms())[node] = name;
  info.set_weights(result.certificate.weights == WeightMode::kSymbolic ? plan::WEIGHTS_MODE_SYMBOLIC
                                                                       : plan::WEIGHTS_MODE_EXACT);
  for (const plan::AppliedMutant& mutant : result.search.mutants) *info.add_mutants() = mutant;
  *info.mutable_search() = result.search.counters;
  for (const plan::Candidate& candidate : result.search.candidates)
    *info.add_candidates() = candidate;
  const auto timing = [](const Timing& from, plan::TimingProto* to) {
    to->set_median_ms(from.median_ms);
    to->set_min_ms(from.min_ms);
    to->set_p90_ms(from.p90_ms);
    to->set_spread(from.spread);
    to->set_runs(from.runs);
  };
  timing(result.search.baseline_time, info.mutable_baseline_ms());
  timing(result.search.best_time, info.mutable_plan_ms());
  for (const plan::GainPart& part : result.search.parts) *info.add_gain_parts() = part;
  for (const std::string& conditions : result.search.conditions)
    info.add_device_conditions(conditions);
  for (const plan::NumericResult& output : result.gate.outputs) *info.add_numeric() = output;
  info.set_model_name(options.model_name);
  info.set_model_hash(options.model_hash);
  for (const std::string& rule : options.search.disabled_rules) info.add_disabled_rules(rule);
  return info;
}

/// The next stricter class that `backend` has; itself for the strictest.
Numerics NextStricter(const Backend& backend, Numerics numerics) {
  auto next = Stricter(numerics);
  while (next.has_value() && !backend.Supports(*next).ok()) next = Stricter(*next);
  return next.value_or(Numerics::kStrict);
}

/// Reports where a class of rounded operands gives no node of `graph` an algorithm that the next
/// stricter one does not.
void NoteAddsNothing(const Backend& backend, const Graph& graph, Numerics numerics,
                     std::vector<std::string>& notices) {
  if (OperandRounding(numerics) == 0) return;
  const Numerics stricter = NextStricter(backend, numerics);
  for (int32_t node = 0; node < static_cast<int32_t>(graph.nodes().size()); ++node) {
    if (backend.Algorithms(graph, node, numerics) != backend.Algorithms(graph, node, stricter))
      return;
  }
  notices.push_back(Cat("numerics ", NumericsName(numerics),
                        ": this machine has no algorithm of that class beyond ",
                        NumericsName(stricter), "'s for the model's operators"));
}

/// A share of the time for what comes before the search. Without a search, the baseline is
/// normalized in any case.
Deadline BudgetOf(const SearchOptions& search, double share = 1) {
  const Deadline deadline =
      search.baseline_only
          ? Deadline::Never()
          : Deadline::After(share * (search.budget_seconds + search.spare_seconds));
  return deadline.StoppedBy(search.interrupted);
}

/// The program to optimize: `original`, or with stored numbers in it where they may be used and are
/// of use. Where none are, the plan may as well count for all weights.
absl::StatusOr<Graph> MakeSource(const Graph& original, const OptimizeOptions& options,
                                 VerifierOptions& verifier) {
  if (options.verifier.weights == WeightMode::kSymbolic) return original;
  std::set<std::string> names;
  MENDEL_ASSIGN_OR_RETURN(Graph source, WithUsefulLiterals(original, options.search.disabled_rules,
                                                           names, BudgetOf(options.search)));
  if (names.empty()) verifier.weights = WeightMode::kSymbolic;
  return source;
}

double LeftForASecondSearch(const SearchOptions& search, const Stopwatch& clock) {
  return std::max(search.budget_seconds - clock.Seconds(),
                  kLeastShareOfASecondSearch * search.budget_seconds);
}

double GateLimit(const OptimizeOptions& options, const Graph& original) {
  constexpr size_t kOwnInputs = 5;  // where none are given: random ones and edge cases
  const size_t given = options.gate.samples.size();
  return options.gate_seconds > 0 ? options.gate_seconds
                                  : AutomaticGateLimit(original, given > 0 ? given : kOwnInputs);
}

/// The gate within its limit. After an interrupt it compares the first input only.
absl::StatusOr<GateResult> LimitedGate(const Graph& original, const Graph& baseline,
                                       const Variant& plan, const Profiler& profiler,
                                       const OptimizeOptions& options,
                                       std::vector<std::string>& notices) {
  const double limit = GateLimit(options, original);
  GateOptions gate = options.gate;
  gate.limit = Deadline::After(limit);
  gate.interrupted = options.search.interrupted;
  MENDEL_ASSIGN_OR_RETURN(const GateResult result,
                          NumericGate(original, {baseline, {}}, plan, profiler, gate));
  if (result.left_out > 0) {
    notices.push_back(Cat("the numeric gate compares ", result.inputs, " of ",
                          result.inputs + result.left_out, " inputs, because ",
                          gate.limit.Passed() ? Cat("its limit is ", limit, " s")
                                              : std::string("the run was interrupted")));
  }
  return result;
}

/// The plan may be wrong, or right for a reason that the verifier does not know or has no time for.
bool IsNoProof(const absl::Status& status) {
  return absl::IsDeadlineExceeded(status) || absl::IsUnimplemented(status) ||
         absl::IsFailedPrecondition(status);
}

/// False when there is none to disable.
bool DisableRulesOf(const std::vector<plan::AppliedMutant>& mutants,
                    std::set<std::string>& disabled) {
  const size_t before = disabled.size();
  for (const plan::AppliedMutant& mutant : mutants) disabled.insert(mutant.rule());
  return disabled.size() > before;
}

/// The next attempt after one that is impossible or was refused.
struct Retry {
  OptimizeOptions options;
  std::string notice;
};

/// Options with a class of numerics that suits the model and the backend; none where `options` do.
std::optional<Retry> OtherNumerics(const Graph& original, const OptimizeOptions& options,
                                   const Backend& backend) {
  Retry retry{options, {}};
  if (NumericsFor(original, options.numerics) != options.numerics && !options.refuse_int8 &&
      backend.Supports(Numerics::kInt8).ok()) {
    retry.options.numerics = Numerics::kInt8;
    retry.notice = "numerics int8: the model is quantized, and so are its products";
    return retry;
  }
  if (const absl::Status supported = backend.Supports(options.numerics); !supported.ok()) {
    retry.options.numerics = NextStricter(backend, options.numerics);
    retry.notice =
        Cat("numerics ", NumericsName(options.numerics), " allows no more than ",
            NumericsName(retry.options.numerics), " here: ", std::string(supported.message()));
    return retry;
  }
  return std::nullopt;
}

/// One pass through all phases. Each phase fills its part of the result; one that refuses the
/// search's program says what to try instead.
class Attempt {
 public:
  Attempt(const Stopwatch& clock, const Graph& original, const OptimizeOptions& options,
          const Backend& backend, ProfileCache& cache, Profiler& profiler)
      : clock_(clock),
        original_(original),
        options_(options),
        backend_(backend),
        cache_(cache),
        profiler_(profiler),
        verifier_(options.verifier) {}

  absl::Status FindProgram();
  absl::StatusOr<std::optional<Retry>> ProveProgram();
  absl::StatusOr<std::optional<Retry>> CompareNumbers();
  absl::StatusOr<OptimizeResult> Finish();

 private:
  /// The certificate's limit in seconds.
  double CertifyLimit() const;
  Retry WithoutUnprovenMutants(const absl::Status& status) const;
  Retry WithLessRisk() const;

  const Stopwatch& clock_;
  const Graph& original_;
  const OptimizeOptions& options_;
  const Backend& backend_;
  ProfileCache& cache_;
  Profiler& profiler_;
  VerifierOptions verifier_;
  Graph baseline_;
  OptimizeResult result_;
};

absl::Status Attempt::FindProgram() {
  MENDEL_ASSIGN_OR_RETURN(const Graph source, MakeSource(original_, options_, verifier_));
  std::set<std::string> faults;
  MENDEL_ASSIGN_OR_RETURN(baseline_, Timed("normalize", options_, result_, [&] {
                            return Normalize(source, options_.search.disabled_rules, faults,
                                             BudgetOf(options_.search, kNormalizeShare));
                          }));
  NoteAddsNothing(backend_, baseline_, options_.numerics, result_.notices);
  MENDEL_ASSIGN_OR_RETURN(result_.search, Timed("search", options_, result_, [&] {
                            SearchOptions search = options_.search;
                            search.spare_seconds -= clock_.Seconds();
                            return Search(baseline_, profiler_, cache_, search);
                          }));
  if (options_.costs)
    result_.search.baseline_time.runs = result_.search.best_time.runs = 0;  // nothing was timed
  faults.insert(result_.search.warnings.begin(), result_.search.warnings.end());
  result_.notices.insert(result_.notices.end(), faults.begin(), faults.end());
  return absl::OkStatus();
}

double Attempt::CertifyLimit() const {
  return options_.certify_seconds > 0 ? options_.certify_seconds
                                      : AutomaticCertifyLimit(original_, result_.search.best.graph);
}

/// The draws of the certificate come after the search has fixed the graph.
absl::StatusOr<std::optional<Retry>> Attempt::ProveProgram() {
  // An estimate must not leave a model without any plan.
  const bool limited = options_.certify_seconds > 0 || !options_.search.baseline_only;
  auto certificate = Timed("certify", options_, result_, [&] {
    if (limited) verifier_.deadline = Deadline::After(CertifyLimit());
    return CertifyOrReuse(original_, result_.search.best.graph, verifier_, cache_,
                          result_.certificate_reused);
  });
  if (IsNoProof(certificate.status()) && !options_.search.baseline_only)
    return WithoutUnprovenMutants(certificate.status());
  MENDEL_ASSIGN_OR_RETURN(result_.certificate, std::move(certificate));
  return std::nullopt;
}

Retry Attempt::WithoutUnprovenMutants(const absl::Status& status) const {
  Retry retry{options_, {}};
  SearchOptions& search = retry.options.search;
  search.budget_seconds = LeftForASecondSearch(options_.search, clock_);
  const bool timed_out = absl::IsDeadlineExceeded(status);
  if (timed_out || !DisableRulesOf(result_.search.mutants, search.disabled_rules))
    search.baseline_only = true;
  retry.notice = Cat(search.baseline_only ? "the plan is the baseline" : "mutants were left out",
                     ", because the certificate of the mutants found ",
                     timed_out ? Cat("takes more than ", CertifyLimit(), " s")
                               : Cat("failed: ", std::string(status.message())));
  return retry;
}

absl::StatusOr<std::optional<Retry>> Attempt::CompareNumbers() {
  MENDEL_ASSIGN_OR_RETURN(result_.gate, Timed("numeric gate", options_, result_, [&] {
                            return LimitedGate(original_, baseline_, result_.search.best, profiler_,
                                               options_, result_.notices);
                          }));
  if (result_.gate.inputs == 0 && !options_.search.baseline_only) {
    Retry retry{options_, Cat("the plan is the baseline, because the numeric gate of the mutants "
                              "found takes more than ",
                              GateLimit(options_, original_), " s")};
    retry.options.search.baseline_only = true;
    return retry;
  }
  if (result_.gate.passed) return std::nullopt;
  if (options_.search.baseline_only) return InternalError("numeric gate: ", result_.gate.failure);
  return WithLessRisk();
}

/// Takes risk away step by step: first algorithms of other rounding, then mutants (sums in another
/// order can be too much for an ill-conditioned network).
Retry Attempt::WithLessRisk() const {
  Retry retry{options_, {}};
  const Numerics stricter = NextStricter(backend_, options_.numerics);
  const bool baseline_only = options_.numerics == Numerics::kStrict;
  retry.options.numerics = stricter;
  retry.options.refuse_int8 = true;
  retry.options.search.baseline_only = baseline_only;
  // Measurements are stored, so that a search with little time left still chooses well.
  retry.options.search.budget_seconds = LeftForASecondSearch(options_.search, clock_);
  retry.notice =
      baseline_only
          ? Cat("the plan is the baseline, because the numeric gate refused the mutants found: ",
                result_.gate.failure)
          : Cat("numerics ", NumericsName(stricter), " was used, because under ",
                NumericsName(options_.numerics),
                " the numeric gate refused: ", result_.gate.failure);
  return retry;
}

absl::StatusOr<OptimizeResult> Attempt::Finish() {
  Plan& plan = result_.plan;
  plan.graph = result_.search.best.graph;
  plan.baseline = std::move(baseline_);
  plan.certificate_bytes = SerializeCertificate(result_.certificate);
  plan.info = MakeInfo(options_, backend_, result_);
  MENDEL_ASSIGN_OR_RETURN(
      plan.engines, backend_.Engines(plan.graph, {.threads = options_.threads,
                                                  .numerics = options_.numerics,
                                                  .algorithms = result_.search.best.algorithms}));
  // The text serves other devices: a plan for this one is complete without it.
  auto kernels = WriteKernels(plan.graph);
  if (kernels.ok()) {
    plan.kernels = *std::move(kernels);
  } else {
    result_.notices.push_back(
        Cat("the plan carries no kernel texts: ", std::string(kernels.status().message())));
  }
  return std::move(result_);
}

/// An attempt's result, or what to do instead.
absl::StatusOr<std::variant<OptimizeResult, Retry>> Try(const Stopwatch& clock,
                                                        const Graph& original,
                                                        const OptimizeOptions& options,
                                                        const Backend& backend,
                                                        ProfileCache& cache) {
  if (auto retry = OtherNumerics(original, options, backend)) return *std::move(retry);
  MENDEL_ASSIGN_OR_RETURN(const std::vector<int> cpus,
                          CpusFor(backend, options.affinity, options.threads));
  Profiler profiler(backend, cache,
                    {.threads = options.threads,
                     .cpus = cpus,
                     .numerics = options.numerics,
                     .error_on_miss = options.error_on_cache_miss,
                     .costs = options.costs});
  Attempt attempt(clock, original, options, backend, cache, profiler);
  MENDEL_RETURN_IF_ERROR(attempt.FindProgram());
  MENDEL_ASSIGN_OR_RETURN(std::optional<Retry> retry, attempt.ProveProgram());
  if (!retry.has_value()) {
    MENDEL_ASSIGN_OR_RETURN(retry, attempt.CompareNumbers());
  }
  if (retry.has_value()) return *std::move(retry);
  return attempt.Finish();
}

}  // namespace

absl::StatusOr<OptimizeResult> Optimize(const Graph& original, const OptimizeOptions& options,
                                        ProfileCache& cache) {
  const Stopwatch clock;
  const Backend* backend =
      options.device != nullptr ? options.device : FindBackend(options.backend);
  if (backend == nullptr)
    return Unsupported("this program has no backend '", options.backend, "' (", BackendNames(),
                       ")");
  MENDEL_RETURN_IF_ERROR(Annotate(backend->Probe(), Cat("backend ", options.backend)));
  const auto weights = backend->KeepWeights();  // a retry needs the same
  MENDEL_ASSIGN_OR_RETURN(auto outcome, Try(clock, original, options, *backend, cache));
  if (auto* result = std::get_if<OptimizeResult>(&outcome)) return std::move(*result);
  auto& retry = std::get<Retry>(outcome);
  MENDEL_ASSIGN_OR_RETURN(OptimizeResult result, Optimize(original, retry.options, cache));
  result.notices.insert(result.notices.begin(), std::move(retry.notice));
  return result;
}

}  // namespace mendel
