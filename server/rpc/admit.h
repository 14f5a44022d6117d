// Who may make a call, whatever brought it: gRPC or the web page.
#ifndef MENDEL_SERVER_RPC_ADMIT_H_
#define MENDEL_SERVER_RPC_ADMIT_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "server/rpc/environment.h"
#include "server/rpc/roles.h"

namespace mendel::server {

/// The caller, when the table of roles lets him call `method` and he has not called too often. Unauthenticated, PermissionDenied,
/// ResourceExhausted.
absl::StatusOr<Caller> Admit(Environment& env, const Credentials& credentials, std::string_view method);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_RPC_ADMIT_H_
