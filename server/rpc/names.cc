#include "server/rpc/names.h"

#include <algorithm>
#include <cstddef>

#include "base/status.h"
#include "server/rpc/errors.h"
#include "server/store/blob_store.h"
#include "server/store/project_name.h"

namespace mendel::server {
namespace {

constexpr int kMaxPathParts = 32;
constexpr size_t kMaxPartBytes = 255;

bool HasPrefix(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

/// Length of the well-formed UTF-8 sequence at the start of `text`; 0 when there is none (RFC 3629:
/// no surrogates, no overlong forms).
size_t Utf8Length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return 1;
  const size_t length = byte(0) >= 0xF0 ? 4 : byte(0) >= 0xE0 ? 3 : 2;
  if (byte(0) < 0xC2 || byte(0) > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  if (byte(0) == 0xE0 && byte(1) < 0xA0) return 0;
  if (byte(0) == 0xED && byte(1) > 0x9F) return 0;
  if (byte(0) == 0xF0 && byte(1) < 0x90) return 0;
  if (byte(0) == 0xF4 && byte(1) > 0x8F) return 0;
  return length;
}

bool IsCleanText(std::string_view text) {
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    if (length == 0) return false;
    if (length == 1 &&
        (static_cast<unsigned char>(text[0]) < 0x20 || text[0] == 0x7F || text[0] == '\\'))
      return false;
    text.remove_prefix(length);
  }
  return true;
}

absl::Status CheckHashName(std::string_view field, std::string_view name, std::string_view prefix) {
  const std::string rest = SplitName(name).rest;
  if (HasPrefix(rest, prefix) && IsSha256(std::string_view(rest).substr(prefix.size())))
    return absl::OkStatus();
  return FieldError(field, Cat("'", Quoted(name), "' is not ", prefix, "{sha256}"));
}

}  // namespace

absl::Status CheckModelName(std::string_view field, std::string_view name) {
  return CheckHashName(field, name, "models/");
}

absl::Status CheckPlanName(std::string_view field, std::string_view name) {
  return CheckHashName(field, name, "plans/");
}

absl::Status CheckJobName(std::string_view field, std::string_view name) {
  const std::string rest = SplitName(name).rest;
  if (HasPrefix(rest, "jobs/") && IsUuid(rest.substr(5))) return absl::OkStatus();
  return FieldError(field, Cat("'", Quoted(name), "' is not jobs/{uuid}"));
}

absl::Status CheckModelPath(std::string_view field, std::string_view path, int64_t max_bytes) {
  const auto wrong = [&](std::string_view why) {
    return FieldError(field, Cat("path '", Quoted(path), "' ", why));
  };
  if (path.empty()) return FieldError(field, "the path is empty");
  if (static_cast<int64_t>(path.size()) > max_bytes)
    return wrong(Cat("has more than ", max_bytes, " bytes"));
  if (!IsCleanText(path))
    return wrong("contains control characters, backslashes or bytes that are not UTF-8");
  int parts = 0;
  for (std::string_view rest = path;;) {
    const size_t slash = rest.find('/');
    const std::string_view part = rest.substr(0, slash);
    if (part.empty()) return wrong("is absolute or has an empty part");
    if (part == "." || part == "..") return wrong("has a part '.' or '..'");
    if (part.size() > kMaxPartBytes) return wrong("has a part of more than 255 bytes");
    if (++parts > kMaxPathParts) return wrong("has more than 32 parts");
    if (slash == std::string_view::npos) return absl::OkStatus();
    rest.remove_prefix(slash + 1);
  }
}

absl::Status CheckRequestId(std::string_view field, std::string_view id, int64_t max_bytes) {
  if (static_cast<int64_t>(id.size()) > max_bytes)
    return FieldError(field, Cat("has more than ", max_bytes, " bytes"));
  if (!std::all_of(id.begin(), id.end(), [](char c) { return c > 0x20 && c < 0x7F; })) {
    return FieldError(field, "contains other characters than printable ASCII ones");
  }
  return absl::OkStatus();
}

std::string Quoted(std::string_view text) {
  std::string result(text.substr(0, 80));
  for (char& c : result) {
    if (c < 0x20 || c >= 0x7F) c = '?';
  }
  if (text.size() > 80) result += "...";
  return result;
}

}  // namespace mendel::server
