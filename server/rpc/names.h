// Syntax of names, paths and identifiers in requests. Anything else is refused before it reaches a
// store or a disk.
#ifndef MENDEL_SERVER_RPC_NAMES_H_
#define MENDEL_SERVER_RPC_NAMES_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace mendel::server {

/// `models/{sha256}`, `plans/{sha256}` and `jobs/{uuid}` in any project. The error is a violation
/// of `field`.
absl::Status CheckModelName(std::string_view field, std::string_view name);
absl::Status CheckPlanName(std::string_view field, std::string_view name);
absl::Status CheckJobName(std::string_view field, std::string_view name);

/// A path within a model's folder: relative, parts between "/" neither empty nor "." nor ".." nor
/// longer than 255 bytes, at most 32 of them, valid UTF-8 without control characters and
/// backslashes, at most `max_bytes` long.
absl::Status CheckModelPath(std::string_view field, std::string_view path, int64_t max_bytes);

/// Printable ASCII without spaces at the ends; at most `max_bytes`. May be empty.
absl::Status CheckRequestId(std::string_view field, std::string_view id, int64_t max_bytes);

/// The text in a form for error messages: control characters and bytes that are not ASCII become
/// '?', at most 80 bytes.
std::string Quoted(std::string_view text);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_RPC_NAMES_H_
