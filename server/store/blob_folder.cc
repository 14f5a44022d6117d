#include "server/store/blob_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/status.h"
#include "server/store/project_name.h"

namespace mendel::server {

absl::StatusOr<std::shared_ptr<BlobFolder>> BlobFolder::Open(const std::string& root,
                                                             const BlobLimits& limits,
                                                             const Clock& clock) {
  std::error_code error;
  std::filesystem::create_directories(root, error);
  if (error)
    return absl::PermissionDeniedError(Cat("cannot make the folder ", root, ": ", error.message()));
  const Fd top(open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!top.ok()) return Annotate(FileError("cannot open the blob store", errno), root);
  MENDEL_ASSIGN_OR_RETURN(std::unique_ptr<DiskProbe> probe, DiskProbe::Open(root));
  std::shared_ptr<BlobFolder> folder(new BlobFolder(root, limits, clock, std::move(probe)));
  MENDEL_ASSIGN_OR_RETURN(folder->blobs_, OpenFolder(top.get(), "blobs"));
  MENDEL_ASSIGN_OR_RETURN(folder->projects_, OpenFolder(top.get(), "projects"));
  MENDEL_ASSIGN_OR_RETURN(folder->uploads_, OpenFolder(top.get(), "uploads"));
  MENDEL_RETURN_IF_ERROR(folder->Recount().status());
  return folder;
}

absl::StatusOr<std::vector<std::string>> BlobFolder::Projects() const {
  std::vector<std::string> projects = {""};
  MENDEL_ASSIGN_OR_RETURN(const std::vector<std::string> names, Names(projects_.get()));
  for (const std::string& name : names) {
    if (IsProject(name)) projects.push_back(name);
  }
  return projects;
}

absl::StatusOr<Fd> BlobFolder::Blobs(const std::string& project, bool make) const {
  if (project.empty()) return Fd(fcntl(blobs_.get(), F_DUPFD_CLOEXEC, 0));
  if (!make) {
    const Fd folder = ExistingFolder(projects_.get(), project);
    return folder.ok() ? ExistingFolder(folder.get(), "blobs") : Fd();
  }
  MENDEL_ASSIGN_OR_RETURN(const Fd folder, OpenFolder(projects_.get(), project));
  return OpenFolder(folder.get(), "blobs");
}

absl::StatusOr<Fd> BlobFolder::Shard(const BlobId& blob) const {
  MENDEL_ASSIGN_OR_RETURN(const Fd blobs, Blobs(blob.project, true));
  return OpenFolder(blobs.get(), blob.sha256.substr(0, 2));
}

std::optional<FileInfo> BlobFolder::Find(const BlobId& blob) const {
  // Without OpenFolder, which would make the folder.
  const absl::StatusOr<Fd> blobs = Blobs(blob.project, false);
  if (!blobs.ok() || !blobs->ok()) return std::nullopt;
  const Fd shard = ExistingFolder(blobs->get(), blob.sha256.substr(0, 2));
  if (!shard.ok()) return std::nullopt;
  const std::optional<FileInfo> info = Inspect(shard.get(), blob.sha256);
  return info.has_value() && info->size == blob.size ? info : std::nullopt;
}

/// Keeps a whole blob of this size that is there already, its time renewed; false when there is
/// none.
absl::StatusOr<bool> BlobFolder::Keep(int shard, const std::string& sha256, int64_t size) const {
  const std::optional<FileInfo> found = Inspect(shard, sha256);
  const absl::StatusOr<Fd> file = OpenFile(shard, sha256, O_RDONLY);
  if (!found.has_value() || found->size != size || !file.ok()) return false;
  MENDEL_RETURN_IF_ERROR(SetTime(file->get(), clock_.WallMicros()));
  // A sweep may have set it aside before it was touched.
  const std::optional<FileInfo> now = Inspect(shard, sha256);
  return now.has_value() && now->inode == found->inode;
}

absl::Status BlobFolder::Install(int file, const std::string& upload_name, const BlobId& blob) {
  MENDEL_RETURN_IF_ERROR(SetTime(file, clock_.WallMicros()));
  if (fchmod(file, 0400) != 0) return FileError("finishing a blob", errno);
  if (fsync(file) != 0) return FileError("finishing a blob", errno);
  MENDEL_ASSIGN_OR_RETURN(const Fd shard, Shard(blob));
  MENDEL_ASSIGN_OR_RETURN(const FileInfo info, Inspect(file));
  MENDEL_ASSIGN_OR_RETURN(const bool kept, Keep(shard.get(), blob.sha256, info.size));
  const DiskProbe::Unproven unproven(*probe_);
  // A job that is about to begin may be mounting the file that is there: it must not lose its name
  // to a copy.
  if (kept) {
    if (unlinkat(uploads_.get(), upload_name.c_str(), 0) != 0)
      return FileError("finishing a blob", errno);
    Unreserve(info.size);
  } else if (renameat(uploads_.get(), upload_name.c_str(), shard.get(), blob.sha256.c_str()) != 0) {
    return FileError("finishing a blob", errno);
  }
  absl::Status synced = SyncFolder(shard.get());
  synced.Update(SyncFolder(uploads_.get()));
  synced.Update(probe_->Check());  // asked in any case: others see the blob by now
  return synced;
}

absl::Status BlobFolder::Sync(int file) const {
  return fdatasync(file) == 0 ? probe_->Check() : FileError("syncing an upload", errno);
}

absl::Status BlobFolder::Reserve(int64_t bytes) {
  const int64_t after = used_ += bytes;
  if (limits_.max_total_bytes == 0 || after <= limits_.max_total_bytes) return absl::OkStatus();
  used_ -= bytes;
  return absl::ResourceExhaustedError(
      Cat("the blob store is full: it may hold ", limits_.max_total_bytes, " bytes"));
}

BlobFolder::DiskSpace BlobFolder::Disk() const {
  struct statvfs disk {};
  if (fstatvfs(uploads_.get(), &disk) != 0) return {};
  const auto block = static_cast<int64_t>(disk.f_frsize);
  return {static_cast<int64_t>(disk.f_bavail) * block, static_cast<int64_t>(disk.f_blocks) * block};
}

absl::Status BlobFolder::Announce(int64_t bytes) {
  const int64_t all = announced_ += bytes;
  const DiskSpace disk = Disk();
  const int64_t reserve = std::min(limits_.min_free_bytes, disk.all_bytes / 10);
  std::string full;
  if (bytes > 0 && limits_.max_total_bytes > 0 && used_ + all > limits_.max_total_bytes)
    full = Cat("the blob store is full: it may hold ", limits_.max_total_bytes, " bytes, has ",
               used_.load());
  if (bytes > 0 && full.empty() && limits_.min_free_bytes > 0 && disk.all_bytes > 0 &&
      all > disk.free_bytes - reserve)
    full = Cat("the server's disk is full: ", std::max<int64_t>(0, disk.free_bytes - reserve),
               " bytes are free for uploads");
  if (full.empty()) return absl::OkStatus();
  announced_ -= bytes;
  return absl::ResourceExhaustedError(
      Cat(full, ", and open uploads need ", all,
          "; delete plans and jobs, or wait until unused files go"));
}

absl::StatusOr<int64_t> BlobFolder::Recount() {
  MENDEL_ASSIGN_OR_RETURN(const std::vector<BlobEntry> entries, ListBlobs(*this));
  int64_t total = 0;
  for (const BlobEntry& entry : entries) total += entry.blob.size;
  MENDEL_ASSIGN_OR_RETURN(const std::vector<std::string> names, Names(uploads_.get()));
  for (const std::string& name : names)
    total += Inspect(uploads_.get(), name).value_or(FileInfo{}).size;
  used_ = total;
  return total;
}

void BlobFolder::Pause(const std::string& upload_name, Paused paused) {
  constexpr size_t kMost = 256;
  const std::scoped_lock lock(mutex_);
  if (paused_.size() >= kMost) paused_.erase(paused_.begin());
  paused_[upload_name] = std::move(paused);
}

BlobFolder::Paused BlobFolder::Resume(const std::string& upload_name) {
  const std::scoped_lock lock(mutex_);
  const auto found = paused_.find(upload_name);
  if (found == paused_.end()) return {};
  Paused paused = std::move(found->second);
  paused_.erase(found);
  return paused;
}

std::optional<int64_t> BlobFolder::Committed(const std::string& upload_name) {
  const std::scoped_lock lock(mutex_);
  const auto found = committed_.find(upload_name);
  return found == committed_.end() ? std::nullopt : std::optional<int64_t>(found->second);
}

void BlobFolder::SetCommitted(const std::string& upload_name, std::optional<int64_t> bytes) {
  const std::scoped_lock lock(mutex_);
  if (bytes.has_value()) {
    committed_[upload_name] = *bytes;
  } else {
    committed_.erase(upload_name);
  }
}

}  // namespace mendel::server
