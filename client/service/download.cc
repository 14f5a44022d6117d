#include "client/service/download.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <string_view>

#include "base/hash.h"
#include "base/status.h"
#include "client/service/local_file.h"

namespace mendel {
namespace {

absl::StatusOr<v1::Digest> ParseBlob(std::string_view whole) {
  std::string_view name = whole;
  v1::Digest digest;
  int64_t size = -1;
  constexpr std::string_view kPrefix = "blobs/";
  // A project may stand before it.
  if (name.starts_with("projects/")) name.remove_prefix(std::min(name.find("blobs/"), name.size()));
  if (name.starts_with(kPrefix) && name.size() > kPrefix.size() + 65 &&
      name[kPrefix.size() + 64] == '/') {
    digest.set_sha256(std::string(name.substr(kPrefix.size(), 64)));
    const char* end = name.data() + name.size();
    const auto parsed = std::from_chars(name.data() + kPrefix.size() + 65, end, size);
    if (parsed.ec != std::errc() || parsed.ptr != end) size = -1;
  }
  if (size < 0 || digest.sha256().find_first_not_of("0123456789abcdef") != std::string::npos) {
    return absl::DataLossError(Cat("the server named a blob '", whole, "'"));
  }
  digest.set_size_bytes(size);
  return digest;
}

/// Reads until `digest` is complete or an attempt fails permanently.
absl::Status Fill(Channel& channel, Retrier& retrier, const std::string& blob,
                  const v1::Digest& digest, const LocalFile& part, int64_t offset, Sha256& hash,
                  const TransferFunction& progress) {
  while (offset < digest.size_bytes()) {
    google::bytestream::ReadRequest request;
    request.set_resource_name(blob);
    request.set_read_offset(offset);
    CallStatus result = channel.Read(request, [&](std::string_view data) -> absl::Status {
      if (static_cast<int64_t>(data.size()) > digest.size_bytes() - offset) {
        return absl::DataLossError("the server sent more than the blob's size");
      }
      MENDEL_RETURN_IF_ERROR(part.WriteAt(offset, data));
      hash.Update(data);
      offset += static_cast<int64_t>(data.size());
      retrier.Progress();
      if (progress) progress(offset, digest.size_bytes());
      return absl::OkStatus();
    });
    if (offset == digest.size_bytes()) break;
    if (result.ok()) result.status = absl::UnavailableError("the download was cut short");
    if (!retrier.Again(result)) return result.status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status DownloadBlob(Channel& channel, Retrier& retrier, const std::string& blob,
                          const std::string& path, const TransferFunction& progress) {
  MENDEL_ASSIGN_OR_RETURN(const v1::Digest digest, ParseBlob(blob));
  MENDEL_ASSIGN_OR_RETURN(
      const LocalFile part,
      LocalFile::OpenPart(Cat(path, ".", digest.sha256().substr(0, 12), ".part")));
  MENDEL_ASSIGN_OR_RETURN(int64_t start, part.Size());
  if (start > digest.size_bytes()) start = 0;
  // The rest of an earlier download may be damaged (a crash of the machine): then everything is
  // read anew, once.
  for (const bool resumed : {start > 0, false}) {
    if (!resumed) start = 0;
    MENDEL_RETURN_IF_ERROR(part.Truncate(start));
    Sha256 hash;
    MENDEL_RETURN_IF_ERROR(part.Hash(start, hash));
    if (progress) progress(start, digest.size_bytes());
    MENDEL_RETURN_IF_ERROR(Fill(channel, retrier, blob, digest, part, start, hash, progress));
    if (hash.HexDigest() == digest.sha256()) return part.MoveTo(path);
    if (!resumed) break;
  }
  unlink(part.path().c_str());
  return absl::DataLossError("what was downloaded does not have the blob's hash");
}

}  // namespace mendel
