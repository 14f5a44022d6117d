// mendel optimize M.onnx -o M.plan [--device cuda:sm_90 --offline] [--shapes ..] [--threads N]
// [--budget 60s] [--seed N] ...
// --shapes given several times for an input: a bundle of plans.

#include <sys/time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/status.h"
#include "client/command.h"
#include "client/exit_codes.h"
#include "client/optimize_model.h"
#include "client/progress_line.h"
#include "client/progress_pipe.h"
#include "runtime/plan_bundle.h"

namespace mendel::commands::optimize {
namespace {

struct Options {
  OptimizeSettings settings;
  std::string output;
  int progress_fd = -1;
};

std::atomic<bool> interrupted = false;

/// Seconds from the first signal to the exit; a part of them is for writing the plan.
constexpr double kExitSeconds = 1.9, kLeastGrace = 0.5;
constexpr double kWrittenPerSecond = 0.8e9;  // bytes, with their hashes
/// The time that everything before the writing may take after the first signal.
itimerval grace{};

/// A plan has about as many bytes as its model. Weights in files of their own do not count.
void SetGrace(const std::string& model) {
  std::error_code missing;  // is reported by the import
  const auto bytes = std::filesystem::file_size(model, missing);
  const double writing = missing ? 0 : static_cast<double>(bytes) / kWrittenPerSecond;
  const double seconds = std::max(kLeastGrace, kExitSeconds - writing);
  grace.it_value.tv_sec = static_cast<time_t>(seconds);
  grace.it_value.tv_usec = static_cast<suseconds_t>((seconds - std::floor(seconds)) * 1e6);
}

extern "C" void OnGraceOver(int) { std::_Exit(kExitInterrupted); }

/// The first SIGINT or SIGTERM stops the search; its best so far is certified and written if the
/// grace suffices. Then, or at a second signal, the process ends with nothing written.
extern "C" void OnStopSignal(int) {
  if (interrupted.exchange(true)) std::_Exit(kExitInterrupted);
  setitimer(ITIMER_REAL, &grace, nullptr);
}

absl::Status Run(const Options& options, Context& context) {
  SetGrace(options.settings.model);
  std::signal(SIGALRM, &OnGraceOver);
  std::signal(SIGINT, &OnStopSignal);
  std::signal(SIGTERM, &OnStopSignal);
  ProgressLine line(context.json());
  ProgressPipe pipe(options.progress_fd);
  OptimizeWatcher watcher;
  watcher.progress = [&](const ProgressEvent& event) {
    line.Show(event);
    pipe.Show(event);
  };
  watcher.phase = [&](const std::string& phase) { pipe.Phase(phase); };
  watcher.warn = [&](const std::string& text) { pipe.Warn(text); };
  watcher.interrupted = &interrupted;
  const auto optimized = OptimizeModel(options.settings, watcher, context);
  line.Finish();
  MENDEL_RETURN_IF_ERROR(optimized.status());
  pipe.Phase("write");
  std::signal(SIGALRM, SIG_IGN);  // from here on there is something to save
  std::vector<Plan> plans;
  for (const OptimizeResult& result : optimized->results) plans.push_back(result.plan);
  MENDEL_RETURN_IF_ERROR(WritePlans(plans, options.output));
  MENDEL_RETURN_IF_ERROR(ReportOptimization(*optimized, options.settings, watcher, context));
  context.facts()["file"] = options.output;
  context.Line(Cat("wrote       ", options.output));
  return absl::OkStatus();
}

Action Setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("model", options->settings.model, "ONNX file")->required();
  app.add_option("-o,--output", options->output, "Plan file to write")->required();
  AddOptimizeSettings(app, options->settings);
  AddProgressOption(app, options->progress_fd);
  return [options](Context& context) { return Run(*options, context); };
}

Command Make() { return {"optimize", "Makes a faster, certified plan of an ONNX model", &Setup}; }

MENDEL_REGISTER_COMMAND(&Make);

}  // namespace
}  // namespace mendel::commands::optimize
