// Listing, garbage collection and checks of the store.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/match.h"
#include "base/status.h"
#include "server/store/blob_folder.h"
#include "server/store/project_name.h"

namespace mendel::server {
namespace {

bool IsDigest(const std::string& name) { return ParseBlobName(Cat("blobs/", name, "/0")).ok(); }

/// Calls `visit(project, name, folder)` for each `blobs/ab` of each project; the folder is not ok
/// where it is none.
template <class Visit>
absl::Status ForEachShard(const BlobFolder& folder, const Visit& visit) {
  MENDEL_ASSIGN_OR_RETURN(const std::vector<std::string> projects, folder.Projects());
  for (const std::string& project : projects) {
    MENDEL_ASSIGN_OR_RETURN(const Fd blobs, folder.Blobs(project, false));
    if (!blobs.ok()) continue;
    MENDEL_ASSIGN_OR_RETURN(const std::vector<std::string> shards, Names(blobs.get()));
    for (const std::string& shard : shards)
      MENDEL_RETURN_IF_ERROR(visit(project, shard, ExistingFolder(blobs.get(), shard)));
  }
  return absl::OkStatus();
}

/// Deletes one file unless it was touched in the meantime. The file is renamed, checked
/// again, and only then deleted. An earlier touch keeps it, and a later reader finds it
/// missing.
absl::StatusOr<int64_t> SweepOne(const BlobFolder& folder, int shard, const BlobId& blob,
                                 int64_t wall_micros) {
  const std::string& name = blob.sha256;
  const std::string aside = Cat(name, blob.project.empty() ? "" : ".", blob.project, ".swept");
  if (renameat(shard, name.c_str(), folder.uploads(), aside.c_str()) != 0)
    return FileError("sweeping a blob", errno);
  const std::optional<FileInfo> info = Inspect(folder.uploads(), aside);
  if (info.has_value() && info->touched_micros >= wall_micros) {
    if (renameat(folder.uploads(), aside.c_str(), shard, name.c_str()) != 0)
      return FileError("sparing a blob", errno);
    return 0;
  }
  if (unlinkat(folder.uploads(), aside.c_str(), 0) != 0) return FileError("sweeping a blob", errno);
  return info.value_or(FileInfo{}).size;
}

absl::StatusOr<int64_t> SweepUploads(BlobFolder& folder, int64_t wall_micros) {
  int64_t freed = 0;
  MENDEL_ASSIGN_OR_RETURN(const std::vector<std::string> names, Names(folder.uploads()));
  for (const std::string& name : names) {
    const std::optional<FileInfo> info = Inspect(folder.uploads(), name);
    if (!info.has_value() || info->touched_micros >= wall_micros ||
        folder.Committed(name).has_value())
      continue;
    if (unlinkat(folder.uploads(), name.c_str(), 0) == 0) freed += info->size;
  }
  return freed;
}

/// One sentence when the file does not match its name; empty when it does.
std::string CheckOne(int shard, const std::string& project, const std::string& shard_name,
                     const std::string& name) {
  const std::string shown = JoinName(project, Cat("blobs/", shard_name, "/", name));
  if (!IsDigest(name) || !absl::StartsWith(name, shard_name))
    return Cat(shown, ": not a blob's name");
  const absl::StatusOr<Fd> file = OpenFile(shard, name, O_RDONLY);
  // A file swept after the listing is no error.
  if (!file.ok())
    return absl::IsNotFound(file.status()) ? ""
                                           : Cat(shown, ": ", std::string(file.status().message()));
  const absl::StatusOr<FileInfo> info = Inspect(file->get());
  if (!info.ok()) return Cat(shown, ": ", std::string(info.status().message()));
  Sha256 hash;
  const absl::Status read = HashFile(file->get(), info->size, hash);
  if (!read.ok()) return Cat(shown, ": ", std::string(read.message()));
  const std::string found = hash.HexDigest();
  return found == name ? "" : Cat(shown, ": its bytes have the hash ", found);
}

}  // namespace

absl::StatusOr<std::vector<BlobEntry>> ListBlobs(const BlobFolder& folder) {
  std::vector<BlobEntry> entries;
  const auto visit = [&](const std::string& project, const std::string&,
                         const Fd& shard) -> absl::Status {
    if (!shard.ok()) return absl::OkStatus();
    MENDEL_ASSIGN_OR_RETURN(const std::vector<std::string> names, Names(shard.get()));
    for (const std::string& name : names) {
      const std::optional<FileInfo> info = Inspect(shard.get(), name);
      if (info.has_value() && IsDigest(name))
        entries.push_back({{name, info->size, project}, info->touched_micros});
    }
    return absl::OkStatus();
  };
  MENDEL_RETURN_IF_ERROR(ForEachShard(folder, visit));
  return entries;
}

absl::StatusOr<int64_t> SweepBlobs(BlobFolder& folder, const std::set<std::string>& referenced,
                                   int64_t wall_micros) {
  MENDEL_ASSIGN_OR_RETURN(const std::vector<BlobEntry> entries, ListBlobs(folder));
  int64_t freed = 0;
  for (const BlobEntry& entry : entries) {
    if (referenced.contains(BlobKey(entry.blob)) || entry.touched_micros >= wall_micros) continue;
    MENDEL_ASSIGN_OR_RETURN(const Fd shard, folder.Shard(entry.blob));
    MENDEL_ASSIGN_OR_RETURN(const int64_t bytes,
                            SweepOne(folder, shard.get(), entry.blob, wall_micros));
    freed += bytes;
  }
  MENDEL_ASSIGN_OR_RETURN(const int64_t uploads, SweepUploads(folder, wall_micros));
  // Other processes may write to the same folder, so the count is renewed sometimes.
  MENDEL_RETURN_IF_ERROR(folder.Recount().status());
  return freed + uploads;
}

absl::StatusOr<std::vector<std::string>> CheckBlobs(const BlobFolder& folder) {
  std::vector<std::string> violations;
  const auto visit = [&](const std::string& project, const std::string& shard_name,
                         const Fd& shard) -> absl::Status {
    if (!shard.ok()) {
      violations.push_back(JoinName(project, Cat("blobs/", shard_name)) + ": not a folder");
      return absl::OkStatus();
    }
    MENDEL_ASSIGN_OR_RETURN(const std::vector<std::string> names, Names(shard.get()));
    for (const std::string& name : names) {
      std::string violation = CheckOne(shard.get(), project, shard_name, name);
      if (!violation.empty()) violations.push_back(std::move(violation));
    }
    return absl::OkStatus();
  };
  MENDEL_RETURN_IF_ERROR(ForEachShard(folder, visit));
  return violations;
}

}  // namespace mendel::server
