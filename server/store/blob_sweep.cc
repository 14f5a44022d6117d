// Listing, garbage collection and checks of the store.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/match.h"
#include "base/status.h"
#include "server/store/blob_folder.h"

namespace mendel::server {
namespace {

bool IsDigest(const std::string& name) { return ParseBlobName(Cat("blobs/", name, "/0")).ok(); }

/// Opens `blobs/ab` as it is; not ok when it is no folder.
Fd ExistingShard(const BlobFolder& folder, const std::string& name) {
  return Fd(openat(folder.blobs(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

/// Deletes one file unless it was touched in the meantime. The file is renamed, checked
/// again, and only then deleted. An earlier touch keeps it, and a later reader finds it
/// missing.
absl::StatusOr<int64_t> SweepOne(const BlobFolder& folder, int shard, const std::string& name,
                                 int64_t wall_micros) {
  const std::string aside = Cat(name, ".swept");
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
std::string CheckOne(int shard, const std::string& shard_name, const std::string& name) {
  const std::string shown = Cat("blobs/", shard_name, "/", name);
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
  MENDEL_ASSIGN_OR_RETURN(const std::vector<std::string> shards, Names(folder.blobs()));
  for (const std::string& shard_name : shards) {
    const Fd shard = ExistingShard(folder, shard_name);
    if (!shard.ok()) continue;
    MENDEL_ASSIGN_OR_RETURN(const std::vector<std::string> names, Names(shard.get()));
    for (const std::string& name : names) {
      const std::optional<FileInfo> info = Inspect(shard.get(), name);
      if (info.has_value() && IsDigest(name))
        entries.push_back({{name, info->size}, info->touched_micros});
    }
  }
  return entries;
}

absl::StatusOr<int64_t> SweepBlobs(BlobFolder& folder, const std::set<std::string>& referenced,
                                   int64_t wall_micros) {
  MENDEL_ASSIGN_OR_RETURN(const std::vector<BlobEntry> entries, ListBlobs(folder));
  int64_t freed = 0;
  for (const BlobEntry& entry : entries) {
    if (referenced.contains(entry.blob.sha256) || entry.touched_micros >= wall_micros) continue;
    MENDEL_ASSIGN_OR_RETURN(const Fd shard, folder.Shard(entry.blob.sha256));
    MENDEL_ASSIGN_OR_RETURN(const int64_t bytes,
                            SweepOne(folder, shard.get(), entry.blob.sha256, wall_micros));
    freed += bytes;
  }
  MENDEL_ASSIGN_OR_RETURN(const int64_t uploads, SweepUploads(folder, wall_micros));
  // Other processes may write to the same folder, so the count is renewed sometimes.
  MENDEL_RETURN_IF_ERROR(folder.Recount().status());
  return freed + uploads;
}

absl::StatusOr<std::vector<std::string>> CheckBlobs(const BlobFolder& folder) {
  std::vector<std::string> violations;
  MENDEL_ASSIGN_OR_RETURN(const std::vector<std::string> shards, Names(folder.blobs()));
  for (const std::string& shard_name : shards) {
    const Fd shard = ExistingShard(folder, shard_name);
    if (!shard.ok()) {
      violations.push_back(Cat("blobs/", shard_name, ": not a folder"));
      continue;
    }
    MENDEL_ASSIGN_OR_RETURN(const std::vector<std::string> names, Names(shard.get()));
    for (const std::string& name : names) {
      std::string violation = CheckOne(shard.get(), shard_name, name);
      if (!violation.empty()) violations.push_back(std::move(violation));
    }
  }
  return violations;
}

}  // namespace mendel::server
