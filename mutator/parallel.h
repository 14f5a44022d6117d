// Operators that stand side by side and can be computed as one.
#ifndef MENDEL_MUTATOR_PARALLEL_H_
#define MENDEL_MUTATOR_PARALLEL_H_

#include <functional>
#include <vector>

#include "graph/graph.h"
#include "mutator/rule.h"

namespace mendel {

/// For every node: the set of nodes it depends on, as bits. Quadratic in memory, so only for graphs of some thousand nodes;
/// larger graphs get an empty result and no such mutants.
class Reachability {
 public:
  explicit Reachability(const Graph& graph);
  bool known() const { return !ancestors_.empty(); }
  /// Does `node` depend on `ancestor`?
  bool Depends(int32_t node, int32_t ancestor) const {
    return ancestors_[static_cast<size_t>(node)][static_cast<size_t>(ancestor)];
  }

 private:
  std::vector<std::vector<bool>> ancestors_;
};

/// Groups (ascending ids, at least two) of mutually independent nodes among `candidates`; greedy, deterministic. A group is
/// closed when a candidate depends on one of its members.
std::vector<std::vector<int32_t>> IndependentGroups(const Graph& graph, const std::vector<int32_t>& candidates);

/// The value of `inputs` (Emitter::InputsOf(subprogram)) that stands for `value`, an input of the subprogram (CHECK).
ValueId OperandOf(const Graph& subprogram, ValueId value, const std::vector<ValueId>& inputs);

/// True when `value` is a weight: a constant or an expression of constants.
bool IsWeight(const Graph& graph, ValueId value);

}  // namespace mendel

#endif  // MENDEL_MUTATOR_PARALLEL_H_
