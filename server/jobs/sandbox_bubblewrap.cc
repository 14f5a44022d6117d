#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "base/status.h"
#include "server/jobs/sandbox.h"
#include "server/jobs/seccomp_filter.h"

namespace mendel::server {
namespace {

constexpr const char* kProgram = "/usr/bin/bwrap";
constexpr const char* kFilterNumber = "4";

using Words = std::vector<std::string>;

void Add(Words& words, std::initializer_list<std::string> more) { words.insert(words.end(), more); }

/// /usr, its neighbors (symbolic links on merged systems, folders on others), and the loader's own
/// files.
void AddSystem(Words& words) {
  Add(words, {"--ro-bind", "/usr", "/usr"});
  for (const char* name : {"/bin", "/lib", "/lib64", "/sbin"}) {
    std::error_code code;
    const std::filesystem::path target = std::filesystem::read_symlink(name, code);
    if (!code) {
      Add(words, {"--symlink", target.string(), name});
    } else {
      Add(words, {"--ro-bind-try", name, name});
    }
  }
  for (const char* name : {"/etc/ld.so.cache", "/etc/alternatives", "/sys/devices/system/cpu",
                           "/sys/fs/cgroup/memory.max"}) {
    Add(words, {"--ro-bind-try", name, name});
  }
  Add(words, {"--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev"});
}

/// The executable's path in the sandbox; binds it there if it is not in /usr. An installed one
/// finds its libraries in ../lib.
std::string AddExecutable(const std::string& executable, Words& words) {
  if (executable.starts_with("/usr/")) return executable;
  const std::filesystem::path path(executable);
  Add(words, {"--ro-bind", executable, "/mendel/bin/mendel"});
  const std::filesystem::path libraries = path.parent_path().parent_path() / "lib";
  std::error_code code;
  if (path.parent_path().filename() == "bin" && std::filesystem::is_directory(libraries, code)) {
    Add(words, {"--ro-bind", libraries.string(), "/mendel/lib"});
  }
  return "/mendel/bin/mendel";
}

class Bubblewrap final : public Sandbox {
 public:
  explicit Bubblewrap(std::vector<sock_filter> filter) : filter_(std::move(filter)) {}

  std::string Description() const override { return "bubblewrap+seccomp"; }

  absl::StatusOr<std::unique_ptr<ChildProcess>> Start(const Launch& launch) const override {
    if (launch.retried) EndStrays(launch.folder);
    MENDEL_ASSIGN_OR_RETURN(const Descriptor filter, FilterFile());
    ChildOptions options;
    Words& words = options.words;
    words = {kProgram,     "--unshare-all", "--die-with-parent", "--new-session",
             "--hostname", "worker",        "--cap-drop",        "ALL"};
    AddSystem(words);
    const std::string executable = AddExecutable(launch.executable, words);
    for (const char* name : {"out", "cache", "tmp"})
      Add(words, {"--bind", launch.folder + "/" + name, Cat("/job/", name)});
    Add(words, {"--dir", "/job/in", "--symlink", "job/tmp", "/tmp"});
    for (const View& view : launch.views)
      Add(words, {"--ro-bind", view.source, Cat("/job/in/", view.where)});
    Add(words,
        {"--remount-ro", "/", "--chdir", "/job", "--seccomp", kFilterNumber, "--", executable});
    words.insert(words.end(), launch.arguments.begin(), launch.arguments.end());
    options.environment = {"PATH=/usr/bin", "HOME=/job/tmp", "TMPDIR=/job/tmp", "LANG=C.UTF-8"};
    if (!launch.trace_parent.empty())
      options.environment.push_back(Cat("TRACEPARENT=", launch.trace_parent));
    options.folder = "/";
    options.limits = ProcessLimits(launch.limits);
    options.inherited = {filter.get()};
    return ChildProcess::Start(options);
  }

  /// Kills bubblewraps that still name this folder: their lease is over. If a bubblewrap's parent
  /// (the server, say) is killed too early, its child waits forever. Reads all of /proc, which
  /// first attempts do not need.
  void EndStrays(const std::string& folder) const override {
    std::error_code code;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", code)) {
      const std::string name = entry.path().filename();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      std::ifstream file(entry.path() / "cmdline", std::ios::binary);
      std::string words;
      std::getline(file, words);  // a process that ends meanwhile reads as nothing
      const bool ours = words.starts_with(std::string(kProgram) + '\0') &&
                        words.find('\0' + folder + '/') != std::string::npos;
      if (ours) ::kill(static_cast<pid_t>(std::stol(name)), SIGKILL);
    }
  }

 private:
  absl::StatusOr<Descriptor> FilterFile() const {
    Descriptor file(memfd_create("filter", MFD_CLOEXEC));
    const size_t bytes = filter_.size() * sizeof(sock_filter);
    if (!file || ::write(file.get(), filter_.data(), bytes) != static_cast<ssize_t>(bytes) ||
        lseek(file.get(), 0, SEEK_SET) != 0) {
      return absl::ErrnoToStatus(errno, "cannot write the filter");
    }
    return file;
  }

  std::vector<sock_filter> filter_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Sandbox>> MakeBubblewrap() {
  if (access(kProgram, X_OK) != 0)
    return absl::FailedPreconditionError("bubblewrap is not installed");
  MENDEL_ASSIGN_OR_RETURN(std::vector<sock_filter> filter, WorkerFilter(true));
  return std::make_unique<Bubblewrap>(std::move(filter));
}

}  // namespace mendel::server
