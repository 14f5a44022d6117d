#include "runtime/dynamic_session.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/status.h"

namespace mendel {

DynamicSession::DynamicSession(std::vector<std::string> inputs, std::string model_hash,
                               Specialize specialize, SessionOptions options, DynamicLimits limits)
    : inputs_(std::move(inputs)),
      model_hash_(std::move(model_hash)),
      specialize_(std::move(specialize)),
      options_(std::move(options)),
      limits_(limits) {}

absl::StatusOr<Session*> DynamicSession::ForShapes(const NamedShapes& shapes) {
  const Key key(shapes.begin(), shapes.end());
  const auto found = Find(key);
  if (found != kept_.end()) {
    ++counts_.hits;
    kept_.splice(kept_.begin(), kept_, found);
    return found->session.get();
  }
  MENDEL_ASSIGN_OR_RETURN(const Plan plan, specialize_(shapes));
  MENDEL_ASSIGN_OR_RETURN(auto session, Session::Create(plan, options_));
  ++counts_.made;
  return Keep({key, std::move(session), false});
}

absl::Status DynamicSession::Adopt(const Plan& plan) {
  if (plan.info.model_hash() != model_hash_) {
    return InvalidInput("the plan is of the model ", plan.info.model_hash(),
                        " (SHA-256), not of this one, ", model_hash_);
  }
  Key key;
  for (auto& [name, shape] : InputShapes(plan.graph)) {
    if (std::find(inputs_.begin(), inputs_.end(), name) == inputs_.end())
      return InvalidInput("the plan has the input '", name, "', which the model does not have");
    key.emplace(name, shape);
  }
  for (const std::string& name : inputs_) {
    if (key.count(name) == 0)
      return InvalidInput("the plan does not have the model's input '", name, "'");
  }
  MENDEL_ASSIGN_OR_RETURN(auto session, Session::Create(plan, options_));
  const auto found = Find(key);
  if (found != kept_.end()) kept_.erase(found);
  Keep({key, std::move(session), true});
  return absl::OkStatus();
}

DynamicUse DynamicSession::use() const {
  DynamicUse use = counts_;
  use.plans = kept_.size();
  use.bytes = Bytes();
  return use;
}

std::list<DynamicSession::Kept>::iterator DynamicSession::Find(const Key& key) {
  return std::find_if(kept_.begin(), kept_.end(),
                      [&](const Kept& kept) { return kept.key == key; });
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
