// Operators that stand side by side and can be computed as one.
#ifndef MENDEL_MUTATOR_PARALLEL_H_
#define MENDEL_MUTATOR_PARALLEL_H_

#include <functional>
#include <vector>

#include "graph/emitter.h"
#include "graph/graph.h"
#include "mutator/rule.h"

namespace mendel {

/// Groups (at least two) of mutually independent nodes among `candidates` (ascending); greedy,
/// deterministic. A group is closed when a candidate depends on one of its members, or stands 4096
/// nodes behind its first. Visits every node between the first candidate and the last once.
std::vector<std::vector<int32_t>> IndependentGroups(const Graph& graph,
                                                    const std::vector<int32_t>& candidates);

/// Nodes that share the value that is their operand number `operand`.
struct Siblings {
  size_t operand = 0;
  bool (*takes_part)(const Graph& graph, int32_t node) = nullptr;
  /// An equivalence among those that take part; null: all are alike.
  bool (*alike)(const Graph& graph, int32_t a, int32_t b) = nullptr;
};

/// The independent groups of all siblings of a graph.
std::vector<std::vector<int32_t>> SiblingGroups(const Graph& graph, const Siblings& siblings);

/// The group that ends with `node` among nodes for which `like` holds, at most `max_members`, out
/// of the `max_members` nearest before `node` (4096 nodes at most) and `node` itself; empty when
/// there is none.
std::vector<int32_t> GroupEndingAt(const Graph& graph, int32_t node, size_t max_members,
                                   const std::function<bool(int32_t)>& like);

/// The value that stands in `e` for `value` of the subprogram: one of `inputs`
/// (Emitter::InputsOf(subprogram)), or a copy when it is a weight. CHECK-fails for other values.
ValueId OperandOf(Emitter& e, const Graph& subprogram, ValueId value,
                  const std::vector<ValueId>& inputs);

/// True when `value` is a weight: a constant or an expression of constants.
bool IsWeight(const Graph& graph, ValueId value);

/// True when a convolution (or product with a bias) takes its bias, operand 2, from run-time data:
/// it cannot be folded.
bool HasRunTimeBias(const Graph& graph, const Node& node);

}  // namespace mendel

#endif  // MENDEL_MUTATOR_PARALLEL_H_
