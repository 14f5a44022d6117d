// A part of a graph that runs: its model, its plans by shape, and the search for better ones.
#ifndef MENDEL_CLIENT_ONNXRUNTIME_PART_RUNNER_H_
#define MENDEL_CLIENT_ONNXRUNTIME_PART_RUNNER_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/c_api/mendel_optimizer.h"
#include "client/onnxruntime/context_blob.h"
#include "client/onnxruntime/settings.h"

namespace mendel::ort {

/// Inputs at hand; `shapes[k]` has `ranks[k]` extents.
struct PartInputs {
  std::vector<int> ranks;
  std::vector<const int64_t*> shapes;
  std::vector<const void*> data;
};

/// Returns the buffer of output `index` with this shape, or NULL.
using MakeOutput = std::function<void*(int index, std::span<const int64_t> shape)>;

/// Writes a line to the session's log.
using LogLine = std::function<void(const std::string& line)>;

/// Threads may share a runner; its runs take place one after the other. Nothing is compiled before
/// the first run.
class PartRunner {
 public:
  PartRunner(ContextBlob blob, Settings settings, LogLine log);
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
  absl::Status Open(const std::function<int()>& count_threads);
  absl::Status AdoptBytes(const std::string& plan);
  absl::Status Adopt(const mendel_program* program);
  /// Takes a plan for new shapes from the cache, or searches it now or later.
  absl::Status Improve(const PartInputs& inputs);
  absl::Status Search(const std::string& shapes);
  std::string CachePath(const std::string& shapes) const;
  void SearchLoop();

  ContextBlob blob_;
  std::string model_hash_;
  const Settings settings_;
  const LogLine log_;
  int threads_ = 0;

  std::mutex mutex_;  ///< of the members that follow
  mendel_plan* plan_ = nullptr;
  std::set<std::string> seen_;  ///< shapes, as in the option --shapes
  std::deque<std::string> waiting_;
  std::condition_variable changed_;
  bool closing_ = false;
  mendel_stop* const stop_;
  std::thread searcher_;
};

}  // namespace mendel::ort

#endif  // MENDEL_CLIENT_ONNXRUNTIME_PART_RUNNER_H_
