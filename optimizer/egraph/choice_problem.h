// A choice problem is the e-graph reduced to the e-nodes that can be part of a cheapest program:
// what an extraction has to choose.
#ifndef MENDEL_OPTIMIZER_EGRAPH_CHOICE_PROBLEM_H_
#define MENDEL_OPTIMIZER_EGRAPH_CHOICE_PROBLEM_H_

#include <map>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "optimizer/egraph/extract.h"

namespace mendel {

/// E-nodes and classes are numbered from 0 here. Left out are: classes that cost nothing (weights
/// and what is computed from them), e-nodes of infinite cost or with operands that nothing
/// computes, and e-nodes of one output for which another one of the class costs no more and reads
/// no other classes.
struct ChoiceProblem {
  struct ChoiceNode {
    ENodeId id = -1;
    double cost = 0;
    std::vector<int> operands;  ///< classes, each once
    std::vector<int> outputs;
  };
  std::vector<ChoiceNode> nodes;
  std::vector<ClassId> classes;
  std::vector<std::vector<int>> members;  ///< nodes, by class
  std::vector<std::vector<int>> readers;  ///< nodes, by class
  std::vector<int> roots;
  /// Computations of the classes that cost nothing.
  std::map<ClassId, EValue> free;
};

/// FailedPrecondition when nothing computes some root.
absl::StatusOr<ChoiceProblem> MakeChoiceProblem(const EGraph& egraph,
                                                const std::vector<ClassId>& roots,
                                                const std::vector<double>& cost);

/// Returns a node for each class, -1 where the class is not needed. It is derived from the leaves
/// upwards with `allowed` nodes only, then cut down to what the roots need. Nullopt when the
/// allowed nodes do not suffice (each one's operands would need it first).
std::optional<std::vector<int>> Derive(const ChoiceProblem& problem,
                                       const std::vector<bool>& allowed);

/// Cost of the nodes in a derivation, each once.
double CostOfDerivation(const ChoiceProblem& problem, const std::vector<int>& derivation);

/// A good program by dynamic programming over sets: every class keeps the cheapest set of nodes
/// found that computes it, where sets share what they have in common. `costs` by node.
std::vector<int> GreedyDerivation(const ChoiceProblem& problem, const std::vector<double>& costs);

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_EGRAPH_CHOICE_PROBLEM_H_
