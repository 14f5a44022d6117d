#include "server/jobs/child_process.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/status.h"

namespace mendel::server {
namespace {

constexpr int kCannotStart = 127;

/// Everything the child needs, prepared before the fork: the child may not allocate.
struct Prepared {
  std::vector<char*> words;
  std::vector<char*> environment;
  std::vector<Descriptor> descriptors;  ///< become 0, 1, 2, ...
  std::vector<sock_filter> filter;
  pid_t parent = 0;
};

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

bool NoNewFiles(int landlock) {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
  return landlock < 0 || syscall(SYS_landlock_restrict_self, landlock, 0) == 0;
}

bool SetLimits(const std::vector<std::pair<int, rlim_t>>& limits) {
  for (const auto& [resource, value] : limits) {
    const auto which = static_cast<__rlimit_resource_t>(resource);
    rlimit limit{};
    if (getrlimit(which, &limit) != 0) return false;
    limit.rlim_cur = limit.rlim_max = value < limit.rlim_max ? value : limit.rlim_max;
    if (setrlimit(which, &limit) != 0) return false;
  }
  return true;
}

bool InstallFilter(std::vector<sock_filter>& filter) {
  if (filter.empty()) return true;
  const auto self = static_cast<uint32_t>(getpid());
  for (sock_filter& instruction : filter) {
    if (instruction.k == kOwnPid) instruction.k = self;
  }
  sock_fprog program{};
  program.len = static_cast<unsigned short>(filter.size());
  program.filter = filter.data();
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

/// Runs in the child: system calls only. The seccomp filter comes last, since it may forbid the
/// others.
[[noreturn]] void Become(const ChildOptions& options, Prepared& prepared) {
  setpgid(0, 0);
  bool good = prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == prepared.parent &&
              NoNewFiles(options.landlock);
  for (const int signal : {SIGPIPE, SIGTERM, SIGINT, SIGHUP, SIGCHLD}) std::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  int target = 0;
  for (const Descriptor& source : prepared.descriptors)
    good = good && dup2(source.get(), target++) >= 0;
  good =
      good && syscall(SYS_close_range, target, ~0U, 0) == 0 && chdir(options.folder.c_str()) == 0;
  good = good && SetLimits(options.limits) && InstallFilter(prepared.filter);
  if (good) execve(prepared.words[0], prepared.words.data(), prepared.environment.data());
  _exit(kCannotStart);
}

/// A copy of `fd` with a number above all numbers of the child.
absl::Status AddDescriptor(int fd, std::vector<Descriptor>& descriptors) {
  descriptors.emplace_back(fcntl(fd, F_DUPFD_CLOEXEC, 64));
  if (!descriptors.back()) return absl::ErrnoToStatus(errno, "cannot copy a descriptor");
  return absl::OkStatus();
}

/// Parent by process, for every visible process.
std::map<pid_t, pid_t> Parents() {
  std::map<pid_t, pid_t> parents;
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", code)) {
    const std::string name = entry.path().filename();
    pid_t pid = 0;
    if (const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
        error != std::errc() || end != name.data() + name.size()) {
      continue;
    }
    std::ifstream file(entry.path() / "stat");
    std::string text;
    std::getline(file, text);
    // The format is "pid (name) state parent ...", and the name may contain anything.
    const size_t close = text.rfind(')');
    if (close == std::string::npos || close + 4 >= text.size()) continue;
    parents[pid] = static_cast<pid_t>(std::strtol(text.c_str() + close + 4, nullptr, 10));
  }
  return parents;
}

}  // namespace

void Descriptor::Close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

absl::StatusOr<std::pair<Descriptor, Descriptor>> MakePipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "cannot make a pipe");
  return std::pair(Descriptor(ends[0]), Descriptor(ends[1]));
}

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(const ChildOptions& options) {
  std::unique_ptr<ChildProcess> child(new ChildProcess());
  const Descriptor empty(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!empty) return absl::ErrnoToStatus(errno, "cannot open /dev/null");
  Prepared prepared{
      Pointers(options.words), Pointers(options.environment), {}, options.filter, getpid()};
  MENDEL_RETURN_IF_ERROR(AddDescriptor(empty.get(), prepared.descriptors));
  for (Descriptor* reading : {&child->out_, &child->error_, &child->progress_}) {
    MENDEL_ASSIGN_OR_RETURN(auto ends, MakePipe());
    if (fcntl(ends.first.get(), F_SETFL, O_NONBLOCK) != 0)
      return absl::ErrnoToStatus(errno, "cannot set up a pipe");
    MENDEL_RETURN_IF_ERROR(AddDescriptor(ends.second.get(), prepared.descriptors));
    *reading = std::move(ends.first);
  }
  for (const int fd : options.inherited)
    MENDEL_RETURN_IF_ERROR(AddDescriptor(fd, prepared.descriptors));
  child->pid_ = fork();
  if (child->pid_ < 0) return absl::ErrnoToStatus(errno, "cannot start a process");
  if (child->pid_ == 0) Become(options, prepared);
  setpgid(child->pid_, child->pid_);  // whichever of the two comes first
  child->end_ = Descriptor(static_cast<int>(syscall(SYS_pidfd_open, child->pid_, 0)));
  return child;
}

ChildProcess::~ChildProcess() {
  if (pid_ < 0 || ended_.has_value()) return;
  Kill();
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
}

void ChildProcess::Signal(int number) {
  if (pid_ < 0 || ended_.has_value()) return;
  ::kill(ProcessTree(pid_).back(), number);
}

void ChildProcess::Kill() {
  if (pid_ < 0 || ended_.has_value()) return;
  // Children of a sandbox die with it; others are in the group.
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);
}

std::optional<ExitState> ChildProcess::Poll() {
  if (ended_.has_value()) return ended_;
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      info.si_pid != pid_)
    return std::nullopt;
  // Processes left behind are killed too, while the group's number cannot be reused.
  ::kill(-pid_, SIGKILL);
  int status = 0;
  waitpid(pid_, &status, 0);
  ended_.emplace();
  if (WIFSIGNALED(status)) ended_->signal = WTERMSIG(status);
  if (WIFEXITED(status)) ended_->code = WEXITSTATUS(status);
  return ended_;
}

std::vector<pid_t> ProcessTree(pid_t pid) {
  const std::map<pid_t, pid_t> parents = Parents();
  std::vector<pid_t> tree = {pid};
  for (size_t i = 0; i < tree.size(); ++i) {
    for (const auto& [child, parent] : parents) {
      if (parent == tree[i]) tree.push_back(child);
    }
  }
  return tree;
}

int64_t PrivateBytes(const std::vector<pid_t>& processes) {
  int64_t kilobytes = 0;
  for (const pid_t pid : processes) {
    std::ifstream file(Cat("/proc/", pid, "/status"));
    for (std::string line; std::getline(file, line);) {
      for (const std::string name : {"RssAnon:", "RssShmem:"}) {
        if (line.starts_with(name))
          kilobytes += std::strtoll(line.c_str() + name.size(), nullptr, 10);
      }
    }
  }
  return kilobytes * 1024;
}

}  // namespace mendel::server
