// One child process: started with limits, filters and descriptors, watched, and killed with its
// group.
#ifndef MENDEL_SERVER_JOBS_CHILD_PROCESS_H_
#define MENDEL_SERVER_JOBS_CHILD_PROCESS_H_

#include <linux/filter.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace mendel::server {

/// Owns a descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() { Close(); }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void Close();

 private:
  int fd_ = -1;
};

struct ChildOptions {
  std::vector<std::string> words;        ///< words[0]: path of the executable
  std::vector<std::string> environment;  ///< "NAME=value"
  std::string folder;                    ///< where it starts
  std::vector<std::pair<int, rlim_t>> limits;
  std::vector<sock_filter>
      filter;  ///< seccomp; empty: none. kOwnPid in an instruction becomes the child's process id
  int landlock = -1;           ///< ruleset; -1: none
  std::vector<int> inherited;  ///< further descriptors, as 4, 5, ...
};

/// Stands for the child's process id in ChildOptions::filter.
inline constexpr uint32_t kOwnPid = 0x7ead0b0e;

struct ExitState {
  int code = 0;    ///< meaningful when signal is 0
  int signal = 0;  ///< that ended it
};

class ChildProcess {
 public:
  /// Standard input is empty; standard output, standard error and descriptor 3 are pipes whose
  /// reading ends are here. The child gets no other descriptors, its own process group, no new
  /// privileges, and SIGKILL when the calling thread ends. Between fork and exec only system calls
  /// are made, so that threads of the server do not matter.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(const ChildOptions& options);
  /// Kills what is left and waits.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  Descriptor& out() { return out_; }
  Descriptor& error() { return error_; }
  Descriptor& progress() { return progress_; }
  /// Readable once the process has ended (for poll); none on kernels before 5.3.
  const Descriptor& end() const { return end_; }
  /// Sends a signal to the process that does the work: the last of its tree (a sandbox's own
  /// processes stand above it).
  void Signal(int number);
  /// SIGKILL to the whole group and every descendant.
  void Kill();
  /// The state once it has ended; nullopt while it runs.
  std::optional<ExitState> Poll();

 private:
  ChildProcess() = default;

  pid_t pid_ = -1;
  std::optional<ExitState> ended_;
  Descriptor out_, error_, progress_, end_;
};

/// A pipe, closed on exec: reading end, writing end.
absl::StatusOr<std::pair<Descriptor, Descriptor>> MakePipe();

/// Processes below `pid`, itself first, children after parents.
std::vector<pid_t> ProcessTree(pid_t pid);
/// Resident memory of these in bytes, shared mappings included, mapped files not; 0 for those that
/// are gone.
int64_t PrivateBytes(const std::vector<pid_t>& processes);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_JOBS_CHILD_PROCESS_H_
