// Text that goes into messages must be UTF-8; what processes print need not be.
#ifndef MENDEL_SERVER_STORE_UTF8_H_
#define MENDEL_SERVER_STORE_UTF8_H_

#include <string>
#include <string_view>

namespace mendel::server {

/// `text` with every byte that belongs to no well-formed character (RFC 3629) replaced by '?'.
std::string CleanUtf8(std::string_view text);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_STORE_UTF8_H_
