// mendel bench M.plan [--threads N] [--duration 3s] [--baseline] [--json]

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/status.h"
#include "client/command.h"
#include "client/format.h"
#include "runtime/measure.h"
#include "runtime/session.h"

namespace mendel {
namespace {

struct Options {
  std::string plan;
  std::string duration = "3s";
  bool baseline = false;
  bool cold = false;
  uint64_t seed = 1;
  SessionOptions session;
};

std::string TimingLine(const std::string& what, const Timing& timing) {
  return Cat(what, "  median ", Decimals(timing.median_ms, 3), " ms  min ", Decimals(timing.min_ms, 3), " ms  p90 ",
             Decimals(timing.p90_ms, 3), " ms  (", timing.runs, " runs)");
}

absl::Status Bench(const Options& options, Context& context) {
  context.Input(options.plan);
  MeasureOptions measure;
  MENDEL_ASSIGN_OR_RETURN(measure.min_seconds, ParseDuration(options.duration));
  measure.max_seconds = std::max(measure.max_seconds, 2 * measure.min_seconds);
  measure.cold = options.cold;
  MENDEL_ASSIGN_OR_RETURN(const Plan plan, ReadPlan(options.plan));
  MENDEL_ASSIGN_OR_RETURN(const auto session, Session::Create(plan, options.session));
  std::vector<Executable*> executables = {&session->executable()};
  std::unique_ptr<Session> baseline;
  if (options.baseline) {
    SessionOptions baseline_options = options.session;
    baseline_options.baseline = true;
    MENDEL_ASSIGN_OR_RETURN(baseline, Session::Create(plan, baseline_options));
    executables.push_back(&baseline->executable());
  }
  const std::vector<Tensor> inputs = RandomInputs(plan.graph, options.seed);
  MENDEL_ASSIGN_OR_RETURN(const auto timings, MeasureInterleaved(executables, plan.graph, inputs, measure));

  nlohmann::ordered_json& facts = context.facts();
  facts = TimingJson(timings[0]);
  facts["threads"] = session->threads();
  facts["backend"] = plan.info.target().backend();
  context.Line(TimingLine("plan    ", timings[0]));
  if (options.baseline) {
    const double speedup = timings[0].median_ms > 0 ? timings[1].median_ms / timings[0].median_ms : 1.0;
    facts["baseline"] = TimingJson(timings[1]);
    facts["speedup"] = speedup;
    context.Line(TimingLine("baseline", timings[1]));
    context.Line(Cat("speed-up  ", Decimals(speedup, 2)));
  }
  return absl::OkStatus();
}

Action Setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("plan", options->plan, "Plan file")->required();
  app.add_option("--threads", options->session.threads, "Threads (default: as the plan was tuned)")->check(CLI::PositiveNumber);
  app.add_option("--duration", options->duration, "How long to measure, e.g. 3s or 500ms")->capture_default_str();
  app.add_flag("--baseline", options->baseline, "Also measure the unmodified graph, interleaved");
  app.add_flag("--cold", options->cold, "Evict the caches before every run");
  app.add_option("--seed", options->seed, "Seed of the random inputs")->capture_default_str();
  app.add_flag("--retune", options->session.retune, "Accept a plan of another machine, with default algorithms");
  return [options](Context& context) { return Bench(*options, context); };
}

Command Make() { return {"bench", "Measures a plan, and the unmodified graph beside it", &Setup}; }

MENDEL_REGISTER_COMMAND(&Make);

}  // namespace
}  // namespace mendel
