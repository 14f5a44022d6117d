// Messages need valid UTF-8 text. The output of a process may have other bytes.
#ifndef MENDEL_SERVER_STORE_UTF8_H_
#define MENDEL_SERVER_STORE_UTF8_H_

#include <string>
#include <string_view>

namespace mendel::server {

/// `text` with every byte that belongs to no well-formed character (RFC 3629) replaced by '?'.
std::string CleanUtf8(std::string_view text);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_STORE_UTF8_H_
