#include "client/service/upload.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/hash.h"
#include "base/random.h"
#include "base/status.h"
#include "client/service/local_file.h"

namespace mendel {
namespace {

using google::bytestream::QueryWriteStatusRequest;
using google::bytestream::QueryWriteStatusResponse;
using google::bytestream::WriteRequest;
using google::bytestream::WriteResponse;

constexpr int64_t kChunk = 1 << 20;  // the server takes messages of 2 MiB
/// A server may take a while to notice that the client which wrote this upload is gone.
constexpr int kPatience = 4;

/// A UUID's form with the first 32 digits of a hash (version 8: custom).
std::string UuidOf(const std::string& hash) {
  return Cat(hash.substr(0, 8), "-", hash.substr(8, 4), "-8", hash.substr(13, 3), "-a",
             hash.substr(17, 3), "-", hash.substr(20, 12));
}

class BlobUpload {
 public:
  BlobUpload(Channel& channel, Retrier& retrier, const LocalFile& file, const v1::Digest& digest,
             const TransferFunction& progress, const std::string& project)
      : channel_(channel),
        retrier_(retrier),
        file_(file),
        digest_(digest),
        progress_(progress),
        project_(project),
        buffer_(kChunk) {
    Name(UploadUuid(digest));
  }

  absl::Status Run() {
    for (int refused = 0;;) {
      MENDEL_ASSIGN_OR_RETURN(const bool complete, FindOffset());
      if (complete) return absl::OkStatus();
      const CallStatus result = Send();
      if (!read_error_.ok()) return read_error_;
      if (result.ok() && committed_ == digest_.size_bytes()) return absl::OkStatus();
      const bool taken = absl::IsAborted(result.status) && ++refused <= kPatience;
      if (absl::IsAborted(result.status) && refused == kPatience + 1) {
        const auto entropy = FreshEntropy();
        Name(UuidOf(Sha256Hex(Cat(digest_.sha256(), entropy[0], "/", entropy[1]))));
        continue;
      }
      // A server that took less than everything, or whose offset is another one by now, is asked
      // again like one that went away.
      const bool moved = taken || result.ok() || absl::IsOutOfRange(result.status);
      const CallStatus again =
          moved ? CallStatus{absl::UnavailableError(
                                 "the upload was cut short or is another client's"),
                             {}}
                : result;
      if (!retrier_.Again(again)) return result.ok() ? again.status : result.status;
    }
  }

 private:
  void Name(const std::string& uuid) {
    name_ = NameIn(project_,
                   Cat("uploads/", uuid, "/blobs/", digest_.sha256(), "/", digest_.size_bytes()));
  }

  /// Asks how much is there; true when everything is.
  absl::StatusOr<bool> FindOffset() {
    QueryWriteStatusRequest request;
    request.set_resource_name(name_);
    while (true) {
      QueryWriteStatusResponse response;
      const CallStatus result = channel_.Call(request, response);
      if (result.ok() || absl::IsNotFound(result.status)) {
        const int64_t committed = result.ok() ? response.committed_size() : 0;
        if (committed > committed_) retrier_.Progress();
        committed_ = std::clamp<int64_t>(committed, 0, digest_.size_bytes());
        Report(response.complete() ? digest_.size_bytes() : committed_);
        return response.complete();
      }
      if (!retrier_.Again(result)) return result.status;
    }
  }

  CallStatus Send() {
    int64_t offset = committed_;
    bool finished = false;
    WriteResponse response;
    const auto next = [&](WriteRequest& request) {
      if (finished) return false;
      const auto count =
          file_.ReadAt(offset, buffer_.data(), std::min(kChunk, digest_.size_bytes() - offset));
      if (!count.ok() || (*count == 0 && offset < digest_.size_bytes())) {
        read_error_ =
            count.ok() ? absl::AbortedError(Cat(file_.path(), " became shorter while it was sent"))
                       : count.status();
        return false;
      }
      if (offset == committed_) request.set_resource_name(name_);
      request.set_write_offset(offset);
      request.set_data(buffer_.data(), static_cast<size_t>(*count));
      offset += *count;
      finished = offset == digest_.size_bytes();
      request.set_finish_write(finished);
      Report(offset);
      return true;
    };
    const CallStatus result = channel_.Write(next, response);
    if (result.ok()) committed_ = response.committed_size();
    return result;
  }

  void Report(int64_t done) {
    if (progress_) progress_(done, digest_.size_bytes());
  }

  Channel& channel_;
  Retrier& retrier_;
  const LocalFile& file_;
  const v1::Digest& digest_;
  const TransferFunction& progress_;
  const std::string& project_;
  std::vector<char> buffer_;
  std::string name_;
  int64_t committed_ = 0;
  absl::Status read_error_;
};

}  // namespace

std::string NameIn(const std::string& project, const std::string& rest) {
  return project.empty() ? rest : Cat("projects/", project, "/", rest);
}

std::string UploadUuid(const v1::Digest& digest) {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return UuidOf(Sha256Hex(
      Cat("mendel upload/", digest.sha256(), "/", std::string(host.data()), "/", getuid())));
}

absl::Status UploadBlob(Channel& channel, Retrier& retrier, const std::string& path,
                        const v1::Digest& digest, const TransferFunction& progress,
                        const std::string& project) {
  MENDEL_ASSIGN_OR_RETURN(const LocalFile file, LocalFile::Open(path));
  return BlobUpload(channel, retrier, file, digest, progress, project).Run();
}

}  // namespace mendel
