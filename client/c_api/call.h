// The arguments of the C interface's calls: models, options, the stop signal and the turn of a long
// call.
#ifndef MENDEL_CLIENT_C_API_CALL_H_
#define MENDEL_CLIENT_C_API_CALL_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "client/c_api/mendel_optimizer.h"
#include "optimizer/search/progress.h"

namespace CLI {
class App;
}

struct mendel_stop {
  std::atomic<bool> requested = false;
};

namespace mendel {

/// JSON on one line. Names in facts come from models and need not be UTF-8.
std::string CompactJson(const nlohmann::ordered_json& json);

absl::Status CheckModel(const mendel_model* model);
/// The model's path, or "model".
std::string NameOf(const mendel_model& model);
/// Nullopt: the model is a file.
std::optional<std::string_view> BytesOf(const mendel_model& model);

/// The call, with defaults where it is NULL.
absl::StatusOr<mendel_call> CallOf(const mendel_call* call);
/// Parses the call's options, which end with NULL.
absl::Status ParseWords(CLI::App& app, const char* const* options);
/// The flag that stops the call; null: nothing does.
const std::atomic<bool>* StopOf(const mendel_call& call);

/// The lock of one long call. Restores ParallelFor's number of threads when destroyed.
class Turn {
 public:
  /// Waits for the lock; returns Cancelled if a stop is requested meanwhile.
  static absl::StatusOr<std::unique_ptr<Turn>> Take(const mendel_stop* stop);
  ~Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  explicit Turn(std::timed_mutex& mutex);

  std::timed_mutex& mutex_;
  int parallelism_;
};

/// Passes events on to the caller: new phases at once, others four times a second.
class Reporter {
 public:
  explicit Reporter(const mendel_call& call) : call_(call) {}
  void Show(const ProgressEvent& event);

 private:
  const mendel_call& call_;
  Stopwatch clock_;
  double shown_ = -1;
  std::string phase_;
};

}  // namespace mendel

#endif  // MENDEL_CLIENT_C_API_CALL_H_
