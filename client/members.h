// Bundles of plans in commands: the choice of members, and the facts of several members.
#ifndef MENDEL_CLIENT_MEMBERS_H_
#define MENDEL_CLIENT_MEMBERS_H_

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/command.h"
#include "runtime/plan_bundle.h"

namespace mendel {

/// Declares --shapes of a command on plans. `shapes` must outlive the command line's parsing.
void AddMemberOption(CLI::App& app, std::vector<std::string>& shapes);

/// The shapes of all texts of --shapes; InvalidArgument when an input is named twice.
absl::StatusOr<NamedShapes> ParseMemberShapes(const std::vector<std::string>& shapes);

/// All plans of the file, or the one that `shapes` choose, if there are any.
absl::StatusOr<std::vector<Plan>> ReadMembers(const std::string& path,
                                              const std::vector<std::string>& shapes);
/// The only plan of the file, or the one that `shapes` choose; InvalidArgument names the members
/// when several remain.
absl::StatusOr<Plan> ReadMember(const std::string& path, const std::vector<std::string>& shapes);

/// Calls `report` for every number below offered.size(). With several members, each has a heading,
/// and its facts become an entry of "members". The entry begins with "inputs", the shapes as text.
/// Stops at the first error, which then names the member.
absl::Status ReportMembers(
    std::span<const NamedShapes> offered, Context& context,
    const std::function<absl::Status(size_t number, Context& context)>& report);

}  // namespace mendel

#endif  // MENDEL_CLIENT_MEMBERS_H_
