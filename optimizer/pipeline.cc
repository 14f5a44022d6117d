#include "optimizer/pipeline.h"

#include <algorithm>
#include <optional>
#include <utility>

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

}  // namespace

absl::StatusOr<OptimizeResult> Optimize(const Graph& original, const OptimizeOptions& options,
                                        ProfileCache& cache) {
  const Stopwatch clock;
  OptimizeResult result;
  const Backend* backend =
      options.device != nullptr ? options.device : FindBackend(options.backend);
  if (backend == nullptr)
    return Unsupported("this program has no backend '", options.backend, "' (", BackendNames(),
                       ")");
  MENDEL_RETURN_IF_ERROR(Annotate(backend->Probe(), Cat("backend ", options.backend)));
  if (NumericsFor(original, options.numerics) != options.numerics && !options.refuse_int8 &&
      backend->Supports(Numerics::kInt8).ok()) {
    OptimizeOptions integers = options;
    integers.numerics = Numerics::kInt8;
    MENDEL_ASSIGN_OR_RETURN(result, Optimize(original, integers, cache));
    result.notices.insert(result.notices.begin(),
                          "numerics int8: the model is quantized, and so are its products");
    return result;
  }
  if (const absl::Status supported = backend->Supports(options.numerics); !supported.ok()) {
    OptimizeOptions less = options;
    less.numerics = NextStricter(*backend, options.numerics);
    MENDEL_ASSIGN_OR_RETURN(result, Optimize(original, less, cache));
    result.notices.insert(result.notices.begin(),
                          Cat("numerics ", NumericsName(options.numerics), " allows no more than ",
                              NumericsName(less.numerics), " here: ", supported.message()));
    return result;
  }
  MENDEL_ASSIGN_OR_RETURN(const std::vector<int> cpus,
                          CpusFor(*backend, options.affinity, options.threads));
  Profiler profiler(*backend, cache,
                    {.threads = options.threads,
                     .cpus = cpus,
                     .numerics = options.numerics,
                     .error_on_miss = options.error_on_cache_miss,
                     .costs = options.costs});

  VerifierOptions verifier = options.verifier;
  MENDEL_ASSIGN_OR_RETURN(const Graph source, MakeSource(original, options, verifier));
  std::set<std::string> faults;
  MENDEL_ASSIGN_OR_RETURN(const Graph baseline, Timed("normalize", options, result, [&] {
                            return Normalize(source, options.search.disabled_rules, faults,
                                             BudgetOf(options.search, kNormalizeShare));
                          }));
  NoteAddsNothing(*backend, baseline, options.numerics, result.notices);
  MENDEL_ASSIGN_OR_RETURN(result.search, Timed("search", options, result, [&] {
                            SearchOptions search = options.search;
                            search.spare_seconds -= clock.Seconds();
                            return Search(baseline, profiler, cache, search);
                          }));
  if (options.costs)
    result.search.baseline_time.runs = result.search.best_time.runs = 0;  // nothing was timed
  faults.insert(result.search.warnings.begin(), result.search.warnings.end());
  result.notices.insert(result.notices.end(), faults.begin(), faults.end());
  // The draws of the certificate come after the search has fixed the graph.
  const double limit = options.certify_seconds > 0
                           ? options.certify_seconds
                           : AutomaticCertifyLimit(original, result.search.best.graph);
  // An estimate must not leave a model without any plan.
  const bool limited = options.certify_seconds > 0 || !options.search.baseline_only;
  auto certificate = Timed("certify", options, result, [&] {
    if (limited) verifier.deadline = Deadline::After(limit);
    return CertifyOrReuse(original, result.search.best.graph, verifier, cache,
                          result.certificate_reused);
  });
  if (IsNoProof(certificate.status()) && !options.search.baseline_only) {
    OptimizeOptions careful = options;
    careful.search.budget_seconds = LeftForASecondSearch(options.search, clock);
    const bool timed_out = absl::IsDeadlineExceeded(certificate.status());
    if (timed_out || !DisableRulesOf(result.search.mutants, careful.search.disabled_rules))
      careful.search.baseline_only = true;
    MENDEL_ASSIGN_OR_RETURN(OptimizeResult second, Optimize(original, careful, cache));
    second.notices.insert(
        second.notices.begin(),
        Cat(careful.search.baseline_only ? "the plan is the baseline" : "mutants were left out",
            ", because the certificate of the mutants found ",
            timed_out ? Cat("takes more than ", limit, " s")
                      : Cat("failed: ", std::string(certificate.status().message()))));
    return second;
  }
  MENDEL_ASSIGN_OR_RETURN(result.certificate, std::move(certificate));
  MENDEL_ASSIGN_OR_RETURN(result.gate, Timed("numeric gate", options, result, [&] {
                            return LimitedGate(original, baseline, result.search.best, profiler,
                                               options, result.notices);
                          }));
  if (result.gate.inputs == 0 && !options.search.baseline_only) {
    OptimizeOptions careful = options;
    careful.search.baseline_only = true;
    MENDEL_ASSIGN_OR_RETURN(OptimizeResult second, Optimize(original, careful, cache));
    second.notices.insert(second.notices.begin(),
                          Cat("the plan is the baseline, because the numeric gate of the mutants "
                              "found takes more than ",
                              GateLimit(options, original), " s"));
    return second;
  }
  if (!result.gate.passed) {
    if (options.search.baseline_only) return InternalError("numeric gate: ", result.gate.failure);
    // Retries with less risk, step by step: no algorithms of other rounding, then no mutants (sums
    // in another order can be too much for an ill-conditioned network).
    OptimizeOptions careful = options;
    careful.search.baseline_only = options.numerics == Numerics::kStrict;
    careful.numerics = NextStricter(*backend, options.numerics);
    careful.refuse_int8 = true;
    // Measurements are stored, so that a search with little time left still chooses well.
    careful.search.budget_seconds = LeftForASecondSearch(options.search, clock);
    MENDEL_ASSIGN_OR_RETURN(OptimizeResult second, Optimize(original, careful, cache));
    const std::string notice =
        careful.search.baseline_only
            ? Cat("the plan is the baseline, because the numeric gate refused the mutants found: ",
                  result.gate.failure)
            : Cat("numerics ", NumericsName(careful.numerics), " was used, because under ",
                  NumericsName(options.numerics),
                  " the numeric gate refused: ", result.gate.failure);
    second.notices.insert(second.notices.begin(), notice);
    return second;
  }

  result.plan.graph = result.search.best.graph;
  result.plan.baseline = baseline;
  result.plan.certificate_bytes = SerializeCertificate(result.certificate);
  result.plan.info = MakeInfo(options, *backend, result);
  MENDEL_ASSIGN_OR_RETURN(
      result.plan.engines,
      backend->Engines(result.plan.graph, {.threads = options.threads,
                                           .numerics = options.numerics,
                                           .algorithms = result.search.best.algorithms}));
  // The text serves other devices: a plan for this one is complete without it.
  auto kernels = WriteKernels(result.plan.graph);
  if (kernels.ok()) {
    result.plan.kernels = *std::move(kernels);
  } else {
    result.notices.push_back(
        Cat("the plan carries no kernel texts: ", std::string(kernels.status().message())));
  }
  return result;
}

}  // namespace mendel
