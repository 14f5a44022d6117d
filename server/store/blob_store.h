// Storage of bytes by content: a folder in which a file appears under its SHA-256 only when it is
// complete, checked and safe on disk.
//
//   <root>/blobs/ab/abcdef...   complete blobs, read-only
//   <root>/projects/<project>/blobs/ab/abcdef...   the same of other projects than "default"
//   <root>/uploads/<uuid>.<sha256>.<size>[.<project>]   incomplete uploads:
//                                                       the bytes written so far
//
// Projects share nothing but the disk and its limits: equal bytes are stored once a project, so
// that no answer and no time of an upload shows what another project stores.
//
// A write is flushed (fdatasync) before it is acknowledged as committed; a finished one is hashed
// while it is written (and from the start again after a restart), renamed, and its folder synced.
// Memory: one buffer a stream. Threads: different uploads and reads run side by side; one upload is
// written by one caller at a time (Aborted otherwise).
#ifndef MENDEL_SERVER_STORE_BLOB_STORE_H_
#define MENDEL_SERVER_STORE_BLOB_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mendel::server {

struct BlobId {
  std::string sha256;  ///< 64 lower-case hexadecimal digits
  int64_t size = 0;
  std::string project = {};  ///< server/store/project_name.h
};

/// 64 lower-case hexadecimal digits.
bool IsSha256(std::string_view text);
/// 8-4-4-4-12 lower-case hexadecimal digits.
bool IsUuid(std::string_view text);

/// `blobs/{sha256}/{size}` in its project, and back. InvalidArgument for anything else.
std::string BlobName(const BlobId& blob);
absl::StatusOr<BlobId> ParseBlobName(std::string_view name);
/// A text that only this content in this project has: the digest in its project.
std::string BlobKey(const BlobId& blob);
/// `uploads/{uuid}/blobs/{sha256}/{size}` in its project.
struct UploadId {
  std::string uuid;
  BlobId blob;
};
absl::StatusOr<UploadId> ParseUploadName(std::string_view name);

struct UploadStatus {
  int64_t committed = 0;
  bool complete = false;
};

struct BlobLimits {
  int64_t max_blob_bytes = int64_t{64} << 30;
  int64_t max_total_bytes = 0;  ///< of blobs and uploads together; 0: what the disk holds
  /// Room on the disk that uploads leave to jobs and the journal: at most a tenth of the disk.
  /// 0: the disk is not looked at before an upload.
  int64_t min_free_bytes = 0;
};

/// One blob open for reading; a concurrent Delete does not disturb it.
class BlobReader {
 public:
  virtual ~BlobReader() = default;
  virtual int64_t size() const = 0;
  /// Reads at most `capacity` bytes at `offset`; 0 at the end.
  virtual absl::StatusOr<int64_t> Read(int64_t offset, char* buffer, int64_t capacity) = 0;
};

/// One upload open for writing.
class BlobWriter {
 public:
  virtual ~BlobWriter() = default;
  /// Offset of the next byte.
  virtual int64_t offset() const = 0;
  /// OutOfRange beyond the announced size, ResourceExhausted on a full disk or limit (earlier bytes
  /// stay).
  virtual absl::Status Append(std::string_view bytes) = 0;
  /// Makes the appended bytes safe; Status then reports them.
  virtual absl::Status Commit() = 0;
  /// Ends the upload: the size and the hash must be the announced ones (otherwise DataLoss, and the
  /// upload is deleted).
  virtual absl::Status Finish() = 0;
};

/// A file of the store as List reports it.
struct BlobEntry {
  BlobId blob;
  int64_t touched_micros = 0;  ///< wall time of the last Touch, or of its completion
};

class BlobStore {
 public:
  virtual ~BlobStore() = default;
  virtual bool Contains(const BlobId& blob) = 0;
  /// NotFound when the upload is unknown and the blob absent; complete when the blob is there.
  virtual absl::StatusOr<UploadStatus> Status(const UploadId& upload) = 0;
  /// Opens an upload at its committed size, which must be `offset` (OutOfRange reports it
  /// otherwise). AlreadyExists when the blob is there. The bytes still to come are reserved while
  /// the upload is open: ResourceExhausted, and nothing is kept, where they do not fit.
  virtual absl::StatusOr<std::unique_ptr<BlobWriter>> OpenUpload(const UploadId& upload,
                                                                 int64_t offset) = 0;
  virtual absl::StatusOr<std::unique_ptr<BlobReader>> OpenBlob(const BlobId& blob) = 0;
  /// Path of the blob's file, for a worker's read-only view of it.
  virtual absl::StatusOr<std::string> Path(const BlobId& blob) = 0;
  /// Makes a file of this machine a blob of the project (hashed, copied, synced).
  virtual absl::StatusOr<BlobId> Adopt(const std::string& path, const std::string& project) = 0;
  /// Keeps a blob from garbage collection for the retention time from now on (FindMissingBlobs
  /// promised its existence). To promise a blob, Touch it first and then call Contains: a
  /// concurrent collection then either keeps the blob or has already deleted it.
  virtual void Touch(const BlobId& blob) = 0;
  /// Deletes blobs whose BlobKey is not in `referenced` and that were last touched before
  /// `wall_micros`, and uploads as old. Returns bytes freed.
  virtual absl::StatusOr<int64_t> Sweep(const std::set<std::string>& referenced,
                                        int64_t wall_micros) = 0;
  virtual absl::StatusOr<int64_t> TotalBytes() = 0;
  /// Bytes that are free on the store's disk.
  virtual int64_t FreeBytes() = 0;
  /// ResourceExhausted while limits or the disk leave no room for an upload; Unavailable when the
  /// disk has become read-only.
  virtual absl::Status CheckRoom() = 0;
  /// Every complete blob, sorted by project and digest.
  virtual absl::StatusOr<std::vector<BlobEntry>> List() = 0;
  /// Hashes every blob; returns one sentence per bad one.
  virtual absl::StatusOr<std::vector<std::string>> Check() = 0;
};

class Clock;
absl::StatusOr<std::unique_ptr<BlobStore>> OpenBlobStore(const std::string& root,
                                                         const BlobLimits& limits,
                                                         const Clock& clock);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_STORE_BLOB_STORE_H_
