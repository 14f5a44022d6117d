#include "server/rpc/transfer.h"

#include <algorithm>

#include "base/status.h"
#include "server/rpc/admit.h"
#include "server/rpc/errors.h"

namespace mendel::server {
namespace {

constexpr int64_t kCommitEvery = 16 << 20;

}  // namespace

Upload::~Upload() {
  // A call that was cut off: what it brought is kept as far as it can be, and its status has nobody
  // to go to.
  if (writer_ != nullptr) (void)writer_->Commit();
}

absl::Status Upload::Charge(const UploadId& upload) {
  const int64_t limit = options_.max_stored_bytes_per_client;
  if (limit == 0 || blobs_.Contains(upload.blob)) return absl::OkStatus();
  const absl::Status status =
      jobs_.ChargeUpload(principal_.name, BlobKey(upload.blob), upload.blob.size, limit);
  return status.GetPayload(kQuotaFull) ? WithReason(status, "CLIENT_QUOTA") : status;
}

void Upload::ReturnCharge() {
  if (options_.max_stored_bytes_per_client == 0) return;
  // Garbage collection does it later if the store is away.
  jobs_.ForgetUpload(principal_.name, BlobKey(blob_)).IgnoreError();
}

absl::Status Upload::Open(const google::bytestream::WriteRequest& request) {
  const absl::StatusOr<UploadId> upload = ParseUploadName(request.resource_name());
  if (!upload.ok())
    return FieldError("resource_name", "is not uploads/{uuid}/blobs/{sha256}/{size}");
  MENDEL_RETURN_IF_ERROR(EnterProject(principal_, kWriteMethod, upload->blob.project).status());
  if (upload->blob.size > options_.max_blob_bytes) {
    return FieldError("resource_name",
                      Cat("a file of more than ", options_.max_blob_bytes, " bytes"));
  }
  if (request.write_offset() < 0) return FieldError("write_offset", "is negative");
  name_ = request.resource_name();
  blob_ = upload->blob;
  MENDEL_RETURN_IF_ERROR(Charge(*upload));
  absl::StatusOr<std::unique_ptr<BlobWriter>> writer =
      blobs_.OpenUpload(*upload, request.write_offset());
  if (absl::IsAlreadyExists(writer.status())) {
    complete_ = true;
    committed_ = blob_.size;
    return absl::OkStatus();
  }
  // Nothing of an upload that does not fit is kept from its first byte on.
  if (absl::IsResourceExhausted(writer.status()) && request.write_offset() == 0) ReturnCharge();
  MENDEL_RETURN_IF_ERROR(writer.status());
  writer_ = *std::move(writer);
  committed_ = writer_->offset();
  return absl::OkStatus();
}

absl::Status Upload::Commit() {
  MENDEL_RETURN_IF_ERROR(writer_->Commit());
  committed_ = writer_->offset();
  return absl::OkStatus();
}

absl::Status Upload::Finish() {
  const std::unique_ptr<BlobWriter> writer = std::move(writer_);
  const absl::Status status = writer->Finish();
  if (absl::IsDataLoss(status)) ReturnCharge();
  MENDEL_RETURN_IF_ERROR(status);
  committed_ = blob_.size;
  return absl::OkStatus();
}

absl::StatusOr<bool> Upload::Take(const google::bytestream::WriteRequest& request) {
  if (static_cast<int64_t>(request.data().size()) > options_.max_chunk_bytes) {
    return FieldError("data", Cat("more than ", options_.max_chunk_bytes, " bytes in one message"));
  }
  if (name_.empty()) MENDEL_RETURN_IF_ERROR(Open(request));
  if (complete_) return true;
  if (!request.resource_name().empty() && request.resource_name() != name_) {
    return FieldError("resource_name", "differs from the first message's");
  }
  if (request.write_offset() != writer_->offset())
    return FieldError("write_offset", Cat("is not ", writer_->offset()));
  MENDEL_RETURN_IF_ERROR(writer_->Append(request.data()));
  if (request.finish_write()) {
    MENDEL_RETURN_IF_ERROR(Finish());
    return true;
  }
  if (writer_->offset() - committed_ >= kCommitEvery) MENDEL_RETURN_IF_ERROR(Commit());
  return false;
}

absl::StatusOr<bool> Upload::Stop() {
  if (name_.empty()) return FieldError("resource_name", "the stream brought no message");
  if (writer_ != nullptr) MENDEL_RETURN_IF_ERROR(Commit());
  writer_.reset();
  return true;
}

absl::Status Download::Open(const google::bytestream::ReadRequest& request) {
  const absl::StatusOr<BlobId> blob = ParseBlobName(request.resource_name());
  if (!blob.ok()) return FieldError("resource_name", "is not blobs/{sha256}/{size}");
  MENDEL_RETURN_IF_ERROR(EnterProject(principal_, kReadMethod, blob->project).status());
  if (request.read_offset() < 0) return FieldError("read_offset", "is negative");
  if (request.read_limit() < 0) return FieldError("read_limit", "is negative");
  MENDEL_ASSIGN_OR_RETURN(reader_, blobs_.OpenBlob(*blob));
  if (request.read_offset() > reader_->size())
    return absl::OutOfRangeError(Cat("the file has ", reader_->size(), " bytes"));
  offset_ = request.read_offset();
  end_ = reader_->size();
  if (request.read_limit() > 0)
    end_ = std::min(end_, offset_ + std::min(request.read_limit(), end_ - offset_));
  return absl::OkStatus();
}

absl::StatusOr<bool> Download::Next(const google::bytestream::ReadRequest& request,
                                    google::bytestream::ReadResponse& chunk) {
  if (reader_ == nullptr) MENDEL_RETURN_IF_ERROR(Open(request));
  if (offset_ >= end_) return false;
  std::string& data = *chunk.mutable_data();
  data.resize(static_cast<size_t>(std::min(kReadChunk, end_ - offset_)));
  MENDEL_ASSIGN_OR_RETURN(const int64_t got,
                          reader_->Read(offset_, data.data(), static_cast<int64_t>(data.size())));
  if (got <= 0) return absl::DataLossError("the file ended early");
  data.resize(static_cast<size_t>(got));
  offset_ += got;
  return true;
}

}  // namespace mendel::server
