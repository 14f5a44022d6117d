#include "server/store/utf8.h"

#include <cstdint>

namespace mendel::server {
namespace {

uint32_t ByteAt(std::string_view text, size_t at) { return static_cast<unsigned char>(text[at]); }

/// Bytes of the character at `at`; 0 when there is none.
size_t CharacterLength(std::string_view text, size_t at) {
  const uint32_t first = ByteAt(text, at);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || at + length > text.size()) return 0;
  uint32_t code = first & (0x7fU >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((ByteAt(text, at + i) & 0xc0U) != 0x80) return 0;
    code = code << 6U | (ByteAt(text, at + i) & 0x3fU);
  }
  // Each code has one spelling, surrogates have none, and nothing is beyond 0x10ffff.
  const bool shortest = length == 2 || (length == 3 ? code >= 0x800 : code >= 0x10000);
  return shortest && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff) ? length : 0;
}

}  // namespace

std::string CleanUtf8(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t length = CharacterLength(text, at);
    if (length == 0) {
      clean += '?';
      ++at;
    } else {
      clean += text.substr(at, length);
      at += length;
    }
  }
  return clean;
}

}  // namespace mendel::server
