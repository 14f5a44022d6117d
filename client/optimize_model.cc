#include "client/optimize_model.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/deadline.h"
#include "base/parallel.h"
#include "base/random.h"
#include "base/status.h"
#include "client/format.h"
#include "client/library_path.h"
#include "client/members.h"
#include "client/optimize_report.h"
#include "client/plan_facts.h"
#include "client/version.h"
#include "mutator/rule.h"
#include "optimizer/optimize_bundle.h"
#include "optimizer/search/automatic_budget.h"
#include "runtime/backend.h"
#include "runtime/cpu_topology.h"
#include "runtime/measuring_device.h"
#include "runtime/npy.h"
#include "runtime/plan_bundle.h"

namespace mendel {
namespace {

/// "--data DIR": every folder in it, or DIR itself, contains one sample of NAME.npy files.
absl::StatusOr<std::vector<std::map<std::string, Tensor>>> ReadSamples(
    const std::vector<std::string>& folders) {
  std::vector<std::map<std::string, Tensor>> samples;
  for (const std::string& folder : folders) {
    std::map<std::string, Tensor> sample;
    std::error_code code;
    for (const auto& entry : std::filesystem::directory_iterator(folder, code)) {
      if (entry.path().extension() != ".npy") continue;
      MENDEL_ASSIGN_OR_RETURN(Tensor tensor, ReadNpy(entry.path().string()));
      sample.emplace(entry.path().stem().string(), std::move(tensor));
    }
    if (code) return absl::ErrnoToStatus(code.value(), Cat("cannot read ", folder));
    samples.push_back(std::move(sample));
  }
  return samples;
}

/// `device` is set, and used by the result, for --offline.
absl::StatusOr<OptimizeOptions> MakeOptions(const OptimizeSettings& options,
                                            const std::atomic<bool>* interrupted,
                                            std::unique_ptr<OfflineDevice>& device) {
  OptimizeOptions result;
  result.backend = options.backend;
  result.threads = options.threads > 0 ? options.threads : (options.offline ? 1 : PhysicalCores());
  result.affinity = options.affinity;
  if (options.offline) {
    MENDEL_ASSIGN_OR_RETURN(device, MakeOfflineDevice(options.backend));
    result.device = &device->backend();
    result.backend = std::string(result.device->name());
    result.costs = [offline = device.get()](const Graph& graph, const CompileOptions& by) {
      return offline->Seconds(graph, by);
    };
  } else if (options.backend.find(':') != std::string::npos) {
    return InvalidInput("--device ", options.backend,
                        " names an architecture, not a device of this machine: add --offline");
  }
  MENDEL_ASSIGN_OR_RETURN(result.numerics, ParseNumerics(options.numerics));
  if (options.budget != kAutomaticLimit) {
    MENDEL_ASSIGN_OR_RETURN(result.search.budget_seconds, ParseDuration(options.budget, true));
    result.search.baseline_only = result.search.budget_seconds == 0;
  }
  if (options.certify_limit != kAutomaticLimit) {
    MENDEL_ASSIGN_OR_RETURN(result.certify_seconds, ParseDuration(options.certify_limit));
  }
  if (options.gate_limit != kAutomaticLimit) {
    MENDEL_ASSIGN_OR_RETURN(result.gate_seconds, ParseDuration(options.gate_limit));
  }
  MENDEL_ASSIGN_OR_RETURN(result.search.method, ParseSearchMethod(options.search));
  result.search.max_peak_bytes = options.peak_memory;
  result.search.max_weight_growth = options.max_weight_growth;
  result.search.max_candidates = options.max_candidates;
  result.search.seed = options.seed;
  for (const std::string& rule : options.disabled) {
    if (FindRule(rule) == nullptr) {
      std::string names;
      for (const Rule* known : AllRules()) names += Cat(names.empty() ? "" : ", ", known->name);
      return InvalidInput("there is no rule '", rule, "'; the rules are ", names);
    }
    result.search.disabled_rules.insert(rule);
  }
  result.search.interrupted = interrupted;
  result.gate.seed = options.seed;
  MENDEL_ASSIGN_OR_RETURN(result.gate.samples, ReadSamples(options.data));
  result.error_on_cache_miss = options.error_on_cache_miss;
  result.verifier.target_log2 = options.target_bound;
  result.verifier.weights = options.weights == "exact" ? WeightMode::kExact : WeightMode::kSymbolic;
  if (options.certificate_seed != 0) {
    Rng rng(options.certificate_seed);
    for (int k = 0; k < result.verifier.max_tests; ++k) {
      const uint64_t prime = PrimeField::RandomCertifying(rng).prime();
      result.verifier.fixed_draws.push_back({prime, {rng.Next(), rng.Next()}});
    }
  }
  result.model_name = std::filesystem::path(options.model).filename().string();
  result.mendel_version = VersionLine();
  return result;
}

void ReportOffline(const OfflineDevice& device, const std::string& kernels, Context& context) {
  context.Line(Cat("unmeasured  times are ", device.Description()));
  context.Line(
      "numbers     errors are those of the operators' definitions in double; no kernel was run");
  context.Line(Cat("kernels     ", kernels));
  context.facts()["offline"] = {{"predicted", device.Description()}, {"kernels", kernels}};
}

absl::StatusOr<std::vector<Graph>> ImportMembers(const OptimizeSettings& options,
                                                 std::string& model_hash,
                                                 const OptimizeWatcher& watcher, Context& context) {
  MENDEL_ASSIGN_OR_RETURN(const std::vector<NamedShapes> sets, ShapeSets(options.import.shapes));
  std::vector<Graph> graphs;
  for (const NamedShapes& shapes : sets) {
    ModelOptions import = options.import;
    import.shapes.clear();
    import.known_shapes = shapes;
    import.choose_deciding = true;
    import.interrupted = watcher.interrupted;
    MENDEL_ASSIGN_OR_RETURN(ImportResult model, ImportModel(options.model, import, context));
    if (watcher.warn != nullptr) {
      for (const std::string& notice : model.notices) watcher.warn(notice);
    }
    model_hash = model.model_hash;
    graphs.push_back(std::move(model.graph));
  }
  return graphs;
}

/// Descriptions of the kernels that a device which is not here would run.
absl::StatusOr<std::vector<std::string>> BuildKernels(OfflineDevice& device,
                                                      const std::vector<OptimizeResult>& results) {
  std::vector<std::string> kernels;
  for (const OptimizeResult& result : results) {
    const plan::PlanInfo& info = result.plan.info;
    CompileOptions compile{.threads = info.target().threads()};
    MENDEL_ASSIGN_OR_RETURN(compile.numerics, ParseNumerics(info.target().numerics()));
    compile.algorithms.insert(info.algorithms().begin(), info.algorithms().end());
    MENDEL_ASSIGN_OR_RETURN(std::string text, device.BuildKernels(result.plan.graph, compile));
    kernels.push_back(std::move(text));
  }
  return kernels;
}

/// Null where nothing is measured, or on the processor.
absl::StatusOr<std::unique_ptr<DeviceLock>> LockDevice(const OptimizeSettings& options,
                                                       const std::atomic<bool>* interrupted,
                                                       Context& context) {
  const Backend* backend = options.offline ? nullptr : FindBackend(options.backend);
  const MeasuringDevice* device = backend == nullptr ? nullptr : backend->measuring_device();
  if (device == nullptr) return nullptr;
  return device->Lock(
      {.report = [&](const std::string& text) { context.Note(text); }, .interrupted = interrupted});
}

void Announce(const OptimizeWatcher& watcher, const std::string& phase) {
  if (watcher.phase != nullptr) watcher.phase(phase);
}

}  // namespace

absl::StatusOr<Optimized> OptimizeModel(const OptimizeSettings& settings,
                                        const OptimizeWatcher& watcher, Context& context) {
  const Stopwatch clock;
  if (settings.threads > 0) SetParallelism(settings.threads);
  Optimized optimized;
  MENDEL_ASSIGN_OR_RETURN(OptimizeOptions optimize,
                          MakeOptions(settings, watcher.interrupted, optimized.device));
  optimize.search.progress = watcher.progress;
  Announce(watcher, "import");
  MENDEL_ASSIGN_OR_RETURN(const std::vector<Graph> graphs,
                          ImportMembers(settings, optimize.model_hash, watcher, context));
  for (const Graph& graph : graphs) optimized.shapes.push_back(InputShapes(graph));
  if (settings.budget == kAutomaticLimit) {
    optimize.search.budget_seconds = AutomaticBudget(graphs);
  } else {
    // Assembling and writing the plan takes about as long as the import.
    optimize.search.spare_seconds = -2 * clock.Seconds();
  }
  optimized.budget_seconds = optimize.search.budget_seconds;
  context.facts()["budget_seconds"] = optimized.budget_seconds;
  MENDEL_ASSIGN_OR_RETURN(const auto lock, LockDevice(settings, watcher.interrupted, context));
  MENDEL_ASSIGN_OR_RETURN(const auto cache, ProfileCache::Open(settings.cache));
  MENDEL_ASSIGN_OR_RETURN(optimized.results, OptimizeBundle(graphs, optimize, *cache));
  if (optimized.device != nullptr) {
    Announce(watcher, "kernels");
    MENDEL_ASSIGN_OR_RETURN(optimized.kernels, BuildKernels(*optimized.device, optimized.results));
  }
  return optimized;
}

absl::Status ReportOptimization(const Optimized& optimized, const OptimizeSettings& settings,
                                const OptimizeWatcher& watcher, Context& context) {
  return ReportMembers(optimized.shapes, context, [&](size_t k, Context& member) {
    const OptimizeResult& result = optimized.results[k];
    for (const std::string& notice : result.notices) {
      if (watcher.warn != nullptr) watcher.warn(notice);
      member.Note(Cat("note: ", notice));
      member.facts()["notices"].push_back(notice);
    }
    ReportOptimized(result, settings.search, member);
    if (optimized.device != nullptr) ReportOffline(*optimized.device, optimized.kernels[k], member);
    ReportPlanInfo(result.plan.info, member);
    return absl::OkStatus();
  });
}

void AddOptimizeSettings(CLI::App& app, OptimizeSettings& settings) {
  AddModelOptions(app, settings.import);
  app.add_option("--threads", settings.threads, "Threads of the plan (default: physical cores)")
      ->check(CLI::PositiveNumber);
  app.add_option("--affinity", settings.affinity,
                 "Where programs run while they are measured: none, cores, or CPUs such as 0,2-3")
      ->capture_default_str();
  app.add_option("--backend,--device", settings.backend, "Backend that the plan is for")
      ->capture_default_str();
  AddLibraryPathOption(app);
  app.add_flag("--offline", settings.offline,
               "For a device that is not here, e.g. --device cuda:sm_90: times are predicted");
  app.add_option(
         "--budget", settings.budget,
         "Time for import, normalization and search, e.g. 60s (0: the baseline); auto: by the "
         "number of different layers and their arithmetic")
      ->capture_default_str();
  app.add_option("--certify-limit", settings.certify_limit,
                 "Time for the certificate; auto: three times what the arithmetic needs, and no "
                 "limit for a baseline without mutants")
      ->capture_default_str();
  app.add_option("--gate-limit", settings.gate_limit,
                 "Time for the numeric gate; auto: three times what the arithmetic needs")
      ->capture_default_str();
  app.add_option("--search", settings.search, "Search method: beam or egraph")
      ->check(CLI::IsMember({"beam", "egraph"}))
      ->capture_default_str();
  app.add_option("--peak-memory", settings.peak_memory,
                 "Limit on the bytes of values alive at a time (egraph only)")
      ->check(CLI::PositiveNumber);
  app.add_option("--max-weight-growth", settings.max_weight_growth,
                 "Limit on the bytes of weights that mutants make at load time (default: 1.5 times "
                 "the model's weights or 64 MiB, whichever is more)")
      ->check(CLI::PositiveNumber);
  app.add_option("--max-candidates", settings.max_candidates,
                 "Candidates after which the search stops")
      ->capture_default_str();
  app.add_option(
         "--numerics", settings.numerics,
         "Class of rounding: strict (sums reordered), default (also Winograd; int8 for a "
         "quantized model), int8 (sums of codes). These also round operands: high (16 bits), "
         "tf32, f16, bf16")
      ->capture_default_str();
  app.add_option("--weights", settings.weights,
                 "exact: the plan may use the stored numbers, and then holds for them only; "
                 "symbolic: it holds for all weights (mendel rebind)")
      ->check(CLI::IsMember({"exact", "symbolic"}))
      ->capture_default_str();
  app.add_option("--seed", settings.seed, "Seed of everything random in the search")
      ->capture_default_str();
  app.add_option("--cache", settings.cache, "Profile cache file")->capture_default_str();
  app.add_option("--disable", settings.disabled, "Rules to leave out, comma-separated")
      ->delimiter(',');
  app.add_option("--data", settings.data, "Folder with NAME.npy inputs for the numeric gate")
      ->take_all();
  app.add_option("--target-bound", settings.target_bound,
                 "The certificate's bound must be at most 2 to this power")
      ->check(CLI::Range(-1000.0, -1.0))
      ->capture_default_str();
  app.add_flag("--error-on-cache-miss", settings.error_on_cache_miss, "Fail rather than measure");
  app.add_option("--certificate-seed", settings.certificate_seed,
                 "Fix the certificate's draws (tests only: it then proves nothing)");
}

}  // namespace mendel
