#include "server/store/blob_store.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/status.h"
#include "server/store/blob_folder.h"
#include "server/store/project_name.h"

namespace mendel::server {
namespace {

class FileReader final : public BlobReader {
 public:
  FileReader(Fd file, int64_t size) : file_(std::move(file)), size_(size) {
    posix_fadvise(file_.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  }

  int64_t size() const override { return size_; }

  absl::StatusOr<int64_t> Read(int64_t offset, char* buffer, int64_t capacity) override {
    if (offset < 0 || capacity < 0) return InvalidInput("negative offset or capacity");
    for (;;) {
      const ssize_t got = pread(file_.get(), buffer, static_cast<size_t>(capacity), offset);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return FileError("reading a blob", errno);
      ForgetPages(file_.get(), offset, got);
      return got;
    }
  }

 private:
  const Fd file_;
  const int64_t size_;
};

class FileBlobStore final : public BlobStore {
 public:
  explicit FileBlobStore(std::shared_ptr<BlobFolder> folder) : folder_(std::move(folder)) {}

  bool Contains(const BlobId& blob) override {
    return CheckId(blob).ok() && folder_->Find(blob).has_value() && folder_->Vouch().ok();
  }

  absl::StatusOr<UploadStatus> Status(const UploadId& upload) override {
    MENDEL_RETURN_IF_ERROR(CheckUpload(upload));
    if (folder_->Find(upload.blob).has_value()) {
      MENDEL_RETURN_IF_ERROR(folder_->Vouch());
      return UploadStatus{upload.blob.size, true};
    }
    const absl::StatusOr<int64_t> bytes = UploadedBytes(*folder_, upload);
    if (bytes.ok()) return UploadStatus{*bytes, false};
    return absl::IsNotFound(bytes.status()) ? absl::NotFoundError("there is no such upload")
                                            : bytes.status();
  }

  absl::StatusOr<std::unique_ptr<BlobWriter>> OpenUpload(const UploadId& upload,
                                                         int64_t offset) override {
    MENDEL_RETURN_IF_ERROR(CheckUpload(upload));
    if (upload.blob.size > folder_->limits().max_blob_bytes) {
      return absl::ResourceExhaustedError(Cat("a blob may have ", folder_->limits().max_blob_bytes,
                                              " bytes, not ", upload.blob.size));
    }
    if (folder_->Find(upload.blob).has_value()) {
      MENDEL_RETURN_IF_ERROR(folder_->Vouch());
      return absl::AlreadyExistsError(Cat(BlobName(upload.blob), " is there"));
    }
    return OpenBlobUpload(folder_, upload, offset);
  }

  absl::StatusOr<std::unique_ptr<BlobReader>> OpenBlob(const BlobId& blob) override {
    MENDEL_RETURN_IF_ERROR(CheckId(blob));
    if (!folder_->Find(blob).has_value()) return Missing(blob);
    MENDEL_ASSIGN_OR_RETURN(const Fd shard, folder_->Shard(blob));
    absl::StatusOr<Fd> file = OpenFile(shard.get(), blob.sha256, O_RDONLY);
    if (!file.ok()) return absl::IsNotFound(file.status()) ? Missing(blob) : file.status();
    return std::make_unique<FileReader>(*std::move(file), blob.size);
  }

  absl::StatusOr<std::string> Path(const BlobId& blob) override {
    MENDEL_RETURN_IF_ERROR(CheckId(blob));
    if (!folder_->Find(blob).has_value()) return Missing(blob);
    return Cat(folder_->root(), "/", JoinName(blob.project, "blobs"), "/", blob.sha256.substr(0, 2),
               "/", blob.sha256);
  }

  absl::StatusOr<BlobId> Adopt(const std::string& path, const std::string& project) override {
    return AdoptFile(*folder_, path, project);
  }

  void Touch(const BlobId& blob) override {
    if (!CheckId(blob).ok() || !folder_->Find(blob).has_value()) return;
    const absl::StatusOr<Fd> shard = folder_->Shard(blob);
    if (!shard.ok()) return;
    const absl::StatusOr<Fd> file = OpenFile(shard->get(), blob.sha256, O_RDONLY);
    if (file.ok()) SetTime(file->get(), folder_->clock().WallMicros()).IgnoreError();
  }

  absl::StatusOr<int64_t> Sweep(const std::set<std::string>& referenced,
                                int64_t wall_micros) override {
    return SweepBlobs(*folder_, referenced, wall_micros);
  }
  absl::StatusOr<int64_t> TotalBytes() override { return folder_->Recount(); }
  int64_t FreeBytes() override { return folder_->Disk().free_bytes; }
  absl::Status CheckRoom() override {
    MENDEL_RETURN_IF_ERROR(folder_->Vouch());
    MENDEL_RETURN_IF_ERROR(folder_->Announce(1));
    folder_->Withdraw(1);
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<BlobEntry>> List() override { return ListBlobs(*folder_); }
  absl::StatusOr<std::vector<std::string>> Check() override { return CheckBlobs(*folder_); }

 private:
  static absl::Status Missing(const BlobId& blob) {
    return absl::NotFoundError(Cat("there is no ", BlobName(blob)));
  }
  /// Ids become file names: whatever way they came here, they must be well formed.
  static absl::Status CheckId(const BlobId& blob) { return ParseBlobName(BlobName(blob)).status(); }
  static absl::Status CheckUpload(const UploadId& upload) {
    const BlobId bare{upload.blob.sha256, upload.blob.size};
    return ParseUploadName(
               JoinName(upload.blob.project, Cat("uploads/", upload.uuid, "/", BlobName(bare))))
        .status();
  }

  const std::shared_ptr<BlobFolder> folder_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BlobStore>> OpenBlobStore(const std::string& root,
                                                         const BlobLimits& limits,
                                                         const Clock& clock) {
  MENDEL_ASSIGN_OR_RETURN(std::shared_ptr<BlobFolder> folder,
                          BlobFolder::Open(root, limits, clock));
  return std::make_unique<FileBlobStore>(std::move(folder));
}

}  // namespace mendel::server
