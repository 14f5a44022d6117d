// mendel bench M.plan [--shapes ..] [--threads N] [--duration 3s] [--baseline] [--json]

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "client/command.h"
#include "client/format.h"
#include "client/input_files.h"
#include "client/library_path.h"
#include "client/members.h"
#include "client/peers/python.h"
#include "client/peers/runtimes.h"
#include "client/version.h"
#include "runtime/backend.h"
#include "runtime/measure.h"
#include "runtime/measuring_device.h"
#include "runtime/session.h"

namespace mendel::commands::bench {
namespace {

struct Options {
  std::string plan;
  std::vector<std::string> shapes;
  std::string duration = "3s";
  bool baseline = false;
  bool cold = false;
  uint64_t seed = 1;
  std::vector<std::string> inputs;  ///< NAME=FILE.npy
  bool peers = false;
  PeerOptions peer;
  SessionOptions session;
};

std::string TimingLine(const std::string& what, const Timing& timing) {
  return Cat(what, "  median ", Decimals(timing.median_ms, 3), " ms  min ",
             Decimals(timing.min_ms, 3), " ms  p90 ", Decimals(timing.p90_ms, 3), " ms  (",
             timing.runs, " runs)");
}

/// Conditions of the device, just before the first run and just after the last one.
struct Conditions {
  absl::StatusOr<DeviceConditions> before, after;
};

/// Measurements of one plan.
struct PlanTimes {
  Timing plan;
  std::optional<Timing> baseline;
  int threads = 0;
  /// From the plan in memory to a program: kernels chosen, weights folded and packed.
  double load_ms = 0;
  double first_ms = 0;  ///< the first run
  MemoryReport memory;
  std::optional<Conditions> conditions = {};  ///< where the plan's backend has a device of its own
  double Speedup() const { return plan.median_ms > 0 ? baseline->median_ms / plan.median_ms : 1.0; }
};

/// Null where the plan runs on the processor.
const MeasuringDevice* DeviceOf(const Plan& plan) {
  const Backend* backend = FindBackend(plan.info.target().backend());
  return backend == nullptr ? nullptr : backend->measuring_device();
}

using Given = std::map<std::string, Tensor>;

/// The values given, and random ones for the other inputs.
absl::StatusOr<std::vector<Tensor>> InputsOf(const Plan& plan, const Session& session,
                                             const Options& options, Given given) {
  const std::vector<Tensor> random = RandomInputs(plan.graph, options.seed);
  for (size_t k = 0; k < random.size(); ++k) given.emplace(session.inputs()[k].name, random[k]);
  return session.InOrder(given);
}

absl::StatusOr<PlanTimes> BenchPlan(const Plan& plan, const Options& options, const Given& given,
                                    const MeasureOptions& measure) {
  const Stopwatch loading;
  MENDEL_ASSIGN_OR_RETURN(const auto session, Session::Create(plan, options.session));
  const double load_ms = 1e3 * loading.Seconds();
  MENDEL_ASSIGN_OR_RETURN(const std::vector<Tensor> inputs,
                          InputsOf(plan, *session, options, given));
  const Stopwatch running;
  MENDEL_RETURN_IF_ERROR(RunOnTensors(session->executable(), plan.graph, inputs).status());
  const double first_ms = 1e3 * running.Seconds();
  std::vector<Executable*> executables = {&session->executable()};
  std::unique_ptr<Session> baseline;
  if (options.baseline) {
    SessionOptions baseline_options = options.session;
    baseline_options.baseline = true;
    MENDEL_ASSIGN_OR_RETURN(baseline, Session::Create(plan, baseline_options));
    executables.push_back(&baseline->executable());
  }
  const MeasuringDevice* device = DeviceOf(plan);
  std::optional<absl::StatusOr<DeviceConditions>> before;
  if (device != nullptr) before = device->Conditions();
  MENDEL_ASSIGN_OR_RETURN(const auto timings,
                          MeasureInterleaved(executables, plan.graph, inputs, measure));
  PlanTimes times{timings[0], std::nullopt, session->threads(),
                  load_ms,    first_ms,     session->executable().memory()};
  if (device != nullptr) times.conditions = {*std::move(before), device->Conditions()};
  if (options.baseline) times.baseline = timings[1];
  return times;
}

nlohmann::ordered_json TimesJson(const PlanTimes& times, const Plan& plan) {
  nlohmann::ordered_json facts = TimingJson(times.plan);
  facts["threads"] = times.threads;
  facts["backend"] = plan.info.target().backend();
  facts["load_ms"] = times.load_ms;
  facts["first_run_ms"] = times.first_ms;
  facts["memory"] = {{"activations", times.memory.arena_bytes},
                     {"alive", times.memory.alive_bytes},
                     {"weights", times.memory.weight_bytes},
                     {"scratch", times.memory.scratch_bytes}};
  if (times.baseline.has_value()) {
    facts["baseline"] = TimingJson(*times.baseline);
    facts["speedup"] = times.Speedup();
  }
  if (times.conditions.has_value()) {
    const auto json =
        [](const absl::StatusOr<DeviceConditions>& conditions) -> nlohmann::ordered_json {
      if (conditions.ok()) return ConditionsJson(*conditions);
      return {{"not_told", std::string(conditions.status().message())}};
    };
    facts["device"] = {{"before", json(times.conditions->before)},
                       {"after", json(times.conditions->after)}};
  }
  return facts;
}

void ReportConditions(const std::string& what, const absl::StatusOr<DeviceConditions>& conditions,
                      Context& context) {
  context.Line(Cat(what, conditions.ok() ? ConditionsText(*conditions)
                                         : Cat("not reported: ", conditions.status().message())));
}

void ReportPlan(const PlanTimes& times, double read_ms, Context& context) {
  context.Line(TimingLine("plan    ", times.plan));
  context.Line(Cat("loaded    file in ", Decimals(read_ms, 1), " ms, program in ",
                   Decimals(times.load_ms, 1), " ms, first run in ", Decimals(times.first_ms, 1),
                   " ms"));
  const auto text = [](int64_t bytes) { return ByteText(static_cast<double>(bytes)); };
  context.Line(Cat("memory    activations ", text(times.memory.arena_bytes),
                   " (alive at once: ", text(times.memory.alive_bytes), "), packed weights ",
                   text(times.memory.weight_bytes), ", scratch ",
                   text(times.memory.scratch_bytes)));
  if (times.baseline.has_value()) {
    context.Line(TimingLine("baseline", *times.baseline));
    context.Line(Cat("speed-up  ", Decimals(times.Speedup(), 2)));
  }
  if (!times.conditions.has_value()) return;
  ReportConditions("device before  ", times.conditions->before, context);
  ReportConditions("device after   ", times.conditions->after, context);
}

/// One row per member of a bundle.
void ReportTable(const std::vector<NamedShapes>& offered, const std::vector<PlanTimes>& times,
                 Context& context) {
  std::vector<std::vector<std::string>> rows = {
      {"inputs", "median ms", "min ms", "p90 ms", "runs"}};
  const bool baseline = times[0].baseline.has_value();
  if (baseline) rows[0].insert(rows[0].end(), {"baseline ms", "speed-up"});
  for (size_t k = 0; k < times.size(); ++k) {
    const Timing& plan = times[k].plan;
    rows.push_back({ShapesText(offered[k]), Decimals(plan.median_ms, 3), Decimals(plan.min_ms, 3),
                    Decimals(plan.p90_ms, 3), Cat(plan.runs)});
    if (baseline)
      rows.back().insert(rows.back().end(), {Decimals(times[k].baseline->median_ms, 3),
                                             Decimals(times[k].Speedup(), 2)});
  }
  for (const std::string& line : TableLines(rows, {1, 2, 3, 4, 5, 6})) context.Line(line);
}

std::vector<std::string> PeerCells(const PeerTimes& times, int threads) {
  if (!times.missing.empty()) return {times.name, times.version, "", "", ""};
  return {times.name, times.version, Cat(threads), Decimals(times.median_ms, 3),
          Cat(Decimals(100 * times.spread, 0), " %")};
}

void ReportPeers(const PeerReport& report, int threads, Context& context) {
  nlohmann::ordered_json facts = {{"model", report.model}, {"python", report.python}};
  std::vector<std::vector<std::string>> rows = {
      {"runtime", "version", "threads", "median ms", "spread"}};
  for (const PeerTimes& times : report.runtimes) {
    rows.push_back(PeerCells(times, threads));
    nlohmann::ordered_json runtime = {{"name", times.name}, {"version", times.version}};
    if (times.missing.empty()) {
      runtime["threads"] = threads;
      runtime["median_ms"] = times.median_ms;
      runtime["spread"] = times.spread;
      runtime["rounds_ms"] = times.rounds_ms;
    } else {
      runtime["missing"] = times.missing;
    }
    facts["runtimes"].push_back(std::move(runtime));
  }
  const std::vector<std::string> lines = TableLines(rows, {2, 3, 4});
  context.Line(lines[0]);
  for (size_t k = 0; k < report.runtimes.size(); ++k) {
    const PeerTimes& times = report.runtimes[k];
    context.Line(times.missing.empty() ? lines[k + 1] : Cat(times.name, "  ", times.missing));
  }
  context.Line(Cat("in turn, ", report.runtimes[0].rounds_ms.size(),
                   " rounds each; the others ran ", report.model, ", in ", report.python));
  context.facts()["peers"] = std::move(facts);
}

/// The other runtimes beside the plan, on as many threads.
absl::Status BenchPeers(const Plan& plan, const Options& options, const MeasureOptions& measure,
                        Context& context) {
  if (DeviceOf(plan) != nullptr) {
    return InvalidInput("--peers measures processors, and the plan is for backend ",
                        plan.info.target().backend());
  }
  MENDEL_ASSIGN_OR_RETURN(const auto session, Session::Create(plan, options.session));
  const std::vector<Tensor> inputs = RandomInputs(plan.graph, options.seed);
  Executable* const executable = &session->executable();
  PeerOptions peer = options.peer;
  peer.threads = session->threads();
  peer.seed = options.seed;
  peer.seconds = measure.min_seconds;
  const auto run_plan = [&](double seconds) -> absl::StatusOr<double> {
    MeasureOptions round = measure;
    round.min_seconds = seconds;
    round.min_runs = 3;
    MENDEL_ASSIGN_OR_RETURN(const auto timings,
                            MeasureInterleaved({&executable, 1}, plan.graph, inputs, round));
    return timings[0].median_ms;
  };
  MENDEL_ASSIGN_OR_RETURN(PeerReport report, MeasurePeers(plan, peer, run_plan));
  report.runtimes[0].version = ProgramVersion().version;
  ReportPeers(report, session->threads(), context);
  return absl::OkStatus();
}

absl::Status Bench(const Options& options, Context& context) {
  context.Input(options.plan);
  MeasureOptions measure;
  MENDEL_ASSIGN_OR_RETURN(measure.min_seconds, ParseDuration(options.duration));
  measure.max_seconds = std::max(measure.max_seconds, 2 * measure.min_seconds);
  measure.cold = options.cold;
  const Stopwatch reading;
  MENDEL_ASSIGN_OR_RETURN(const std::vector<Plan> plans, ReadMembers(options.plan, options.shapes));
  const double read_ms = 1e3 * reading.Seconds();
  const std::vector<NamedShapes> offered = OfferedShapes(plans);
  if ((options.peers || !options.inputs.empty()) && plans.size() > 1) {
    std::string members;
    for (const NamedShapes& shapes : offered)
      members += Cat(members.empty() ? "" : "; ", ShapesText(shapes));
    return InvalidInput(options.peers ? "--peers" : "--input",
                        " measures one plan: choose one with --shapes: ", members);
  }
  MENDEL_ASSIGN_OR_RETURN(const Given given, ReadInputFiles(options.inputs, context));
  std::unique_ptr<DeviceLock> lock;
  if (const MeasuringDevice* device = DeviceOf(plans[0])) {
    MENDEL_ASSIGN_OR_RETURN(
        lock, device->Lock({.report = [&](const std::string& text) { context.Note(text); }}));
  }
  std::vector<PlanTimes> times;
  for (size_t k = 0; k < plans.size(); ++k) {
    auto measured = BenchPlan(plans[k], options, given, measure);
    if (!measured.ok())
      return plans.size() == 1 ? measured.status()
                               : Annotate(measured.status(), ShapesText(offered[k]));
    times.push_back(*std::move(measured));
    if (plans.size() == 1) continue;
    nlohmann::ordered_json member = {{"inputs", ShapesText(offered[k])}};
    member.update(TimesJson(times[k], plans[k]));
    context.facts()["members"].push_back(std::move(member));
  }
  if (plans.size() > 1) {
    ReportTable(offered, times, context);
    return absl::OkStatus();
  }
  context.facts() = TimesJson(times[0], plans[0]);
  context.facts()["read_ms"] = read_ms;
  ReportPlan(times[0], read_ms, context);
  return options.peers ? BenchPeers(plans[0], options, measure, context) : absl::OkStatus();
}

Action Setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("plan", options->plan, "Plan file")->required();
  AddMemberOption(app, options->shapes);
  AddLibraryPathOption(app);
  app.add_option("--threads", options->session.threads, "Threads (default: as the plan was tuned)")
      ->check(CLI::PositiveNumber);
  app.add_option("--affinity", options->session.affinity,
                 "Where they run: none (the system decides), cores, or CPUs such as 0,2-3")
      ->capture_default_str();
  app.add_option("--duration", options->duration, "How long to measure, e.g. 3s or 500ms")
      ->capture_default_str();
  app.add_flag("--baseline", options->baseline, "Also measure the unmodified graph, interleaved");
  app.add_flag("--cold", options->cold, "Evict the caches before every run");
  app.add_option("--seed", options->seed, "Seed of the random inputs")->capture_default_str();
  CLI::Option* inputs = app.add_option("--input", options->inputs,
                                       "Value of an input, NAME=FILE.npy (others: random)")
                            ->take_all();
  CLI::Option* peers =
      app.add_flag("--peers", options->peers,
                   "Also measure ONNX Runtime and OpenVINO, in turn with the plan, where a Python "
                   "has them")
          ->excludes(inputs);
  app.add_option("--peers-model", options->peer.model,
                 "The model that they run (default: the plan's baseline, written as ONNX)")
      ->needs(peers)
      ->check(CLI::ExistingFile);
  AddPythonOption(app, "--peers-python", options->peer.python);
  app.add_flag("--retune", options->session.retune,
               "Accept a plan of another machine, and use default algorithms for it");
  return [options](Context& context) { return Bench(*options, context); };
}

Command Make() { return {"bench", "Measures a plan, and the unmodified graph beside it", &Setup}; }

MENDEL_REGISTER_COMMAND(&Make);

}  // namespace
}  // namespace mendel::commands::bench
