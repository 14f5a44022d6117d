// The blob store's folders, and one upload in them.
#ifndef MENDEL_SERVER_STORE_BLOB_FOLDER_H_
#define MENDEL_SERVER_STORE_BLOB_FOLDER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/clock.h"
#include "server/store/blob_file.h"
#include "server/store/blob_store.h"
#include "server/store/disk_probe.h"

namespace mendel::server {

/// Shared state of the store and its uploads. Thread-safe.
class BlobFolder {
 public:
  static absl::StatusOr<std::shared_ptr<BlobFolder>> Open(const std::string& root,
                                                          const BlobLimits& limits,
                                                          const Clock& clock);

  const std::string& root() const { return root_; }
  const Clock& clock() const { return clock_; }
  const BlobLimits& limits() const { return limits_; }
  int uploads() const { return uploads_.get(); }

  /// Projects that have a folder, sorted; the first is "" ("default").
  absl::StatusOr<std::vector<std::string>> Projects() const;
  /// A project's folder `blobs`, made when it is missing (`make`), else not ok.
  absl::StatusOr<Fd> Blobs(const std::string& project, bool make) const;
  /// The folder `blobs/ab` of a digest in its project, made when it is missing.
  absl::StatusOr<Fd> Shard(const BlobId& blob) const;
  std::optional<FileInfo> Find(const BlobId& blob) const;
  /// Makes the upload's complete, checked file a blob: read-only, synced, renamed, folder synced.
  /// An existing blob stays (and counts as used now), and the upload is deleted.
  absl::Status Install(int file, const std::string& upload_name, const BlobId& blob);

  /// Writes an upload's data to the disk, and checks that the disk has accepted them.
  absl::Status Sync(int file) const;
  /// DiskProbe::Vouch, for blobs that were found.
  absl::Status Vouch() const { return probe_->Vouch(); }

  /// Counts bytes against the total limit; ResourceExhausted when they do not fit (they are then
  /// not counted).
  absl::Status Reserve(int64_t bytes);
  void Unreserve(int64_t bytes) { used_ -= bytes; }
  /// Announces bytes that an open upload will write. ResourceExhausted where limit or disk do not
  /// hold them and all others announced.
  absl::Status Announce(int64_t bytes);
  /// They are written, or will not be.
  void Withdraw(int64_t bytes) { announced_ -= bytes; }
  struct DiskSpace {
    int64_t free_bytes = 0;
    int64_t all_bytes = 0;
  };
  DiskSpace Disk() const;
  /// Counts the stored bytes anew.
  absl::StatusOr<int64_t> Recount();

  /// The hash state of a closed upload, kept so that a resumed upload is not read
  /// again.
  struct Paused {
    std::unique_ptr<Sha256> hash;
    int64_t offset = 0;
    uint64_t inode = 0;
  };
  void Pause(const std::string& upload_name, Paused paused);
  Paused Resume(const std::string& upload_name);

  /// Committed bytes of an open upload; nullopt for one that is not open in this process.
  std::optional<int64_t> Committed(const std::string& upload_name);
  void SetCommitted(const std::string& upload_name, std::optional<int64_t> bytes);

 private:
  BlobFolder(std::string root, const BlobLimits& limits, const Clock& clock,
             std::unique_ptr<DiskProbe> probe)
      : root_(std::move(root)), limits_(limits), clock_(clock), probe_(std::move(probe)) {}
  absl::StatusOr<bool> Keep(int shard, const std::string& sha256, int64_t size) const;

  const std::string root_;
  const BlobLimits limits_;
  const Clock& clock_;
  const std::unique_ptr<DiskProbe> probe_;
  Fd blobs_;     ///< of the project "default"
  Fd projects_;  ///< of the others
  Fd uploads_;
  std::atomic<int64_t> used_ = 0;
  std::atomic<int64_t> announced_ = 0;
  std::mutex mutex_;
  std::map<std::string, Paused> paused_;
  std::map<std::string, int64_t> committed_;
};

std::string UploadFileName(const UploadId& upload);
/// BlobStore::OpenUpload.
absl::StatusOr<std::unique_ptr<BlobWriter>> OpenBlobUpload(std::shared_ptr<BlobFolder> folder,
                                                           const UploadId& upload, int64_t offset);
/// The bytes written so far; NotFound for an unknown upload.
absl::StatusOr<int64_t> UploadedBytes(BlobFolder& folder, const UploadId& upload);
/// BlobStore::Adopt.
absl::StatusOr<BlobId> AdoptFile(BlobFolder& folder, const std::string& path,
                                 const std::string& project);
/// BlobStore::Sweep, List and Check.
absl::StatusOr<int64_t> SweepBlobs(BlobFolder& folder, const std::set<std::string>& referenced,
                                   int64_t wall_micros);
absl::StatusOr<std::vector<BlobEntry>> ListBlobs(const BlobFolder& folder);
absl::StatusOr<std::vector<std::string>> CheckBlobs(const BlobFolder& folder);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_STORE_BLOB_FOLDER_H_
