#include "server/rpc/admit.h"

#include <string>

#include "base/status.h"
#include "server/rpc/errors.h"
#include "server/store/project_name.h"
#include "server/trace_parent.h"

namespace mendel::server {
namespace {

Role NeededRole(const ServerOptions& options, const MethodRole& row) {
  return row.debug ? ParseRole(options.debug_role).value_or(Role::kAdmin) : row.role;
}

/// Identifies the caller unless its address sent too many unknown tokens. No token is no attempt.
absl::StatusOr<Principal> Identify(Environment& env, const Credentials& credentials) {
  absl::StatusOr<Principal> caller = env.authenticator.Identify(credentials);
  if (credentials.authorization.empty() || credentials.address.empty()) return caller;
  MENDEL_RETURN_IF_ERROR(
      env.failed_logins.Note(credentials.address, caller.ok() ? caller->name : ""));
  return caller;
}

}  // namespace

absl::StatusOr<Principal> Admit(Environment& env, const Credentials& credentials,
                                std::string_view method) {
  const MethodRole* row = FindMethod(method);
  if (row == nullptr) return InternalError("no role for ", method);
  MENDEL_ASSIGN_OR_RETURN(Principal caller, Identify(env, credentials));
  const Role needed = NeededRole(env.options, *row);
  const Role highest = caller.grants.Highest();
  if ((row->debug ? caller.grants.everywhere : highest) < needed) {
    if (highest == Role::kNobody)
      return WithReason(absl::UnauthenticatedError("a token or a certificate is needed"),
                        "NO_CREDENTIALS");
    return WithReason(absl::PermissionDeniedError(Cat("needs the role ", RoleName(needed),
                                                      row->debug ? " in every project" : "")),
                      "ROLE", {{"role", std::string(RoleName(needed))}});
  }
  MENDEL_RETURN_IF_ERROR(env.rates.Take(caller.name));
  caller.trace_parent = ValidTraceParent(credentials.trace_parent);
  return caller;
}

absl::StatusOr<Caller> EnterProject(const Principal& principal, std::string_view method,
                                    const std::string& project) {
  const MethodRole* row = FindMethod(method);
  if (row == nullptr) return InternalError("no role for ", method);
  const Role role = principal.grants.In(project);
  if (role >= row->role) return Caller{principal.name, role, principal.trace_parent, project};
  const std::string title(ProjectTitle(project));
  const std::string needed(RoleName(row->role));
  return WithReason(
      absl::PermissionDeniedError(Cat("needs the role ", needed, " in the project '", title, "'")),
      "ROLE", {{"role", needed}, {"project", title}});
}

}  // namespace mendel::server
