#include "server/jobs/job_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "base/status.h"
#include "server/store/project_name.h"

namespace mendel::server {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolders[] = {"in", "out", "tmp", "cache"};

/// Between a job's uuid and its project in the folder's name; neither has one.
constexpr char kOfProject = '_';

/// "{uuid}" or "{uuid}_{project}" of a job; it becomes a file name.
absl::StatusOr<std::string> FolderName(const std::string& job) {
  const NameInProject split = SplitName(job);
  const std::string name = split.rest.starts_with("jobs/") ? split.rest.substr(5) : "";
  const bool good =
      !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-';
      });
  if (!good) return InvalidInput("'", job, "' is no job's name");
  return split.project.empty() ? name : Cat(name, std::string(1, kOfProject), split.project);
}

/// The job of a folder, whose name may end with a fence.
std::string JobOf(const fs::path& folder) {
  const std::string stem = folder.stem().string();
  const size_t end = stem.find(kOfProject);
  const std::string project = end == std::string::npos ? "" : stem.substr(end + 1);
  return JoinName(project, Cat("jobs/", stem.substr(0, end)));
}

absl::StatusOr<Descriptor> Lock(const fs::path& path) {
  Descriptor lock(::open((path / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock) return absl::ErrnoToStatus(errno, "cannot open a job's lock");
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
    return absl::AbortedError("an earlier attempt of the job still runs here");
  return lock;
}

/// Creates the folder and takes its lock; tries `tries` times, 100 ms apart.
absl::StatusOr<Descriptor> MakeAndLock(const fs::path& path, int tries) {
  while (true) {
    std::error_code code;
    fs::create_directories(path, code);
    if (code) return absl::ErrnoToStatus(code.value(), "cannot create a job's folder");
    absl::StatusOr<Descriptor> lock = Lock(path);
    if (!absl::IsAborted(lock.status()) || --tries == 0) return lock;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

/// Restores permissions first: the worker may have removed them.
void Remove(const fs::path& path) {
  std::error_code code;
  for (const auto& entry : fs::recursive_directory_iterator(
           path, fs::directory_options::skip_permission_denied, code)) {
    if (entry.is_directory(code) && !entry.is_symlink(code))
      fs::permissions(entry.path(), fs::perms::owner_all, code);
  }
  fs::remove_all(path, code);
}

}  // namespace

absl::StatusOr<std::unique_ptr<JobFolder>> JobFolder::Open(const std::string& work_folder,
                                                           const std::string& job, int64_t fence) {
  MENDEL_ASSIGN_OR_RETURN(const std::string name, FolderName(job));
  std::error_code code;
  fs::path path = fs::absolute(work_folder, code) / "jobs" / name;
  absl::StatusOr<Descriptor> lock = MakeAndLock(path, 10);
  if (absl::IsAborted(lock.status())) {
    path += Cat(".", fence);
    lock = MakeAndLock(path, 1);
  }
  MENDEL_RETURN_IF_ERROR(lock.status());
  std::unique_ptr<JobFolder> folder(new JobFolder(path.string(), *std::move(lock)));
  folder->Clear(true);
  for (const char* part : kFolders) {
    fs::create_directory(path / part, code);
    if (!code) fs::permissions(path / part, fs::perms::owner_all, code);
    if (code) return absl::ErrnoToStatus(code.value(), "cannot create a job's folder");
  }
  return folder;
}

JobFolder::Usage JobFolder::Used() const {
  Usage usage;
  std::error_code code;
  for (const char* part : {"out", "tmp", "cache"}) {
    for (const auto& entry : fs::recursive_directory_iterator(
             path_ + "/" + part, fs::directory_options::skip_permission_denied, code)) {
      struct stat info {};
      ++usage.files;
      if (lstat(entry.path().c_str(), &info) == 0 && S_ISREG(info.st_mode))
        usage.bytes += int64_t{info.st_blocks} * 512;
    }
  }
  return usage;
}

absl::StatusOr<std::string> JobFolder::Delivered(const std::string& name) const {
  const std::string path = path_ + "/out/" + name;
  struct stat folder {};
  struct stat file {};
  if (lstat((path_ + "/out").c_str(), &folder) != 0 || !S_ISDIR(folder.st_mode) ||
      lstat(path.c_str(), &file) != 0) {
    return absl::FailedPreconditionError("the worker delivered no file");
  }
  if (!S_ISREG(file.st_mode) || file.st_nlink != 1)
    return absl::FailedPreconditionError("the worker delivered something else than a file");
  return path;
}

void JobFolder::Clear(bool keep_cache) {
  std::error_code code;
  for (const char* part : kFolders) {
    const bool is_cache = part == kFolders[3];
    if (!(is_cache && keep_cache)) Remove(fs::path(path_) / part);
  }
  fs::remove(fs::path(path_) / "bundle.tar", code);
  if (keep_cache) return;
  fs::remove(fs::path(path_) / "lock", code);
  fs::remove(path_, code);
}

void SweepJobFolders(const std::string& work_folder,
                     const std::function<bool(const std::string& job)>& ended,
                     const std::function<void(const std::string& folder)>& leave) {
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(fs::path(work_folder) / "jobs", code)) {
    if (!ended(JobOf(entry.path()))) continue;
    const auto lock = Lock(entry.path());
    if (!lock.ok()) continue;
    leave(entry.path().string());
    Remove(entry.path());
  }
}

}  // namespace mendel::server
