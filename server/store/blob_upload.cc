// Writing: uploads that can be resumed, and blobs from files of this machine.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_format.h"
#include "base/random.h"
#include "base/status.h"
#include "server/store/blob_folder.h"

namespace mendel::server {
namespace {

/// Unsynced bytes above which the writer waits for the disk: too many dirty pages stall all other
/// processes.
constexpr int64_t kMostUnsynced = int64_t{32} << 20;

/// The bytes that an open upload has still to write.
class Announced {
 public:
  static absl::StatusOr<std::unique_ptr<Announced>> Make(std::shared_ptr<BlobFolder> folder,
                                                         int64_t bytes) {
    MENDEL_RETURN_IF_ERROR(folder->Announce(bytes));
    return std::unique_ptr<Announced>(new Announced(std::move(folder), bytes));
  }
  ~Announced() { folder_->Withdraw(bytes_); }
  Announced(const Announced&) = delete;
  Announced& operator=(const Announced&) = delete;
  void Wrote(int64_t bytes) {
    folder_->Withdraw(bytes);
    bytes_ -= bytes;
  }

 private:
  Announced(std::shared_ptr<BlobFolder> folder, int64_t bytes)
      : folder_(std::move(folder)), bytes_(bytes) {}
  const std::shared_ptr<BlobFolder> folder_;
  int64_t bytes_;
};

class FileWriter final : public BlobWriter {
 public:
  FileWriter(std::shared_ptr<BlobFolder> folder, std::unique_ptr<Announced> announced,
             UploadId upload, Fd file, FileInfo info, std::unique_ptr<Sha256> hash)
      : folder_(std::move(folder)),
        announced_(std::move(announced)),
        upload_(std::move(upload)),
        name_(UploadFileName(upload_)),
        file_(std::move(file)),
        inode_(info.inode),
        offset_(info.size),
        committed_(info.size),
        hash_(std::move(hash)) {
    folder_->SetCommitted(name_, committed_);
  }

  ~FileWriter() override {
    if (hash_ != nullptr) folder_->Pause(name_, {std::move(hash_), offset_, inode_});
    folder_->SetCommitted(name_, std::nullopt);
  }

  int64_t offset() const override { return offset_; }

  absl::Status Append(std::string_view bytes) override {
    if (hash_ == nullptr) return absl::FailedPreconditionError("the upload has ended");
    if (static_cast<int64_t>(bytes.size()) > upload_.blob.size - offset_) {
      return absl::OutOfRangeError(Cat("more than the announced ", upload_.blob.size, " bytes"));
    }
    MENDEL_RETURN_IF_ERROR(folder_->Reserve(static_cast<int64_t>(bytes.size())));
    while (!bytes.empty()) {
      const ssize_t written = pwrite(file_.get(), bytes.data(), bytes.size(), offset_);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) {
        const int error = errno;
        folder_->Unreserve(static_cast<int64_t>(bytes.size()));
        return FileError("writing an upload", error);
      }
      hash_->Update(bytes.substr(0, static_cast<size_t>(written)));
      bytes.remove_prefix(static_cast<size_t>(written));
      offset_ += written;
      announced_->Wrote(written);
    }
    return offset_ - committed_ >= kMostUnsynced ? Commit() : absl::OkStatus();
  }

  absl::Status Commit() override {
    if (committed_ == offset_) return absl::OkStatus();
    MENDEL_RETURN_IF_ERROR(folder_->Sync(file_.get()));
    ForgetPages(file_.get(), committed_, offset_ - committed_);
    committed_ = offset_;
    folder_->SetCommitted(name_, committed_);
    return absl::OkStatus();
  }

  absl::Status Finish() override {
    if (hash_ == nullptr) return absl::FailedPreconditionError("the upload has ended");
    const std::string found = std::exchange(hash_, nullptr)->HexDigest();
    if (offset_ == upload_.blob.size && found == upload_.blob.sha256)
      return folder_->Install(file_.get(), name_, upload_.blob);
    unlinkat(folder_->uploads(), name_.c_str(), 0);
    folder_->Unreserve(offset_);
    return absl::DataLossError(Cat("the upload has ", offset_, " bytes with the hash ", found,
                                   " and is thrown away; announced were ", upload_.blob.size,
                                   " with ", upload_.blob.sha256));
  }

