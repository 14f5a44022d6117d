// An extraction in parts: classes that everything below them is read through cut the problem, so
// that its time grows with the number of parts, not with their product.
#ifndef MENDEL_OPTIMIZER_EGRAPH_PARTS_H_
#define MENDEL_OPTIMIZER_EGRAPH_PARTS_H_

#include <utility>
#include <vector>

#include "optimizer/egraph/choice_problem.h"

namespace mendel {

/// A class c cuts when whatever is reached from c is read through c alone: then the cheapest
/// program has the cheapest program of c wherever it computes c, and to what reads c it is a node
/// of that cost.
struct ProblemPart {
  ChoiceProblem problem;   ///< of this part alone, its own numbers; leaves are nodes with id -1 and
                           ///< no operands
  std::vector<int> nodes;  ///< number in the whole problem, by node; -1 for leaves
  std::vector<int> classes;  ///< by class
  /// Leaf node of this part, and the part that computes its class.
  std::vector<std::pair<int, size_t>> leaves;
};

/// The parts of `problem`, those that are read before those that read them; the last one contains
/// the roots. Costs of leaves are 0 and for the caller to set.
std::vector<ProblemPart> SplitIntoParts(const ChoiceProblem& problem);

/// True when nothing in the part is read twice or computed together with something else:
/// GreedyDerivation is then optimal.
bool IsTree(const ChoiceProblem& problem);

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_EGRAPH_PARTS_H_
