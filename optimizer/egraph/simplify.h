// A choice problem without what is decided: most classes of an e-graph have one e-node, and most
// alternatives are dearer than another one that needs no more.
#ifndef MENDEL_OPTIMIZER_EGRAPH_SIMPLIFY_H_
#define MENDEL_OPTIMIZER_EGRAPH_SIMPLIFY_H_

#include <vector>

#include "optimizer/egraph/choice_problem.h"

namespace mendel {

/// Choices that touch no other ones.
struct ProblemPiece {
  ChoiceProblem problem;                ///< its own numbers; nodes have id -1
  std::vector<std::vector<int>> nodes;  ///< nodes of the whole problem that a node stands for
};

struct SimplifiedProblem {
  std::vector<ProblemPiece> pieces;
  /// Nodes of the whole problem that some cheapest program uses, and some that cost nothing; `cost`
  /// is what they cost together.
  std::vector<int> settled;
  double cost = 0;
};

/// Cheapest programs of all pieces and the settled nodes are together a cheapest program of
/// `problem`. Repeated until nothing changes:
/// - a node that can be computed only after what it would compute is of no use there;
/// - a class that every program computes is computed, and who reads it need not ask; if one node
/// alone computes it, so is that one's cost;
/// - a class of one node that one node reads is a step of the latter;
/// - of two nodes of a class the one that costs no more and reads no other classes remains.
/// A class on a cycle stays an operand of what reads it, so that the pieces' derivations are
/// derivations of the whole.
SimplifiedProblem Simplify(const ChoiceProblem& problem);

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_EGRAPH_SIMPLIFY_H_
