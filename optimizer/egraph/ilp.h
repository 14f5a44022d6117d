// Integer programs over 0/1 variables, solved by CBC (EPL-2.0; COIN-OR Branch and Cut). The only
// file that knows it is ilp.cc.
#ifndef MENDEL_OPTIMIZER_EGRAPH_ILP_H_
#define MENDEL_OPTIMIZER_EGRAPH_ILP_H_

#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace mendel {

/// sum of coefficient * variable >= lower.
struct IlpRow {
  std::vector<std::pair<int, double>> terms;
  double lower = 0;
};

struct IlpResult {
  bool infeasible = false;
  /// `chosen` is optimal.
  bool optimal = false;
  /// By variable; empty when no solution was found in time.
  std::vector<bool> chosen;
  /// No solution costs less.
  double bound = 0;
};

/// Minimizes the costs (at least 0) of the variables that are 1. Deterministic unless the time
/// limit cuts it short. Prints nothing. Thread-safe as CBC is: one call at a time.
absl::StatusOr<IlpResult> SolveBinary(const std::vector<double>& costs,
                                      const std::vector<IlpRow>& rows, double seconds);

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_EGRAPH_ILP_H_
