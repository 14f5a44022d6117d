#include "verifier/certify/guesses.h"

#include <set>
#include <utility>
#include <vector>

namespace mendel {
namespace {

/// A number of the original and one of the plan.
using Pair = std::pair<int32_t, int32_t>;

class Guesser {
 public:
  explicit Guesser(const Numbering& numbering) : numbering_(numbering) {}

  std::map<Origin, Origin> Run() {
    for (const Claim& claim : numbering_.claims)
      open_.push_back({claim.representative, claim.member});
    while (!open_.empty()) {
      const Pair pair = open_.back();
      open_.pop_back();
      if (!met_.insert(pair.second).second) continue;
      if (Alike(pair)) {
        PushOperands(pair);
      } else if (Mergeable(pair)) {
        merges_[OriginOf(pair.second)] = OriginOf(pair.first);
      }
    }
    for (const Claim& claim : numbering_.claims)
      merges_.erase(OriginOf(claim.member));  // a claim already
    return std::move(merges_);
  }

 private:
  const Origin& OriginOf(int32_t number) const {
    return numbering_.values[static_cast<size_t>(number)].origin;
  }

  bool Mergeable(const Pair& pair) const {
    const NumberedNode& original = numbering_.NodeOf(pair.first);
    const NumberedNode& plan = numbering_.NodeOf(pair.second);
    const auto is_source = [](const NumberedNode& node) {
      return IsInput(*node.node) || IsConstant(*node.node);
    };
    return original.in_original && !plan.in_original && !is_source(original) && !is_source(plan) &&
           IsFloat(numbering_.TypeOf(pair.first).dtype) &&
           numbering_.TypeOf(pair.first).dtype == numbering_.TypeOf(pair.second).dtype &&
           NumElements(numbering_.TypeOf(pair.first)) ==
               NumElements(numbering_.TypeOf(pair.second));
  }

  /// Equal operands would make the two congruent, and those that are not equal may be merged.
  bool Alike(const Pair& pair) const {
    const NumberedNode& a = numbering_.NodeOf(pair.first);
    const NumberedNode& b = numbering_.NodeOf(pair.second);
    if (a.node->op != b.node->op || !(a.node->attrs == b.node->attrs) ||
        a.input_types != b.input_types || a.inputs.empty())
      return false;
    if (numbering_.values[static_cast<size_t>(pair.first)].output !=
        numbering_.values[static_cast<size_t>(pair.second)].output)
      return false;
    for (size_t k = 0; k < a.inputs.size(); ++k) {
      if (a.inputs[k] != b.inputs[k] && !Mergeable({a.inputs[k], b.inputs[k]})) return false;
    }
    return true;
  }

  void PushOperands(const Pair& pair) {
    const NumberedNode& a = numbering_.NodeOf(pair.first);
    const NumberedNode& b = numbering_.NodeOf(pair.second);
    for (size_t k = 0; k < a.inputs.size(); ++k) {
      if (a.inputs[k] != b.inputs[k]) open_.push_back({a.inputs[k], b.inputs[k]});
    }
  }

  const Numbering& numbering_;
  std::vector<Pair> open_;
  std::set<int32_t> met_;  // of the plan
  std::map<Origin, Origin> merges_;
};

}  // namespace

std::map<Origin, Origin> GuessMerges(const Numbering& numbering) {
  return Guesser(numbering).Run();
}

}  // namespace mendel
