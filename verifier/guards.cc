#include "verifier/guards.h"

#include <algorithm>
#include <iterator>

#include "graph/op_helpers.h"

namespace mendel {
namespace {

const Guard kUnknownGuard = {-1, 0};

class GuardTable {
 public:
  GuardTable(const Numbering& numbering, Side side) : numbering_(numbering), side_(side), guards_(numbering.nodes.size()) {
    for (int32_t number : side == Side::kOriginal ? numbering.original_outputs : numbering.plan_outputs) Meet(number, {});
    // Readers of a merged number read its representative, which may stand on either side of them: repeated until nothing changes.
    do {
      changed_ = false;
      Pass();
    } while (changed_);
  }

  std::vector<std::optional<Guards>> Take() { return std::move(guards_); }

 private:
  void Pass() {
    for (size_t i = numbering_.nodes.size(); i-- > 0;) {
      const NumberedNode& node = numbering_.nodes[i];
      if (!(side_ == Side::kOriginal ? node.in_original : node.in_plan) || !guards_[i].has_value()) continue;
      for (size_t k = 0; k < node.inputs.size(); ++k) Meet(node.inputs[k], Behind(node, *guards_[i], k));
    }
    for (const Claim& claim : numbering_.claims) {
      const auto& read = guards_[NodeIndex(claim.representative)];
      if (claim.output.empty() && claim.merge.side == side_ && read.has_value()) Meet(claim.member, Guards(*read));
    }
  }

  /// The guards of operand `k` of a node that has `guards`.
  Guards Behind(const NumberedNode& node, Guards guards, size_t k) const {
    const bool same_elements =
        node.node->op->restrict == &RestrictElementwise && node.input_types[k].shape == node.node->outputs[0].shape;
    if (!same_elements && !guards.empty()) guards = side_ == Side::kOriginal ? Guards{kUnknownGuard} : Guards();
    if (node.node->op->name == "Where" && k > 0) {
      const bool aligned = same_elements && node.input_types[0].shape == node.node->outputs[0].shape;
      if (aligned) {
        guards.insert({node.inputs[0], k});
      } else if (side_ == Side::kOriginal) {
        guards.insert(kUnknownGuard);
      }
    }
    return guards;
  }

  void Meet(int32_t number, const Guards& guards) {
    std::optional<Guards>& known = guards_[NodeIndex(number)];
    if (!known.has_value()) {
      known = guards;
      changed_ = true;
      return;
    }
    Guards both;
    std::set_intersection(known->begin(), known->end(), guards.begin(), guards.end(), std::inserter(both, both.end()));
    if (both == *known) return;
    known = std::move(both);
    changed_ = true;
  }

  size_t NodeIndex(int32_t number) const { return static_cast<size_t>(numbering_.values[static_cast<size_t>(number)].node); }

  const Numbering& numbering_;
  const Side side_;
  std::vector<std::optional<Guards>> guards_;
  bool changed_ = false;
};

}  // namespace

std::vector<std::optional<Guards>> GuardsOf(const Numbering& numbering, Side side) { return GuardTable(numbering, side).Take(); }

}  // namespace mendel
