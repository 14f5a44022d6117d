#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/status.h"
#include "server/jobs/sandbox.h"
#include "server/jobs/seccomp_filter.h"

namespace mendel::server {
namespace {

constexpr uint64_t kRead = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr uint64_t kExecute = LANDLOCK_ACCESS_FS_EXECUTE;
constexpr uint64_t kWrite = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_FILE |
                            LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
                            LANDLOCK_ACCESS_FS_MAKE_DIR;
/// Every access of the first version: what no rule grants is forbidden.
constexpr uint64_t kAll = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;

/// 0 where the kernel has no Landlock.
long LandlockVersion() {
  const long version =
      syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return version < 0 ? 0 : version;
}

/// Paths that are not there are left out: nobody can open them.
void Allow(const Descriptor& ruleset, const std::string& path, uint64_t access) {
  const Descriptor target(::open(path.c_str(), O_PATH | O_CLOEXEC));
  struct stat info {};
  if (!target || fstat(target.get(), &info) != 0) return;
  landlock_path_beneath_attr rule{};
  rule.allowed_access =
      S_ISDIR(info.st_mode)
          ? access
          : access & (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | kExecute);
  rule.parent_fd = target.get();
  syscall(SYS_landlock_add_rule, ruleset.get(), LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
}

absl::StatusOr<Descriptor> MakeRuleset(const Launch& launch) {
  landlock_ruleset_attr attributes{};
  attributes.handled_access_fs = kAll;
  Descriptor ruleset(
      static_cast<int>(syscall(SYS_landlock_create_ruleset, &attributes, sizeof(attributes), 0)));
  if (!ruleset) return absl::ErrnoToStatus(errno, "cannot make a Landlock ruleset");
  for (const char* path : {"/usr", "/bin", "/lib", "/lib64"})
    Allow(ruleset, path, kRead | kExecute);
  for (const char* path : {"/etc/ld.so.cache", "/etc/alternatives", "/sys/devices/system/cpu",
                           "/sys/fs/cgroup/memory.max", "/proc/cpuinfo", "/proc/meminfo",
                           "/dev/urandom", "/dev/zero"}) {
    Allow(ruleset, path, kRead);
  }
  Allow(ruleset, "/dev/null", kRead | LANDLOCK_ACCESS_FS_WRITE_FILE);
  Allow(ruleset, launch.executable, kRead | kExecute);
  const std::filesystem::path bin = std::filesystem::path(launch.executable).parent_path();
  if (bin.filename() == "bin") Allow(ruleset, bin.parent_path() / "lib", kRead | kExecute);
  Allow(ruleset, launch.folder + "/in", kRead);
  for (const char* name : {"out", "cache", "tmp"})
    Allow(ruleset, Cat(launch.folder, "/", name), kRead | kWrite);
  return ruleset;
}

absl::Status Copy(const View& view, const std::filesystem::path& folder) {
  const std::filesystem::path target = folder / "in" / view.where;
  std::error_code code;
  std::filesystem::create_directories(target.parent_path(), code);
  if (!code) std::filesystem::copy_file(view.source, target, code);
  return code ? absl::ErrnoToStatus(code.value(), Cat("cannot copy '", view.where, "'"))
              : absl::OkStatus();
}

class PlainSandbox final : public Sandbox {
 public:
  explicit PlainSandbox(std::vector<sock_filter> filter)
      : filter_(std::move(filter)), landlock_(LandlockVersion() > 0) {}

  std::string Description() const override {
    return landlock_ ? "rlimits+landlock+seccomp" : "rlimits+seccomp";
  }

  absl::StatusOr<std::unique_ptr<ChildProcess>> Start(const Launch& launch) const override {
    for (const View& view : launch.views) MENDEL_RETURN_IF_ERROR(Copy(view, launch.folder));
    ChildOptions options;
    options.words = {launch.executable};
    options.words.insert(options.words.end(), launch.arguments.begin(), launch.arguments.end());
    options.environment = {"PATH=/usr/bin", "HOME=tmp", "TMPDIR=tmp", "LANG=C.UTF-8"};
    if (!launch.trace_parent.empty())
      options.environment.push_back(Cat("TRACEPARENT=", launch.trace_parent));
    options.folder = launch.folder;
    options.limits = ProcessLimits(launch.limits);
    options.filter = filter_;
    Descriptor ruleset;
    if (landlock_) {
      MENDEL_ASSIGN_OR_RETURN(ruleset, MakeRuleset(launch));
      options.landlock = ruleset.get();
    }
    return ChildProcess::Start(options);
  }

  /// Nothing: its processes end with their server at any moment.
  void EndStrays(const std::string& /*folder*/) const override {}

 private:
  std::vector<sock_filter> filter_;
  bool landlock_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Sandbox>> MakePlainSandbox() {
  MENDEL_ASSIGN_OR_RETURN(std::vector<sock_filter> filter, WorkerFilter(false));
  return std::make_unique<PlainSandbox>(std::move(filter));
}

}  // namespace mendel::server
