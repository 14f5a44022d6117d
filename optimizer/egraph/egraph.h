// An e-graph over the values of graphs: many equal programs in one structure that shares what they
// have in common.
//
// An e-class is a set of values that are known equal. An e-node is an operator with its attributes
// and the e-classes of its operands; a node of several outputs is one e-node whose outputs lie in
// one e-class each (a tuple and its projections). E-nodes are hash-consed: equal operator,
// attributes and operand classes are one e-node. Congruence - equal operands, hence equal outputs
// - is restored by Rebuild (Willsey et al., "egg: fast and extensible equality saturation", POPL
// 2021, section 3).
#ifndef MENDEL_OPTIMIZER_EGRAPH_EGRAPH_H_
#define MENDEL_OPTIMIZER_EGRAPH_EGRAPH_H_

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "optimizer/egraph/union_find.h"

namespace mendel {

using ClassId = int32_t;
using ENodeId = int32_t;

/// Output `output` of an e-node: what an e-class is a set of.
struct EValue {
  ENodeId node = -1;
  int32_t output = 0;
  auto operator<=>(const EValue&) const = default;
};

struct ENode {
  Node node;  ///< operator, attributes, output types and name; its inputs are unused
  std::vector<ClassId> operands;  ///< canonical after Rebuild
  std::vector<ClassId> outputs;   ///< as they were made: ask Find
  int32_t origin = -1;            ///< what added it first (EGraph::Add)
};

/// Growth limits. Not errors: who adds alternatives asks EGraph::Exceeded between two of them.
struct EGraphLimits {
  int64_t nodes = 50000;
  int64_t classes = 50000;
  int64_t bytes =
      int64_t{1}
      << 30;  ///< of the structure itself; tensors are shared with the graphs that they came from
};
enum class EGraphLimit { kNodes, kClasses, kBytes };
/// "node limit", "class limit", "byte limit".
const char* EGraphLimitName(EGraphLimit limit);

/// Not thread-safe.
class EGraph {
 public:
  explicit EGraph(EGraphLimits limits = {}) : limits_(limits) {}

  /// The e-node of `node` (its inputs ignored) on `operands`; made if there is none, with `origin`
  /// as its label. InvalidArgument when it exists with outputs of other types.
  absl::StatusOr<ENodeId> Add(const Node& node, const std::vector<ClassId>& operands,
                              int32_t origin = -1);

  /// All of `graph`, whose inputs stand for `inputs` (empty: they become Input e-nodes of their
  /// own). Returns the class of every value: an entry a node, an entry an output; and in `enodes`
  /// the e-node of every node, -1 for inputs that stand for classes. Constants with a symbol are
  /// one e-node wherever the name is equal.
  absl::StatusOr<std::vector<std::vector<ClassId>>> AddGraph(
      const Graph& graph, const std::vector<ClassId>& inputs = {}, int32_t origin = -1,
      std::vector<ENodeId>* enodes = nullptr);

  /// States that the values of `a` and `b` are equal; false when that was known. InvalidArgument
  /// when their types differ. Congruence is restored by the next Rebuild.
  absl::StatusOr<bool> Merge(ClassId a, ClassId b);
  /// Merges what equal operands make equal until nothing is left to merge.
  absl::Status Rebuild();

  ClassId Find(ClassId id) const { return classes_.Find(id); }
  const TensorType& type(ClassId id) const { return data_[static_cast<size_t>(Find(id))].type; }
  /// True when some value of the class depends on no Input.
  bool IsConstantClass(ClassId id) const { return data_[static_cast<size_t>(Find(id))].constant; }
  /// Values of the class. After Rebuild: live e-nodes, ascending.
  const std::vector<EValue>& members(ClassId id) const {
    return data_[static_cast<size_t>(Find(id))].members;
  }

  /// Size of the space of e-node numbers; some are dead (they became equal to another e-node).
  size_t node_space() const { return nodes_.size(); }
  size_t class_space() const { return data_.size(); }
  bool alive(ENodeId id) const { return forward_[static_cast<size_t>(id)] == id; }
  const ENode& node(ENodeId id) const { return nodes_[static_cast<size_t>(id)]; }
  /// The e-node that `id` is now.
  ENodeId Canonical(ENodeId id) const;

  int64_t node_count() const { return live_nodes_; }
  int64_t class_count() const { return live_classes_; }
  /// Estimate of the structure's memory.
  int64_t bytes() const { return bytes_; }
  std::optional<EGraphLimit> Exceeded() const;

  /// Internal error naming the broken invariant: congruence, canonical numbers, hash-consing. For
  /// tests.
  absl::Status CheckInvariants() const;

 private:
  struct ClassData {
    TensorType type;
    std::vector<EValue> members;
    std::vector<ENodeId>
        parents;  // e-nodes that read the class; may hold dead ones and repetitions
    bool constant = false;
  };
  /// Kind of the e-node (operator, attributes) and canonical operands.
  using Key = std::vector<int32_t>;

  int32_t Kind(const Node& node);
  Key MakeKey(int32_t kind, const std::vector<ClassId>& operands) const;
  void MarkConstant(ENodeId id);
  absl::Status Repair(ClassId id);
  absl::Status Unite(ENodeId kept, ENodeId dropped);

  EGraphLimits limits_;
  UnionFind classes_;
  std::vector<ClassData> data_;
  std::vector<ENode> nodes_;
  std::vector<int32_t> kinds_of_;  // kind of every e-node
  std::vector<ENodeId> forward_;
  std::map<std::string, int32_t, std::less<>> kinds_;
  std::map<Key, ENodeId> table_;
  std::vector<ClassId> dirty_;
  int64_t live_nodes_ = 0;
  int64_t live_classes_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_EGRAPH_EGRAPH_H_
