// Admission of calls by gRPC and by the web page.
#ifndef MENDEL_SERVER_RPC_ADMIT_H_
#define MENDEL_SERVER_RPC_ADMIT_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "server/rpc/environment.h"
#include "server/rpc/roles.h"

namespace mendel::server {

/// The caller, if the table of roles allows him `method` and his rate is within the limit.
/// Unauthenticated, PermissionDenied, ResourceExhausted.
absl::StatusOr<Caller> Admit(Environment& env, const Credentials& credentials,
                             std::string_view method);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_RPC_ADMIT_H_
