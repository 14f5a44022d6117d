#include "server/rpc/roles.h"

#include <algorithm>
#include <array>

#include "server/store/project_name.h"

namespace mendel::server {
namespace {

constexpr Role kAnyone = Role::kNobody;
constexpr Role kReader = Role::kReader;
constexpr Role kSubmitter = Role::kSubmitter;
constexpr Role kAdmin = Role::kAdmin;

constexpr std::array kMethods = {
    MethodRole{"/google.bytestream.ByteStream/QueryWriteStatus", kSubmitter},
    MethodRole{"/google.bytestream.ByteStream/Read", kReader},
    MethodRole{"/google.bytestream.ByteStream/Write", kSubmitter},
    MethodRole{"/google.longrunning.Operations/CancelOperation", kSubmitter},
    MethodRole{"/google.longrunning.Operations/DeleteOperation", kSubmitter},
    MethodRole{"/google.longrunning.Operations/GetOperation", kReader},
    MethodRole{"/google.longrunning.Operations/ListOperations", kReader},
    MethodRole{"/google.longrunning.Operations/WaitOperation", kReader},
    MethodRole{"/grpc.channelz.v1.Channelz/GetChannel", kAdmin, true},
    MethodRole{"/grpc.channelz.v1.Channelz/GetServer", kAdmin, true},
    MethodRole{"/grpc.channelz.v1.Channelz/GetServerSockets", kAdmin, true},
    MethodRole{"/grpc.channelz.v1.Channelz/GetServers", kAdmin, true},
    MethodRole{"/grpc.channelz.v1.Channelz/GetSocket", kAdmin, true},
    MethodRole{"/grpc.channelz.v1.Channelz/GetSubchannel", kAdmin, true},
    MethodRole{"/grpc.channelz.v1.Channelz/GetTopChannels", kAdmin, true},
    MethodRole{"/grpc.health.v1.Health/Check", kAnyone},
    MethodRole{"/grpc.health.v1.Health/Watch", kAnyone},
    MethodRole{"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", kAdmin, true},
    MethodRole{"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", kAdmin, true},
    MethodRole{"/mendel.v1.Jobs/CancelJob", kSubmitter},
    MethodRole{"/mendel.v1.Jobs/DeleteJob", kSubmitter},
    MethodRole{"/mendel.v1.Jobs/GetJob", kReader},
    MethodRole{"/mendel.v1.Jobs/ListJobs", kReader},
    MethodRole{"/mendel.v1.Jobs/SubmitJob", kSubmitter},
    MethodRole{"/mendel.v1.Jobs/WatchJob", kReader},
    MethodRole{"/mendel.v1.Models/CreateModel", kSubmitter},
    MethodRole{"/mendel.v1.Models/DeleteModel", kAdmin},
    MethodRole{"/mendel.v1.Models/FindMissingBlobs", kReader},
    MethodRole{"/mendel.v1.Models/GetModel", kReader},
    MethodRole{"/mendel.v1.Models/ListModels", kReader},
    MethodRole{"/mendel.v1.Plans/DeletePlan", kAdmin},
    MethodRole{"/mendel.v1.Plans/GetPlan", kReader},
    MethodRole{"/mendel.v1.Plans/ListPlans", kReader},
    MethodRole{"/mendel.v1.Plans/RefitPlan", kSubmitter},
    MethodRole{"/mendel.v1.Verifier/ComparePair", kSubmitter},
    MethodRole{"/mendel.v1.Verifier/VerifyPlan", kSubmitter},
};

}  // namespace

std::string_view RoleName(Role role) {
  constexpr std::array<std::string_view, 4> names = {"none", "reader", "submitter", "admin"};
  return names[static_cast<size_t>(role)];
}

std::optional<Role> ParseRole(std::string_view name) {
  for (Role role : {Role::kNobody, Role::kReader, Role::kSubmitter, Role::kAdmin}) {
    if (RoleName(role) == name) return role;
  }
  return std::nullopt;
}

Role Grants::In(const std::string& project) const {
  const auto found = by_project.find(project);
  return found == by_project.end() ? everywhere : std::max(everywhere, found->second);
}

Role Grants::Highest() const {
  Role highest = everywhere;
  for (const auto& [project, role] : by_project) highest = std::max(highest, role);
  return highest;
}

std::optional<Grants> ParseGrants(std::string_view text) {
  if (text == RoleName(Role::kAdmin)) return Grants{Role::kAdmin};
  if (const std::optional<Role> role = ParseRole(text)) return Grants{Role::kNobody, {{"", *role}}};
  Grants grants;
  for (std::string_view rest = text;;) {
    const std::string_view one = rest.substr(0, rest.find(','));
    const size_t colon = std::min(one.find(':'), one.size());
    const std::string_view project = one.substr(0, colon);
    const std::optional<Role> role = ParseRole(one.substr(std::min(colon + 1, one.size())));
    if (!role || (project != "*" && !IsProject(project))) return std::nullopt;
    if (project == "*") {
      grants.everywhere = std::max(grants.everywhere, *role);
    } else if (!grants.by_project
                    .emplace(project == kDefaultProject ? "" : std::string(project), *role)
                    .second) {
      return std::nullopt;
    }
    if (one.size() == rest.size()) return grants;
    rest.remove_prefix(one.size() + 1);
  }
}

std::span<const MethodRole> MethodRoles() { return kMethods; }

const MethodRole* FindMethod(std::string_view method) {
  const auto* found = std::lower_bound(
      kMethods.begin(), kMethods.end(), method,
      [](const MethodRole& row, std::string_view name) { return row.method < name; });
  return found != kMethods.end() && found->method == method ? found : nullptr;
}

}  // namespace mendel::server
