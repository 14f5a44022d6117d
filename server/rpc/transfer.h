// One upload and one download, message by message, free of gRPC.
#ifndef MENDEL_SERVER_RPC_TRANSFER_H_
#define MENDEL_SERVER_RPC_TRANSFER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "google/bytestream/bytestream.pb.h"
#include "server/options.h"
#include "server/rpc/roles.h"
#include "server/store/blob_store.h"
#include "server/store/job_store.h"

namespace mendel::server {

inline constexpr std::string_view kReadMethod = "/google.bytestream.ByteStream/Read";
inline constexpr std::string_view kWriteMethod = "/google.bytestream.ByteStream/Write";

/// Bytes of one message of a download.
inline constexpr int64_t kReadChunk = 1 << 20;

/// Not thread-safe. What was taken is made safe every 16 MiB, and when the stream ends.
class Upload {
 public:
  Upload(BlobStore& blobs, JobStore& jobs, const ServerOptions& options, Principal principal)
      : blobs_(blobs), jobs_(jobs), options_(options), principal_(std::move(principal)) {}
  ~Upload();
  /// Takes a message; true: the upload has ended (also when the file is there already, without
  /// reading on).
  absl::StatusOr<bool> Take(const google::bytestream::WriteRequest& request);
  /// The stream ended without the last message: keeps what came. InvalidArgument when nothing did.
  /// Returns true.
  absl::StatusOr<bool> Stop();
  /// Bytes that are safe.
  int64_t committed() const { return committed_; }

 private:
  absl::Status Open(const google::bytestream::WriteRequest& request);
  absl::Status Commit();
  absl::Status Finish();
  absl::Status Charge(const UploadId& upload);
  /// The file came to nothing: it does not count towards the client's quota.
  void ReturnCharge();

  BlobStore& blobs_;
  JobStore& jobs_;
  const ServerOptions& options_;
  const Principal principal_;
  std::string name_;
  BlobId blob_;
  bool complete_ = false;
  int64_t committed_ = 0;
  std::unique_ptr<BlobWriter> writer_;
};

/// Not thread-safe.
class Download {
 public:
  Download(BlobStore& blobs, Principal principal)
      : blobs_(blobs), principal_(std::move(principal)) {}
  /// Fills the next message; false at the end. The request is the same each time.
  absl::StatusOr<bool> Next(const google::bytestream::ReadRequest& request,
                            google::bytestream::ReadResponse& chunk);

 private:
  absl::Status Open(const google::bytestream::ReadRequest& request);

  BlobStore& blobs_;
  const Principal principal_;
  std::unique_ptr<BlobReader> reader_;
  int64_t offset_ = 0;
  int64_t end_ = 0;
};

}  // namespace mendel::server

#endif  // MENDEL_SERVER_RPC_TRANSFER_H_
