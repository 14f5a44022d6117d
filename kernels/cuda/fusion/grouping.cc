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
        turned_(graph.nodes().size(), false),
        leads_(graph.nodes().size(), false),
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
      size_[id] = Widens(static_cast<int32_t>(id))
                      ? 0
                      : 1;  // no more than another way to read what its reader reads
      operands_[id] = static_cast<int>(graph_.node(static_cast<int32_t>(id)).inputs.size());
    }
    FindWindows();
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
    return !elsewhere_[static_cast<size_t>(id)] && !unused_[static_cast<size_t>(id)] &&
           !IsInput(graph_.node(id));
  }
  std::vector<int32_t> Users(int32_t id) const {
    std::vector<int32_t> users = graph_.users(id);
    std::erase_if(users, [&](int32_t user) { return unused_[static_cast<size_t>(user)]; });
    return users;
  }
  const OperatorText& text(int32_t id) const { return *texts_[static_cast<size_t>(id)]; }
  bool IsView(int32_t id) const { return text(id).reads == Reads::kMoved; }
  int64_t Elements(int32_t id) const { return NumElements(graph_.node(id).outputs[0]); }

  /// The node that reads the node's value, once; -1: several do, or none.
  int32_t OnlyUser(int32_t id) const {
    const std::vector<int32_t> users = Users(id);
    const bool is_one =
        users.size() == 1 && !graph_.IsOutput(id) && !stored_[static_cast<size_t>(id)];
    return is_one && !ReadsTwice(id, users[0]) && texts_[static_cast<size_t>(users[0])] != nullptr
               ? users[0]
               : -1;
  }
  bool IsTranspose(int32_t id) const { return graph_.node(id).op->name == "Transpose"; }

  /// Finds pools and the like between two Transposes, and the nodes that lead from memory into
  /// them: these, and Casts to a wider dtype. Casts lead into others of them, too.
  void FindWindows() {
    for (size_t k = texts_.size(); k-- > 0;) {
      if (texts_[k] == nullptr) continue;
      const int32_t id = static_cast<int32_t>(k), user = OnlyUser(id);
      if (user < 0) continue;
      const size_t u = static_cast<size_t>(user);
      turned_[k] =
          text(id).windowed && IsTranspose(user) && Undoes(user, graph_.node(id).inputs[0].node);
      const bool is_read = turned_[u] || (text(user).windowed && Widens(id));
      leads_[k] = (Widens(id) || IsTranspose(id)) && (leads_[u] ? IsInOrder(id, u) : is_read);
    }
  }
  /// True where the node that leads to `user`, which leads into a window, may do so. A Transpose
  /// may only where a later one undoes it.
  bool IsInOrder(int32_t id, size_t user) const {
    if (!IsTranspose(id)) return true;
    while (leads_[user]) user = static_cast<size_t>(OnlyUser(static_cast<int32_t>(user)));
    return turned_[user];
  }
  bool Widens(int32_t id) const {
    const Node& node = graph_.node(id);
    return node.op->name == "Cast" &&
           DTypeSize(node.outputs[0].dtype) >= DTypeSize(graph_.type(node.inputs[0]).dtype);
  }
  /// True where `transpose` undoes a Transpose that leads to a window, `from` being the last node
  /// before the window.
  bool Undoes(int32_t transpose, int32_t from) const {
    const auto is_alone = [&](int32_t id) { return IsComputed(id) && OnlyUser(id) >= 0; };
    while (is_alone(from) && Widens(from)) from = graph_.node(from).inputs[0].node;
    if (!is_alone(from) || !IsTranspose(from)) return false;
    const Ints &there = graph_.node(from).attrs.IntList("perm"),
               &back = graph_.node(transpose).attrs.IntList("perm");
    for (size_t d = 0; d < back.size(); ++d) {
      if (there[static_cast<size_t>(back[d])] != static_cast<int64_t>(d)) return false;
    }
    return true;
  }
  /// True where the view has its input's elements in their order.
  bool KeepsOrder(int32_t id) const {
    const Node& node = graph_.node(id);
    if (node.op->name == "Reshape") return true;
    if (!IsTranspose(id)) return false;
    int64_t last = -1;
    for (const int64_t from : node.attrs.IntList("perm")) {
      if (graph_.type(node.inputs[0]).shape[static_cast<size_t>(from)] == 1) continue;
      if (from < last) return false;
      last = from;
    }
    return true;
  }

  /// Counts kernels that compute a node if it goes into all its users, and all views into theirs.
  void CountUses() {
    for (size_t k = texts_.size(); k-- > 0;) {
      const int32_t id = static_cast<int32_t>(k);
      if (texts_[k] == nullptr) continue;
      if (graph_.IsOutput(id) || stored_[k]) fanout_[k] = 1;
      if (stored_[k]) continue;
      for (int32_t user : Users(id)) {
        for (ValueId input : graph_.node(user).inputs) {
          const size_t u = static_cast<size_t>(user);
          if (input.node == id)
            fanout_[k] += texts_[u] != nullptr && IsView(user) && !turned_[k] ? fanout_[u] : 1;
        }
      }
    }
  }

  void Decide(int32_t id) {
    const size_t k = static_cast<size_t>(id);
    if (text(id).reads == Reads::kMany || text(id).is_row()) base_[k] = id;
    const std::vector<int32_t> users = Users(id);
    if (users.empty() || graph_.IsOutput(id) || stored_[k]) return;
    const bool is_view = IsView(id) && base_[k] < 0;
    if (graph_.node(id).outputs.size() > 1 && !is_view) return;
    if (!is_view && fanout_[k] != 1) return;
    if (!std::all_of(users.begin(), users.end(), [&](int32_t user) { return MayGoInto(id, user); }))
      return;
    inlined_[k] = true;
    for (int32_t user : users) {
      const size_t u = static_cast<size_t>(user);
      size_[u] += size_[k];
      operands_[u] += operands_[k] - 1;  // which are read in the place of one
      if (base_[k] >= 0) base_[u] = base_[k];
    }
  }

  bool MayGoInto(int32_t id, int32_t user) const {
    const size_t k = static_cast<size_t>(id), u = static_cast<size_t>(user);
    if (texts_[u] == nullptr || size_[k] + size_[u] > kMaxNodes ||
        operands_[k] + operands_[u] - 1 > kMaxOperands)
      return false;
    if (leads_[u]) return leads_[k];
    if (base_[k] >= 0) {
      if (base_[u] >= 0) return false;
      if (turned_[k]) return true;
      const OperatorText& base = text(base_[k]);
      if (base.is_row() && base.row.element == nullptr && KeepsOrder(user)) return true;
      // The user is an epilogue of the base: the same positions, and no other base.
      return text(user).reads == Reads::kAtPosition && !text(user).is_row() &&
             graph_.node(user).outputs[0].shape == graph_.node(id).outputs[0].shape &&
             !ReadsTwice(id, user);
    }
    if (text(user).is_row()) return graph_.node(user).inputs[0].node == id && !ReadsTwice(id, user);
    if (text(user).reads == Reads::kMany) return leads_[k];
    // A broadcast would compute elements of anything but a view several times.
    return IsView(id) || Elements(user) <= Elements(id) || text(user).once;
  }
  bool ReadsTwice(int32_t id, int32_t user) const {
    const std::vector<ValueId>& inputs = graph_.node(user).inputs;
    return std::count_if(inputs.begin(), inputs.end(),
                         [&](ValueId value) { return value.node == id; }) > 1;
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
  std::vector<bool> turned_, leads_;  // see FindWindows
  std::vector<int32_t> base_;         // the operator that sums in the node's group so far
  std::vector<int> size_, operands_;
  std::vector<bool> inlined_;
};

}  // namespace

absl::StatusOr<std::vector<FusionGroup>> GroupsOf(const Graph& graph,
                                                  const std::vector<bool>& elsewhere,
                                                  const OutsideGroups& outside) {
  return Grouping(graph, elsewhere, outside).Run();
}

}  // namespace mendel::cuda
