#include "runtime/dynamic_session.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/status.h"

namespace mendel {

DynamicSession::DynamicSession(Model model, SessionOptions options, DynamicLimits limits)
    : model_(std::move(model)), options_(std::move(options)), limits_(limits) {}

absl::StatusOr<Session*> DynamicSession::ForInputs(const NamedShapes& shapes,
                                                   const Values& values) {
  const Key key(shapes.begin(), shapes.end());
  const auto found = Find(key, values);
  if (found != kept_.end()) {
    ++counts_.hits;
    kept_.splice(kept_.begin(), kept_, found);
    return found->session.get();
  }
  MENDEL_ASSIGN_OR_RETURN(const Specialized made, model_.specialize(shapes, values));
  MENDEL_ASSIGN_OR_RETURN(auto session, Session::Create(made.plan, options_));
  ++counts_.made;
  Values bound;
  for (const std::string& name : made.bound) bound.emplace(name, values.at(name));
  return Keep({key, std::move(bound), std::move(session), false});
}

absl::Status DynamicSession::Adopt(const Plan& plan) {
  if (plan.info.model_hash() != model_.hash) {
    return InvalidInput("the plan is of the model ", plan.info.model_hash(),
                        " (SHA-256), not of this one, ", model_.hash);
  }
  Key key;
  for (auto& [name, shape] : InputShapes(plan.graph)) {
    if (std::find(model_.inputs.begin(), model_.inputs.end(), name) == model_.inputs.end())
      return InvalidInput("the plan has the input '", name, "', which the model does not have");
    key.emplace(name, shape);
  }
  for (const std::string& name : model_.inputs) {
    if (key.count(name) == 0)
      return InvalidInput("the plan does not have the model's input '", name, "'");
  }
  MENDEL_ASSIGN_OR_RETURN(auto session, Session::Create(plan, options_));
  std::erase_if(kept_, [&](const Kept& kept) { return kept.key == key; });
  Keep({key, {}, std::move(session), true});
  return absl::OkStatus();
}

DynamicUse DynamicSession::use() const {
  DynamicUse use = counts_;
  use.plans = kept_.size();
  use.bytes = Bytes();
  return use;
}

std::list<DynamicSession::Kept>::iterator DynamicSession::Find(const Key& key,
                                                               const Values& values) {
  return std::find_if(kept_.begin(), kept_.end(), [&](const Kept& kept) {
    return kept.key == key &&
           std::all_of(kept.bound.begin(), kept.bound.end(), [&](const auto& bound) {
             const auto value = values.find(bound.first);
             return value != values.end() && value->second == bound.second;
           });
  });
}

Session* DynamicSession::Keep(Kept kept) {
  kept_.push_front(std::move(kept));
  while (kept_.size() > 1 && (kept_.size() > limits_.plans || Bytes() > limits_.bytes)) {
    auto last = std::prev(kept_.end());
    for (auto it = last; it != kept_.begin(); --it) {
      if (it->adopted) continue;
      last = it;
      break;
    }
    kept_.erase(last);
    ++counts_.dropped;
  }
  return kept_.front().session.get();
}

int64_t DynamicSession::Bytes() const {
  int64_t weights = 0, own = 0;
  for (const Kept& kept : kept_) {
    const MemoryReport memory = kept.session->executable().memory();
    weights = std::max(weights, memory.weight_bytes);
    own += memory.arena_bytes + memory.scratch_bytes;
  }
  return weights + own;
}

}  // namespace mendel
