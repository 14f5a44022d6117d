// Roles of callers: the one table of every RPC that the server answers. A test compares it with the
// descriptors of the services.
#ifndef MENDEL_SERVER_RPC_ROLES_H_
#define MENDEL_SERVER_RPC_ROLES_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace mendel::server {

/// Each role includes the rights of the roles before it.
enum class Role { kNobody, kReader, kSubmitter, kAdmin };

std::string_view RoleName(Role role);
/// "none", "reader", "submitter" or "admin".
std::optional<Role> ParseRole(std::string_view name);

/// An authenticated caller.
struct Caller {
  std::string name;
  Role role = Role::kNobody;
  std::string trace_parent = {};  ///< of the call; server/trace_parent.h
};

struct MethodRole {
  std::string_view method;  ///< "/package.Service/Method"
  Role role;
  bool debug = false;  ///< `--debug-role` replaces `role`
};

/// Sorted by method.
std::span<const MethodRole> MethodRoles();

/// The row of a method, or null.
const MethodRole* FindMethod(std::string_view method);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_RPC_ROLES_H_
