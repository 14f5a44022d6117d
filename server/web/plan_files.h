// Files that are made of stored plans on request: the plan's graph as an ONNX model, and the page
// of `mendel explain --html`.
//
// A plan comes from a worker and may contain anything, so that a process in the workers' sandbox
// reads it (`mendel export`, `mendel explain`), never the server. Files are made one at a time;
// the newest kKeptFiles stay in the work folder until others take their place.
#ifndef MENDEL_SERVER_WEB_PLAN_FILES_H_
#define MENDEL_SERVER_WEB_PLAN_FILES_H_

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "mendel/v1/plans.pb.h"
#include "server/clock.h"
#include "server/jobs/job_folder.h"
#include "server/jobs/job_runner.h"
#include "server/jobs/sandbox.h"
#include "server/store/blob_store.h"

namespace mendel::server {

inline constexpr size_t kKeptFiles = 4;
/// Files that may wait to be made.
inline constexpr size_t kWaitingFiles = 16;

class PlanFiles {
 public:
  enum class Kind { kOnnx, kReport };

  /// Makes nothing and starts no process before the first Get. `work_folder` is the server's.
  /// `blobs` and `clock` outlive it.
  PlanFiles(const RunnerOptions& options, const std::string& work_folder, BlobStore& blobs,
            const Clock& clock);
  ~PlanFiles();

  /// Path of the file, or nullopt while it is made: ask again. ResourceExhausted when too many
  /// wait; FailedPrecondition with a reason when it cannot be made, once: the next Get tries anew.
  absl::StatusOr<std::optional<std::string>> Get(const v1::Plan& plan, Kind kind);

 private:
  struct Entry {
    v1::Plan plan;
    Kind kind = Kind::kOnnx;
    bool ended = false;
    absl::StatusOr<std::string> path = std::string();
    std::unique_ptr<JobFolder> folder;
  };

  void Run();
  absl::StatusOr<std::string> Make(Entry& entry);
  absl::Status OpenSandbox();
  void DropOldest();

  RunnerOptions options_;
  BlobStore& blobs_;
  const Clock& clock_;
  std::unique_ptr<Sandbox> sandbox_;  ///< of the thread alone
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::unique_ptr<Entry>> entries_;
  std::deque<std::string> waiting_;
  std::deque<std::string> kept_;  ///< the oldest first
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace mendel::server

#endif  // MENDEL_SERVER_WEB_PLAN_FILES_H_
