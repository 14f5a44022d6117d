// Loops that choose themselves: classes that are computed only from one another, and what forbids
// that in the integer program.
#ifndef MENDEL_OPTIMIZER_EGRAPH_LOOPS_H_
#define MENDEL_OPTIMIZER_EGRAPH_LOOPS_H_

#include <vector>

#include "optimizer/egraph/choice_problem.h"
#include "optimizer/egraph/ilp.h"

namespace mendel {

/// Sets of classes, each strongly connected by chosen nodes and not computed from outside: where a
/// chosen program goes round in circles. `chosen` contains a node for every root and every operand
/// of a chosen node. Empty exactly when the roots can be derived.
std::vector<std::vector<int>> UnfoundedLoops(const ChoiceProblem& problem,
                                             const std::vector<bool>& chosen);

/// For every node that reads a class of the loop: it is not chosen, or some node is that computes a
/// class of the loop and reads none. Every program without cycles satisfies these rows; the
/// solution in which `loop` was found does not.
std::vector<IlpRow> LoopCuts(const ChoiceProblem& problem, const std::vector<int>& loop);

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_EGRAPH_LOOPS_H_
