// The work of `mendel optimize`, from settings to certified plans. The command and the C interface
// (mendel_optimizer.h) share it.
#ifndef MENDEL_CLIENT_OPTIMIZE_MODEL_H_
#define MENDEL_CLIENT_OPTIMIZE_MODEL_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/command.h"
#include "client/model_options.h"
#include "optimizer/pipeline.h"
#include "optimizer/search/progress.h"
#include "runtime/offline_device.h"
#include "runtime/plan.h"

namespace mendel {

inline constexpr std::string_view kAutomaticLimit = "auto";

/// The options of the command line, by their names there.
struct OptimizeSettings {
  std::string model;  ///< a path, or the name of import.bytes
  ModelOptions import;
  int threads = 0;
  std::string affinity = OptimizeOptions().affinity;
  std::string backend = "cpu";
  bool offline = false;
  std::string budget = std::string(kAutomaticLimit);
  std::string certify_limit = std::string(kAutomaticLimit);
  std::string gate_limit = std::string(kAutomaticLimit);
  std::string numerics = "default";
  std::string weights = "exact";
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
};

/// Declares all settings but `model`. `settings` must outlive the parsing of the command line.
void AddOptimizeSettings(CLI::App& app, OptimizeSettings& settings);

/// Callbacks of the optimizing thread; empty ones are not called.
struct OptimizeWatcher {
  ProgressFunction progress;
  std::function<void(const std::string& phase)> phase;
  std::function<void(const std::string& text)> warn;
  /// Stops the search when it becomes true; the best program so far is certified.
  const std::atomic<bool>* interrupted = nullptr;
};

struct Optimized {
  std::vector<OptimizeResult> results;  ///< one for each set of shapes
  std::vector<NamedShapes> shapes;
  std::unique_ptr<OfflineDevice> device;  ///< null: measured on this machine
  std::vector<std::string> kernels;       ///< descriptions, where `device` is set
  double budget_seconds = 0;
};

/// Imports, optimizes and certifies. Changes the number of threads of ParallelFor if the settings
/// name one. Errors: those of ImportModel and OptimizeBundle; InvalidArgument for a setting.
absl::StatusOr<Optimized> OptimizeModel(const OptimizeSettings& settings,
                                        const OptimizeWatcher& watcher, Context& context);

/// Reports every member as `mendel optimize` does.
absl::Status ReportOptimization(const Optimized& optimized, const OptimizeSettings& settings,
                                const OptimizeWatcher& watcher, Context& context);

}  // namespace mendel

#endif  // MENDEL_CLIENT_OPTIMIZE_MODEL_H_