 private:
  const std::shared_ptr<BlobFolder> folder_;
  const std::unique_ptr<Announced> announced_;
  const UploadId upload_;
  const std::string name_;
  const Fd file_;  // locked until it is closed
  const uint64_t inode_;
  int64_t offset_;
  int64_t committed_;
  std::unique_ptr<Sha256> hash_;  // hash of the first offset_ bytes; null once finished
};

/// The hash of an earlier writer's bytes.
absl::StatusOr<std::unique_ptr<Sha256>> HashSoFar(BlobFolder& folder, const std::string& name,
                                                  int file, const FileInfo& info) {
  BlobFolder::Paused paused = folder.Resume(name);
  if (paused.hash != nullptr && paused.offset == info.size && paused.inode == info.inode)
    return std::move(paused.hash);
  auto hash = std::make_unique<Sha256>();
  MENDEL_RETURN_IF_ERROR(HashFile(file, info.size, *hash));
  return hash;
}

/// Copies `from` to `to`; returns the bytes' name.
absl::StatusOr<BlobId> CopyHashed(BlobFolder& folder, int from, int to) {
  constexpr size_t kBuffer = size_t{1} << 20;
  const auto buffer = std::make_unique<char[]>(kBuffer);  // NOLINT(modernize-avoid-c-arrays)
  Sha256 hash;
  BlobId blob;
  for (;;) {
    const ssize_t got = pread(from, buffer.get(), kBuffer, blob.size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError("reading a file", errno);
    if (got == 0) break;
    MENDEL_RETURN_IF_ERROR(folder.Reserve(got));
    hash.Update(std::string_view(buffer.get(), static_cast<size_t>(got)));
    for (ssize_t done = 0; done < got;) {
      const ssize_t written =
          pwrite(to, buffer.get() + done, static_cast<size_t>(got - done), blob.size + done);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return FileError("copying a file", errno);
      done += written;
    }
    blob.size += got;
  }
  blob.sha256 = hash.HexDigest();
  return blob;
}

}  // namespace

std::string UploadFileName(const UploadId& upload) {
  const std::string& project = upload.blob.project;
  return Cat(upload.uuid, ".", upload.blob.sha256, ".", upload.blob.size,
             project.empty() ? "" : ".", project);
}

absl::StatusOr<std::unique_ptr<BlobWriter>> OpenBlobUpload(std::shared_ptr<BlobFolder> folder,
                                                           const UploadId& upload, int64_t offset) {
  const std::string name = UploadFileName(upload);
  MENDEL_ASSIGN_OR_RETURN(Fd file, OpenFile(folder->uploads(), name, O_RDWR | O_CREAT));
  if (flock(file.get(), LOCK_EX | LOCK_NB) != 0)
    return absl::AbortedError("the upload is being written by another call");
  // The previous owner of the lock may have finished or deleted the upload.
  MENDEL_ASSIGN_OR_RETURN(const FileInfo info, Inspect(file.get()));
  const std::optional<FileInfo> named = Inspect(folder->uploads(), name);
  if (!named.has_value() || named->inode != info.inode)
    return absl::AbortedError("the upload has just ended; request its status");
  if (offset != info.size)
    return absl::OutOfRangeError(Cat("the upload goes on at byte ", info.size, ", not ", offset));
  auto announced = Announced::Make(folder, upload.blob.size - info.size);
  if (!announced.ok()) {
    if (info.size == 0) unlinkat(folder->uploads(), name.c_str(), 0);
    return announced.status();
  }
  if (info.size == 0) MENDEL_RETURN_IF_ERROR(SyncFolder(folder->uploads()));
  MENDEL_RETURN_IF_ERROR(folder->Sync(file.get()));
  MENDEL_ASSIGN_OR_RETURN(std::unique_ptr<Sha256> hash, HashSoFar(*folder, name, file.get(), info));
  return std::make_unique<FileWriter>(std::move(folder), *std::move(announced), upload,
                                      std::move(file), info, std::move(hash));
}

absl::StatusOr<int64_t> UploadedBytes(BlobFolder& folder, const UploadId& upload) {
  const std::string name = UploadFileName(upload);
  if (const std::optional<int64_t> open = folder.Committed(name)) return *open;
  MENDEL_ASSIGN_OR_RETURN(const Fd file, OpenFile(folder.uploads(), name, O_RDWR));
  // Unsynced bytes of an earlier writer count once they are safe.
  MENDEL_RETURN_IF_ERROR(folder.Sync(file.get()));
  MENDEL_ASSIGN_OR_RETURN(const FileInfo info, Inspect(file.get()));
  return info.size;
}

absl::StatusOr<BlobId> AdoptFile(BlobFolder& folder, const std::string& path,
                                 const std::string& project) {
  MENDEL_ASSIGN_OR_RETURN(const Fd from, OpenFile(AT_FDCWD, path, O_RDONLY));
  const std::string name = absl::StrFormat("%016x.adopt", FreshEntropy()[0]);
  MENDEL_ASSIGN_OR_RETURN(const Fd to, OpenFile(folder.uploads(), name, O_RDWR | O_CREAT | O_EXCL));
  // The file is copied even where a link is possible: its writer may still have it open.
  absl::StatusOr<BlobId> blob = CopyHashed(folder, from.get(), to.get());
  if (blob.ok()) blob->project = project;
  const absl::Status status = blob.ok() ? folder.Install(to.get(), name, *blob) : blob.status();
  if (status.ok()) return blob;
  unlinkat(folder.uploads(), name.c_str(), 0);
  folder.Recount().status().IgnoreError();
  return status;
}

}  // namespace mendel::server
