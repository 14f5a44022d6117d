#include "server/rpc/admit.h"

#include <string>

#include "base/status.h"
#include "server/rpc/errors.h"
#include "server/trace_parent.h"

namespace mendel::server {
namespace {

Role NeededRole(const ServerOptions& options, const MethodRole& row) {
  return row.debug ? ParseRole(options.debug_role).value_or(Role::kAdmin) : row.role;
}

/// The caller, if his address may still try tokens. A call without a token is no attempt.
absl::StatusOr<Caller> Identify(Environment& env, const Credentials& credentials) {
  absl::StatusOr<Caller> caller = env.authenticator.Identify(credentials);
  if (credentials.authorization.empty() || credentials.address.empty()) return caller;
  MENDEL_RETURN_IF_ERROR(
      env.failed_logins.Note(credentials.address, caller.ok() ? caller->name : ""));
  return caller;
}

}  // namespace

absl::StatusOr<Caller> Admit(Environment& env, const Credentials& credentials,
                             std::string_view method) {
  const MethodRole* row = FindMethod(method);
  if (row == nullptr) return InternalError("no role for ", method);
  MENDEL_ASSIGN_OR_RETURN(Caller caller, Identify(env, credentials));
  const Role needed = NeededRole(env.options, *row);
  if (caller.role < needed) {
    if (caller.role == Role::kNobody)
      return WithReason(absl::UnauthenticatedError("a token or a certificate is needed"),
                        "NO_CREDENTIALS");
    return WithReason(absl::PermissionDeniedError(Cat("needs the role ", RoleName(needed))), "ROLE",
                      {{"role", std::string(RoleName(needed))}});
  }
  MENDEL_RETURN_IF_ERROR(env.rates.Take(caller.name));
  caller.trace_parent = ValidTraceParent(credentials.trace_parent);
  return caller;
}

}  // namespace mendel::server
