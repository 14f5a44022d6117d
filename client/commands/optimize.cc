// mendel optimize M.onnx -o M.plan [--device cuda:sm_90 --offline] [--shapes ..] [--threads N]
// [--budget 60s] [--seed N] ...
// --shapes given several times for an input: a bundle of plans.

#include <sys/time.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "base/hash.h"
#include "base/parallel.h"
#include "base/status.h"
#include "client/command.h"
#include "client/exit_codes.h"
#include "client/format.h"
#include "client/library_path.h"
#include "client/members.h"
#include "client/model_options.h"
#include "client/optimize_report.h"
#include "client/plan_facts.h"
#include "client/progress_line.h"
#include "client/progress_pipe.h"
#include "client/version.h"
#include "mutator/rule.h"
#include "optimizer/optimize_bundle.h"
#include "optimizer/search/automatic_budget.h"
#include "runtime/backend.h"
#include "runtime/cpu_topology.h"
#include "runtime/measuring_device.h"
#include "runtime/npy.h"
#include "runtime/offline_device.h"
#include "runtime/plan_bundle.h"

namespace mendel::commands::optimize {
namespace {

constexpr std::string_view kAutomatic = "auto";

struct Options {
  std::string model;
  std::string output;
  ModelOptions import;
  int threads = 0;
  std::string affinity = OptimizeOptions().affinity;
  std::string backend = "cpu";
  bool offline = false;
  std::string budget = std::string(kAutomatic);
  std::string certify_limit = std::string(kAutomatic);
  std::string numerics = "default";
  std::string weights = "symbolic";
  std::string search = std::string(SearchMethodName(SearchOptions().method));
  int64_t peak_memory = 0;
  int64_t max_weight_growth = SearchOptions().max_weight_growth;
  uint64_t seed = 1;
  std::string cache = DefaultCachePath();
  std::vector<std::string> disabled;
  std::vector<std::string> data;
  int64_t max_candidates = SearchOptions().max_candidates;
  bool error_on_cache_miss = false;
  uint64_t certificate_seed = 0;
  double target_bound = VerifierOptions().target_log2;
  int progress_fd = -1;
};

std::atomic<bool> interrupted = false;

/// After the first signal, the rest of the work may take so long.
constexpr itimerval kGrace{.it_interval = {}, .it_value = {.tv_sec = 1, .tv_usec = 800'000}};

extern "C" void OnGraceOver(int) { std::_Exit(kExitInterrupted); }

/// The first SIGINT or SIGTERM stops the search; its best so far is certified and written if the
/// grace suffices. Then, or at a second signal, the process ends with nothing written.
extern "C" void OnStopSignal(int) {
  if (interrupted.exchange(true)) std::_Exit(kExitInterrupted);
  setitimer(ITIMER_REAL, &kGrace, nullptr);
}

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
absl::StatusOr<OptimizeOptions> MakeOptions(const Options& options,
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
  if (options.budget != kAutomatic) {
    MENDEL_ASSIGN_OR_RETURN(result.search.budget_seconds, ParseDuration(options.budget, true));
    result.search.baseline_only = result.search.budget_seconds == 0;
  }
  if (options.certify_limit != kAutomatic) {
    MENDEL_ASSIGN_OR_RETURN(result.certify_seconds, ParseDuration(options.certify_limit));
  }
  MENDEL_ASSIGN_OR_RETURN(result.search.method, ParseSearchMethod(options.search));
  result.search.max_peak_bytes = options.peak_memory;
  result.search.max_weight_growth = options.max_weight_growth;
  result.search.max_candidates = options.max_candidates;
  result.search.seed = options.seed;
  for (const std::string& rule : options.disabled) {
    if (FindRule(rule) == nullptr)
      return InvalidInput("there is no rule '", rule, "' (see mendel rules)");
    result.search.disabled_rules.insert(rule);
  }
  result.search.interrupted = &interrupted;
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

absl::StatusOr<std::vector<Graph>> ImportMembers(const Options& options, std::string& model_hash,
                                                 ProgressPipe& pipe, Context& context) {
  MENDEL_ASSIGN_OR_RETURN(const std::vector<NamedShapes> sets, ShapeSets(options.import.shapes));
  std::vector<Graph> graphs;
  for (const NamedShapes& shapes : sets) {
    ModelOptions import = options.import;
    import.shapes.clear();
    import.known_shapes = shapes;
    MENDEL_ASSIGN_OR_RETURN(ImportResult model, ImportModel(options.model, import, context));
    for (const std::string& notice : model.notices) pipe.Warn(notice);
    model_hash = model.model_hash;
    graphs.push_back(std::move(model.graph));
  }
  return graphs;
}

absl::Status OptimizeAndWrite(const std::vector<Graph>& graphs, const OptimizeOptions& optimize,
                              const Options& options, OfflineDevice* device, ProgressLine& line,
                              ProgressPipe& pipe, Context& context) {
  MENDEL_ASSIGN_OR_RETURN(const auto cache, ProfileCache::Open(options.cache));
  const auto results = OptimizeBundle(graphs, optimize, *cache);
  line.Finish();
  MENDEL_RETURN_IF_ERROR(results.status());
  std::vector<std::string> kernels(results->size());
  if (device != nullptr) {
    pipe.Phase("kernels");
    for (size_t k = 0; k < kernels.size(); ++k) {
      const plan::PlanInfo& info = (*results)[k].plan.info;
      CompileOptions compile{.threads = info.target().threads()};
      MENDEL_ASSIGN_OR_RETURN(compile.numerics, ParseNumerics(info.target().numerics()));
      compile.algorithms.insert(info.algorithms().begin(), info.algorithms().end());
      MENDEL_ASSIGN_OR_RETURN(kernels[k], device->BuildKernels((*results)[k].plan.graph, compile));
    }
  }
  pipe.Phase("write");
  std::signal(SIGALRM, SIG_IGN);  // from here on there is something to save
  std::vector<Plan> plans;
  for (const OptimizeResult& result : *results) plans.push_back(result.plan);
  MENDEL_RETURN_IF_ERROR(WritePlans(plans, options.output));
  std::vector<NamedShapes> shapes;
  for (const Graph& graph : graphs) shapes.push_back(InputShapes(graph));
  return ReportMembers(shapes, context, [&](size_t k, Context& member) {
    const OptimizeResult& result = (*results)[k];
    for (const std::string& notice : result.notices) {
      pipe.Warn(notice);
      member.Note(Cat("note: ", notice));
      member.facts()["notices"].push_back(notice);
    }
    ReportOptimized(result, options.search, member);
    if (device != nullptr) ReportOffline(*device, kernels[k], member);
    ReportPlanInfo(result.plan.info, member);
    return absl::OkStatus();
  });
}

/// Null where nothing is measured, or on the processor.
absl::StatusOr<std::unique_ptr<DeviceLock>> LockDevice(const Options& options, Context& context) {
  const Backend* backend = options.offline ? nullptr : FindBackend(options.backend);
  const MeasuringDevice* device = backend == nullptr ? nullptr : backend->measuring_device();
  if (device == nullptr) return nullptr;
  return device->Lock({.report = [&](const std::string& text) { context.Note(text); },
                       .interrupted = &interrupted});
}

absl::Status Run(const Options& options, Context& context) {
  const Stopwatch clock;
  std::signal(SIGALRM, &OnGraceOver);
  std::signal(SIGINT, &OnStopSignal);
  std::signal(SIGTERM, &OnStopSignal);
  if (options.threads > 0) SetParallelism(options.threads);
  ProgressLine line(context.json());
  ProgressPipe pipe(options.progress_fd);
  std::unique_ptr<OfflineDevice> device;
  MENDEL_ASSIGN_OR_RETURN(OptimizeOptions optimize, MakeOptions(options, device));
  optimize.search.progress = [&](const ProgressEvent& event) {
    line.Show(event);
    pipe.Show(event);
  };
  pipe.Phase("import");
  MENDEL_ASSIGN_OR_RETURN(const std::vector<Graph> graphs,
                          ImportMembers(options, optimize.model_hash, pipe, context));
  if (options.budget == kAutomatic) {
    optimize.search.budget_seconds = AutomaticBudget(graphs);
  } else {
    optimize.search.spare_seconds = -clock.Seconds();
  }
  context.facts()["budget_seconds"] = optimize.search.budget_seconds;
  MENDEL_ASSIGN_OR_RETURN(const auto lock, LockDevice(options, context));
  MENDEL_RETURN_IF_ERROR(
      OptimizeAndWrite(graphs, optimize, options, device.get(), line, pipe, context));
  context.facts()["file"] = options.output;
  context.Line(Cat("wrote       ", options.output));
  return absl::OkStatus();
}

Action Setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("model", options->model, "ONNX file")->required();
  app.add_option("-o,--output", options->output, "Plan file to write")->required();
  AddModelOptions(app, options->import);
  app.add_option("--threads", options->threads, "Threads of the plan (default: physical cores)")
      ->check(CLI::PositiveNumber);
  app.add_option("--affinity", options->affinity,
                 "Where programs run while they are measured: none, cores, or CPUs such as 0,2-3")
      ->capture_default_str();
  app.add_option("--backend,--device", options->backend, "Backend that the plan is for")
      ->capture_default_str();
  AddLibraryPathOption(app);
  app.add_flag("--offline", options->offline,
               "For a device that is not here, e.g. --device cuda:sm_90: times are predicted");
  app.add_option("--budget", options->budget,
                 "Time before the certificate, e.g. 60s (0: the baseline); auto: by the number of "
                 "unlike layers and their arithmetic")
      ->capture_default_str();
  app.add_option("--certify-limit", options->certify_limit,
                 "Time for the certificate; auto: three times what the arithmetic needs")
      ->capture_default_str();
  app.add_option("--search", options->search, "Search method: beam or egraph")
      ->check(CLI::IsMember({"beam", "egraph"}))
      ->capture_default_str();
  app.add_option("--peak-memory", options->peak_memory,
                 "Limit on the bytes of values alive at a time (egraph only)")
      ->check(CLI::PositiveNumber);
  app.add_option("--max-weight-growth", options->max_weight_growth,
                 "Limit on the bytes of weights that mutants make at load time (default: 1.5 times "
                 "the model's weights or 64 MiB, whichever is more)")
      ->check(CLI::PositiveNumber);
  app.add_option("--max-candidates", options->max_candidates,
                 "Candidates after which the search stops")
      ->capture_default_str();
  app.add_option(
         "--numerics", options->numerics,
         "strict (reassociation only), default (Winograd allowed; int8 for a quantized model), "
         "int8 (sums of codes), or operands of products rounded, too: high (16 bits), "
         "tf32, f16, bf16")
      ->capture_default_str();
  app.add_option("--weights", options->weights,
                 "symbolic: the plan holds for all weights; exact: it may use the stored ones")
      ->check(CLI::IsMember({"exact", "symbolic"}))
      ->capture_default_str();
  app.add_option("--seed", options->seed, "Seed of everything random in the search")
      ->capture_default_str();
  app.add_option("--cache", options->cache, "Profile cache file")->capture_default_str();
  app.add_option("--disable", options->disabled, "Rules to leave out, comma-separated")
      ->delimiter(',');
  app.add_option("--data", options->data, "Folder with NAME.npy inputs for the numeric gate")
      ->take_all();
  app.add_option("--target-bound", options->target_bound,
                 "The certificate's bound must be at most 2 to this power")
      ->check(CLI::Range(-1000.0, -1.0))
      ->capture_default_str();
  AddProgressOption(app, options->progress_fd);
  app.add_flag("--error-on-cache-miss", options->error_on_cache_miss, "Fail rather than measure");
  app.add_option("--certificate-seed", options->certificate_seed,
                 "Fix the certificate's draws (tests only: it then proves nothing)");
  return [options](Context& context) { return Run(*options, context); };
}

Command Make() { return {"optimize", "Makes a faster, certified plan of an ONNX model", &Setup}; }

MENDEL_REGISTER_COMMAND(&Make);

}  // namespace
}  // namespace mendel::commands::optimize
