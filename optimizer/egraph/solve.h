// The exact and the greedy method on one choice problem.
#ifndef MENDEL_OPTIMIZER_EGRAPH_SOLVE_H_
#define MENDEL_OPTIMIZER_EGRAPH_SOLVE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "optimizer/egraph/choice_problem.h"

namespace mendel {

struct SolveOptions {
  Deadline deadline = Deadline::Never();
  /// False: greedy only.
  bool exact = true;
  /// Refuses derivations for other reasons than their cost; null: none is.
  std::function<bool(const std::vector<int>&)> accepts;
};

struct Solution {
  bool found = false;
  std::vector<int> derivation;  ///< as Derive gives it
  double cost = 0;
  double lower_bound = 0;
  std::string method;   ///< "ilp" or "greedy": what found or proved it
  int64_t columns = 0;  ///< columns of the integer programs that were solved
  int64_t rows = 0;
  int64_t loop_cuts = 0;
};

/// The cheapest derivation of the problem's roots, as far as the deadline allows.
absl::StatusOr<Solution> SolveChoice(const ChoiceProblem& problem, const SolveOptions& options);

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_EGRAPH_SOLVE_H_
