// A part of a graph that runs: its model, its plans by shape, and the search for better ones.
#ifndef MENDEL_CLIENT_ONNXRUNTIME_PART_RUNNER_H_
#define MENDEL_CLIENT_ONNXRUNTIME_PART_RUNNER_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/c_api/mendel_optimizer.h"
#include "client/onnxruntime/context_blob.h"
#include "client/onnxruntime/native_session.h"
#include "client/onnxruntime/part_inputs.h"
#include "client/onnxruntime/runtime_api.h"
#include "client/onnxruntime/settings.h"

namespace mendel::ort {

/// Writes a line to the session's log.
using LogLine = std::function<void(const std::string& line)>;

/// Threads may share a runner; its runs take place one after the other. Nothing is compiled before
/// the first run.
class PartRunner {
 public:
  /// `api` must outlive it.
  PartRunner(const RuntimeApi& api, ContextBlob blob, Settings settings, LogLine log);
  /// Stops a search in progress and waits for it.
  ~PartRunner();
  PartRunner(const PartRunner&) = delete;
  PartRunner& operator=(const PartRunner&) = delete;

  /// `count_threads` returns the number of threads of the session; it is called at most once, and
  /// not where the settings have a number.
  absl::Status Run(const PartInputs& inputs, const std::function<int()>& count_threads,
                   const MakeOutput& make_output);

  /// Searches a plan for the shapes that the model declares, if it declares them all and there is a
  /// budget, and returns the part with it.
  absl::StatusOr<ContextBlob> Compiled();

 private:
  using Lock = std::unique_lock<std::mutex>;
  struct Request {
    std::string shapes;
    KeptInputs inputs;
  };

  absl::Status Open(const std::function<int()>& count_threads);
  absl::Status Adopt(const mendel_program* program);
  absl::Status Select(const PartInputs& inputs);
  absl::Status RunPlan(const PartInputs& inputs, const MakeOutput& make_output);

  /// Takes a plan for new shapes from the cache, or searches it now or later.
  absl::Status Improve(Lock& lock, const std::string& shapes, const PartInputs& inputs);
  /// True if the cache has what an earlier session found for `shapes`.
  bool TakeCached(const std::string& shapes, size_t outputs);
  absl::Status Search(Lock& lock, const std::string& shapes, const PartInputs& inputs);
  void SearchLoop();
  /// Adopts the program, or leaves `shapes` to ONNX Runtime's nodes if these are faster.
  absl::Status Choose(Lock& lock, const mendel_program* program, const std::string& shapes,
                      const PartInputs& inputs);
  /// True if ONNX Runtime's nodes are faster than the plan. The lock is free at times.
  absl::StatusOr<bool> NativeIsFaster(Lock& lock, const std::string& shapes,
                                      const PartInputs& inputs);
  absl::Status MakeNative();
  /// ONNX Runtime's nodes run `shapes` from now on.
  void LeaveToNative(const std::string& shapes, size_t outputs);
  /// A path in the cache without its ending; empty without a cache.
  std::string CachePath(const std::string& shapes) const;

  const RuntimeApi& api_;
  ContextBlob blob_;
  std::string model_hash_;
  const Settings settings_;
  const LogLine log_;
  int threads_ = 0;

  std::mutex mutex_;  ///< of the members that follow
  mendel_plan* plan_ = nullptr;
  std::set<std::string> seen_;               ///< shapes, as in the option --shapes
  std::map<std::string, size_t> to_native_;  ///< shapes of ONNX Runtime's nodes; numbers of outputs
  std::unique_ptr<NativeSession> native_;
  std::deque<Request> waiting_;
  std::condition_variable changed_;
  bool closing_ = false;
  mendel_stop* const stop_;
  std::thread searcher_;
};

}  // namespace mendel::ort

#endif  // MENDEL_CLIENT_ONNXRUNTIME_PART_RUNNER_H_
