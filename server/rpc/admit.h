// Admission of calls by gRPC and by the web page.
#ifndef MENDEL_SERVER_RPC_ADMIT_H_
#define MENDEL_SERVER_RPC_ADMIT_H_

#include <string_view>

#include "absl/status/statusor.h"
#include "server/rpc/environment.h"
#include "server/rpc/roles.h"

namespace mendel::server {

/// The principal, if the table of roles allows `method` in any project and the rate is within the
/// limit. Methods for debugging are of the whole server: they need the role in every project.
/// Unauthenticated, PermissionDenied, ResourceExhausted.
absl::StatusOr<Principal> Admit(Environment& env, const Credentials& credentials,
                                std::string_view method);

/// The principal as a caller of `method` in the project. PermissionDenied, with the same answer
/// where there is no such project.
absl::StatusOr<Caller> EnterProject(const Principal& principal, std::string_view method,
                                    const std::string& project);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_RPC_ADMIT_H_
