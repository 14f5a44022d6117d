// A plan or a bundle of plans ready to run. The inputs of a run choose the
// member.
#ifndef MENDEL_RUNTIME_BUNDLE_SESSION_H_
#define MENDEL_RUNTIME_BUNDLE_SESSION_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/plan_bundle.h"
#include "runtime/session.h"

namespace mendel {

/// Members are compiled at their first use and kept. All weights are in one mapping; weights that
/// the CPU backend packs alike for several members are stored once. Not thread-safe.
class BundleSession {
 public:
  /// Compiles nothing yet. InvalidArgument when there are no members.
  static absl::StatusOr<std::unique_ptr<BundleSession>> Create(std::vector<Plan> members,
                                                               const SessionOptions& options);
  /// Also loads the file of a single plan, as a bundle with one member.
  static absl::StatusOr<std::unique_ptr<BundleSession>> Load(const std::string& path,
                                                             const SessionOptions& options);

  size_t size() const { return members_.size(); }
  /// The shapes of every member, in their order.
  std::span<const NamedShapes> offered() const { return offered_; }
  /// Returns the session of member `number` (below size()). Compiles it at the first call. Errors:
  /// those of Session::Create. The session lives as long as this object.
  absl::StatusOr<Session*> Member(size_t number);
  /// The graph of member `number`, as the plan contains it.
  const Graph& graph(size_t number) const { return members_[number].graph; }
  /// The only member, or the one that takes inputs of these shapes (ChooseMember).
  absl::StatusOr<size_t> Choose(const NamedShapes& wanted) const;

 private:
  BundleSession() = default;

  std::string path_;
  SessionOptions options_;
  std::vector<Plan> members_;
  std::vector<NamedShapes> offered_;
  std::vector<std::unique_ptr<Session>> sessions_;  // null: not compiled yet
};

}  // namespace mendel

#endif  // MENDEL_RUNTIME_BUNDLE_SESSION_H_
