// Page tokens: where a listing goes on. Opaque to callers, checked when they come back.
#ifndef MENDEL_SERVER_STORE_PAGE_TOKEN_H_
#define MENDEL_SERVER_STORE_PAGE_TOKEN_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace mendel::server {

/// `listing` names what is listed, filter included: a token of one listing is no token of another.
std::string PageToken(const std::string& listing, int64_t last_id);
/// The id before which the page begins; the largest for an empty token. InvalidArgument for
/// anything that PageToken did not make.
absl::StatusOr<int64_t> ParsePageToken(const std::string& listing, const std::string& token);
/// 0: 50; more than 1,000 counts as 1,000; InvalidArgument below zero.
absl::StatusOr<int64_t> PageSize(int requested);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_STORE_PAGE_TOKEN_H_
