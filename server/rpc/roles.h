// Roles of callers: the one table of every RPC that the server answers. A test compares it with the
// descriptors of the services.
#ifndef MENDEL_SERVER_RPC_ROLES_H_
#define MENDEL_SERVER_RPC_ROLES_H_

#include <map>
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

/// Roles of one principal by project.
struct Grants {
  Role everywhere = Role::kNobody;              ///< in every project, and on the server itself
  std::map<std::string, Role> by_project = {};  ///< "": "default"

  /// The higher one of the project's and `everywhere`.
  Role In(const std::string& project) const;
  /// The highest one anywhere.
  Role Highest() const;
};

/// "PROJECT:ROLE,..." where PROJECT may be "*", every project. A role alone is that role in the
/// project "default"; "admin" alone is "*:admin". nullopt for other texts.
std::optional<Grants> ParseGrants(std::string_view text);

/// Somebody who authenticated. Handlers take a Caller, which only EnterProject (admit.h) makes of
/// it.
struct Principal {
  std::string name;
  Grants grants = {};
  std::string trace_parent = {};  ///< of the call; server/trace_parent.h
};

/// A principal in one project.
struct Caller {
  std::string name;
  Role role = Role::kNobody;  ///< in the project
  std::string trace_parent = {};
  std::string project = {};  ///< server/store/project_name.h
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
