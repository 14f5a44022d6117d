#include "kernels/cuda/fusion/grouping.h"

#include <algorithm>

#include "base/status.h"
#include "kernels/cuda/fusion/operator_text.h"

namespace mendel::cuda {
namespace {

// Limits of one kernel: its text and its parameters stay small.
constexpr int kMaxNodes = 24;
constexpr int kMaxOperands = 32;

class Grouping {
 public:
  Grouping(const Graph& graph, const std::vector<bool>& elsewhere, const OutsideGroups& outside)
      : graph_(graph),
        elsewhere_(elsewhere),
        unused_(outside.unused.empty() ? std::vector<bool>(graph.nodes().size()) : outside.unused),
        stored_(graph.nodes().size(), false),
        texts_(graph.nodes().size(), nullptr),
        fanout_(graph.nodes().size(), 0),
        base_(graph.nodes().size(), -1),
        size_(graph.nodes().size(), 1),
        operands_(graph.nodes().size(), 0),
        inlined_(graph.nodes().size(), false) {
    for (const ValueId value : outside.stored) stored_[static_cast<size_t>(value.node)] = true;
  }

  absl::StatusOr<std::vector<FusionGroup>> Run() {
    for (size_t id = 0; id < texts_.size(); ++id) {
      if (!IsComputed(static_cast<int32_t>(id))) continue;
      MENDEL_ASSIGN_OR_RETURN(texts_[id], OperatorTextOf(graph_, static_cast<int32_t>(id)));
      operands_[id] = static_cast<int>(graph_.node(static_cast<int32_t>(id)).inputs.size());
    }
    CountUses();
    for (size_t id = 0; id < texts_.size(); ++id) {
      if (texts_[id] != nullptr) Decide(static_cast<int32_t>(id));
    }
    std::vector<FusionGroup> groups;
    for (size_t id = 0; id < texts_.size(); ++id) {
      if (texts_[id] == nullptr || inlined_[id]) continue;
      const Node& node = graph_.node(static_cast<int32_t>(id));
      for (size_t k = 0; k < node.outputs.size(); ++k) {
        if (NumElements(node.outputs[k]) == 0) continue;
        FusionGroup group{{static_cast<int32_t>(id), static_cast<int32_t>(k)}, {}, -1};
        Collect(static_cast<int32_t>(id), group);
        groups.push_back(std::move(group));
      }
    }
    return groups;
  }

 private:
  bool IsComputed(int32_t id) const {
    return !elsewhere_[static_cast<size_t>(id)] && !unused_[static_cast<size_t>(id)] && !IsInput(graph_.node(id));
  }
  std::vector<int32_t> Users(int32_t id) const {
    std::vector<int32_t> users = graph_.users(id);
    std::erase_if(users, [&](int32_t user) { return unused_[static_cast<size_t>(user)]; });
    return users;
  }
  const OperatorText& text(int32_t id) const { return *texts_[static_cast<size_t>(id)]; }
  bool IsView(int32_t id) const { return text(id).reads == Reads::kMoved; }
  bool IsLight(int32_t id) const { return text(id).reads != Reads::kMany && !text(id).is_row(); }
  int64_t Elements(int32_t id) const { return NumElements(graph_.node(id).outputs[0]); }

  /// Kernels that would compute a node if it went into all of its users, and all views into theirs.
  void CountUses() {
    for (size_t k = texts_.size(); k-- > 0;) {
      const int32_t id = static_cast<int32_t>(k);
      if (texts_[k] == nullptr) continue;
      if (graph_.IsOutput(id) || stored_[k]) fanout_[k] = 1;
      if (stored_[k]) continue;
      for (int32_t user : Users(id)) {
        for (ValueId input : graph_.node(user).inputs) {
          const size_t u = static_cast<size_t>(user);
          if (input.node == id) fanout_[k] += texts_[u] != nullptr && IsView(user) ? fanout_[u] : 1;
        }
      }
    }
  }

  void Decide(int32_t id) {
    const size_t k = static_cast<size_t>(id);
    if (text(id).reads == Reads::kMany || text(id).is_row()) base_[k] = id;
    const std::vector<int32_t> users = Users(id);
    if (users.empty() || graph_.IsOutput(id) || stored_[k]) return;
    if (graph_.node(id).outputs.size() > 1 && !IsView(id)) return;
    if (!IsView(id) && fanout_[k] != 1) return;
    if (!std::all_of(users.begin(), users.end(), [&](int32_t user) { return MayGoInto(id, user); })) return;
    inlined_[k] = true;
    for (int32_t user : users) {
      const size_t u = static_cast<size_t>(user);
      size_[u] += size_[k];
      operands_[u] += operands_[k];
      if (base_[k] >= 0) base_[u] = base_[k];
    }
  }

  bool MayGoInto(int32_t id, int32_t user) const {
    const size_t k = static_cast<size_t>(id), u = static_cast<size_t>(user);
    if (texts_[u] == nullptr || size_[k] + size_[u] > kMaxNodes || operands_[k] + operands_[u] > kMaxOperands) return false;
    if (base_[k] >= 0) {
      // As a base of an epilogue: the same positions, and no other base.
      return text(user).reads == Reads::kAtPosition && !text(user).is_row() && base_[u] < 0 &&
             graph_.node(user).outputs[0].shape == graph_.node(id).outputs[0].shape && !ReadsTwice(id, user);
    }
    if (text(user).is_row()) return graph_.node(user).inputs[0].node == id && !ReadsTwice(id, user);
    if (text(user).reads == Reads::kMany) return false;
    // A broadcast would compute elements of anything but a view several times.
    return IsView(id) || Elements(user) <= Elements(id) || text(user).once;
  }
  bool ReadsTwice(int32_t id, int32_t user) const {
    const std::vector<ValueId>& inputs = graph_.node(user).inputs;
    return std::count_if(inputs.begin(), inputs.end(), [&](ValueId value) { return value.node == id; }) > 1;
  }

  void Collect(int32_t id, FusionGroup& group) const {
    if (!group.nodes.insert(id).second) return;
    if (text(id).is_row()) group.row = id;
    for (ValueId input : graph_.node(id).inputs) {
      if (inlined_[static_cast<size_t>(input.node)]) Collect(input.node, group);
    }
  }

  const Graph& graph_;
  const std::vector<bool>& elsewhere_;
  const std::vector<bool> unused_;
  std::vector<bool> stored_;                // some value of the node
  std::vector<const OperatorText*> texts_;  // null: nothing to compute
  std::vector<int64_t> fanout_;
  std::vector<int32_t> base_;  // the operator that sums in the node's group so far
  std::vector<int> size_, operands_;
  std::vector<bool> inlined_;
};

}  // namespace

absl::StatusOr<std::vector<FusionGroup>> GroupsOf(const Graph& graph, const std::vector<bool>& elsewhere,
                                                  const OutsideGroups& outside) {
  return Grouping(graph, elsewhere, outside).Run();
}

}  // namespace mendel::cuda
