#include "runtime/bundle_session.h"

#include <utility>

#include "base/check.h"
#include "base/status.h"

namespace mendel {

absl::StatusOr<std::unique_ptr<BundleSession>> BundleSession::Create(
    std::vector<Plan> members, const SessionOptions& options) {
  if (members.empty()) return InvalidInput("a bundle without members");
  std::unique_ptr<BundleSession> bundle(new BundleSession());
  bundle->options_ = options;
  bundle->offered_ = OfferedShapes(members);
  bundle->sessions_.resize(members.size());
  bundle->members_ = std::move(members);
  return bundle;
}

absl::StatusOr<std::unique_ptr<BundleSession>> BundleSession::Load(const std::string& path,
                                                                   const SessionOptions& options) {
  MENDEL_ASSIGN_OR_RETURN(std::vector<Plan> members, ReadPlans(path));
  MENDEL_ASSIGN_OR_RETURN(std::unique_ptr<BundleSession> bundle,
                          Create(std::move(members), options));
  bundle->path_ = path;
  return bundle;
}

absl::StatusOr<Session*> BundleSession::Member(size_t number) {
  MENDEL_CHECK(number < sessions_.size());
  if (sessions_[number] == nullptr) {
    auto session = Session::Create(members_[number], options_);
    if (!session.ok()) return path_.empty() ? session.status() : Annotate(session.status(), path_);
    sessions_[number] = *std::move(session);
  }
  return sessions_[number].get();
}

absl::StatusOr<size_t> BundleSession::Choose(const NamedShapes& wanted) const {
  if (members_.size() == 1) return 0;  // the session itself names what does not fit
  return ChooseMember(offered_, wanted);
}

}  // namespace mendel
