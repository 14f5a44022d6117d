#include <algorithm>
#include <charconv>

#include "base/status.h"
#include "server/store/blob_store.h"
#include "server/store/project_name.h"

namespace mendel::server {
namespace {

bool IsHex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

/// Cuts `prefix` off, or reports that it is not there.
bool Cut(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

}  // namespace

bool IsSha256(std::string_view text) { return text.size() == 64 && IsHex(text); }

bool IsUuid(std::string_view text) {
  if (text.size() != 36) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? text[i] != '-' : !IsHex(text.substr(i, 1))) return false;
  }
  return true;
}

std::string BlobName(const BlobId& blob) {
  return JoinName(blob.project, Cat("blobs/", blob.sha256, "/", blob.size));
}

std::string BlobKey(const BlobId& blob) { return JoinName(blob.project, blob.sha256); }

absl::StatusOr<BlobId> ParseBlobName(std::string_view name) {
  const absl::Status wrong = InvalidInput(
      "'", name.substr(0, 200), "' is not blobs/{64 lower-case hexadecimal digits}/{size}");
  const NameInProject split = SplitName(name);
  std::string_view rest = split.rest;
  if (!Cut(rest, "blobs/") || rest.size() < 66 || rest[64] != '/' || !IsSha256(rest.substr(0, 64)))
    return wrong;
  BlobId blob;
  blob.project = split.project;
  blob.sha256 = rest.substr(0, 64);
  rest.remove_prefix(65);
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), blob.size);
  // One spelling only: no sign, no leading zeros.
  if (error != std::errc() || end != rest.data() + rest.size() || blob.size < 0 ||
      std::to_string(blob.size) != rest)
    return wrong;
  return blob;
}

absl::StatusOr<UploadId> ParseUploadName(std::string_view name) {
  const NameInProject split = SplitName(name);
  std::string_view rest = split.rest;
  if (!Cut(rest, "uploads/") || rest.size() < 37 || rest[36] != '/' ||
      !IsUuid(rest.substr(0, 36))) {
    return InvalidInput("'", name.substr(0, 200), "' is not uploads/{uuid}/blobs/{sha256}/{size}");
  }
  UploadId upload;
  upload.uuid = rest.substr(0, 36);
  // The upload's project is the blob's: it is named once, in front.
  if (!rest.substr(37).starts_with("blobs/")) return ParseBlobName("").status();
  MENDEL_ASSIGN_OR_RETURN(upload.blob, ParseBlobName(rest.substr(37)));
  upload.blob.project = split.project;
  return upload;
}

}  // namespace mendel::server
