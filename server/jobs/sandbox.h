// The sandbox of a worker process: the files that it can read and write, and its rights.
//
// The worker starts in the job's folder, which contains:
//   in/...    the job's blobs, read-only, under the paths of its manifest
//   out/      its results
//   cache/    its profile cache, kept between attempts
//   tmp/      temporary files
// Both kinds have a seccomp filter (seccomp_filter.h), resource limits, no new privileges, an
// environment of four variables (five with a trace) and SIGKILL when the server dies.
//
//   bubblewrap  has namespaces of its own: the folder above, /usr read-only, no network, no other
//               processes, no /etc except the loader's files. Blobs are bind-mounted, not copied.
//   rlimits     is for machines where namespaces are not allowed. The filter forbids the network.
//               Landlock (where the kernel has it) forbids all files outside the folder, the
//               system's libraries and the processor's description. Blobs are copied, so that no
//               worker has a link to the store's own file.
//
#ifndef MENDEL_SERVER_JOBS_SANDBOX_H_
#define MENDEL_SERVER_JOBS_SANDBOX_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/jobs/child_process.h"

namespace mendel::server {

/// A file beneath in/.
struct View {
  std::string source;  ///< path of the blob
  std::string where;   ///< relative, without "." and ".."
};

struct WorkerLimits {
  int64_t memory_bytes = 0;  ///< of private writable memory
  int64_t cpu_seconds = 0;
  int64_t file_bytes = 0;  ///< file bytes of one file
};

struct Launch {
  std::string executable;
  std::vector<std::string> arguments;
  std::string folder;  ///< absolute; contains the folders above
  std::vector<View> views;
  WorkerLimits limits;
  /// An earlier attempt may have left processes in the folder: they are ended.
  bool retried = false;
  std::string trace_parent = {};  ///< the worker's TRACEPARENT; empty: none
};

/// Thread-safe.
class Sandbox {
 public:
  virtual ~Sandbox() = default;
  /// The parts of the sandbox, e.g. "bubblewrap+seccomp".
  virtual std::string Description() const = 0;
  virtual absl::StatusOr<std::unique_ptr<ChildProcess>> Start(const Launch& launch) const = 0;
  /// Ends processes that an attempt in this folder left behind. No worker may run in it.
  virtual void EndStrays(const std::string& folder) const = 0;
};

absl::StatusOr<std::unique_ptr<Sandbox>> MakeBubblewrap();
absl::StatusOr<std::unique_ptr<Sandbox>> MakePlainSandbox();

/// "bubblewrap", "rlimits" or "auto": the first with which `executable --version` runs in a job's
/// folder within `scratch`. FailedPrecondition when there is none.
absl::StatusOr<std::unique_ptr<Sandbox>> ChooseSandbox(const std::string& kind,
                                                       const std::string& executable,
                                                       const std::string& scratch);

/// The limits that a process starts with.
std::vector<std::pair<int, rlim_t>> ProcessLimits(const WorkerLimits& limits);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_JOBS_SANDBOX_H_
