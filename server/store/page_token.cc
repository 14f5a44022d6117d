#include "server/store/page_token.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "absl/strings/str_format.h"
#include "base/hash.h"
#include "base/status.h"

namespace mendel::server {
namespace {

constexpr size_t kDigits = 16;

std::string Seal(const std::string& listing, const std::string& id) {
  return Sha256Hex(Cat("page\n", id, "\n", listing)).substr(0, kDigits);
}

}  // namespace

std::string PageToken(const std::string& listing, int64_t last_id) {
  const std::string id = absl::StrFormat("%016x", last_id);
  return id + Seal(listing, id);
}

absl::StatusOr<int64_t> ParsePageToken(const std::string& listing, const std::string& token) {
  if (token.empty()) return std::numeric_limits<int64_t>::max();
  const std::string id = token.substr(0, kDigits);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), value, 16);
  if (token.size() != 2 * kDigits || error != std::errc() || end != id.data() + kDigits ||
      token.substr(kDigits) != Seal(listing, id)) {
    return InvalidInput(
        "page_token: not a token of this listing; fields other than page_size must not change "
        "between pages");
  }
  return value;
}

absl::StatusOr<int64_t> PageSize(int requested) {
  if (requested < 0) return InvalidInput("page_size: ", requested, " is negative");
  return requested == 0 ? 50 : std::min(requested, 1000);
}

}  // namespace mendel::server
