// Matrices that sum: each row is one number over a run of columns, and zero elsewhere. Runs that
// are prefixes, or suffixes, make running sums.
#ifndef MENDEL_GRAPH_RUNNING_SUMS_H_
#define MENDEL_GRAPH_RUNNING_SUMS_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "graph/tensor.h"

namespace mendel {

/// Columns [begin, end); both are 0 where it is empty.
struct RowRun {
  int64_t begin = 0;
  int64_t end = 0;

  auto operator<=>(const RowRun&) const = default;
};

/// Row i times a vector x is `scale` times the sum of x[runs[i].begin, runs[i].end).
struct RowRuns {
  double scale = 0;  ///< finite; 0 where the matrix is zero
  std::vector<RowRun> runs;
};

/// The tensor's last two dimensions as runs, all others being 1; of its transpose if `transposed`.
/// nullopt: some row has two runs or two numbers, or two rows differ in their number.
std::optional<RowRuns> RowRunsOf(const Tensor& tensor, bool transposed = false);

/// Row i times a vector x is `scale` times the sum of x[0, bounds[i]), or of x[bounds[i], columns)
/// where the rows are suffixes.
struct RunningSums {
  double scale = 1;
  bool suffixes = false;
  std::vector<int64_t> bounds;
};

/// Runs that are all prefixes or all suffixes. nullopt: they are not, or all rows are equal.
std::optional<RunningSums> RunningSumsOf(const Tensor& tensor, bool transposed = false);

/// True for a triangle of one repeated number, zero on the other side of a diagonal: the bounds
/// grow by one a row, and take at least three values. No training makes such numbers, so that they
/// count as part of the program.
bool IsTriangle(const Tensor& tensor);

}  // namespace mendel

#endif  // MENDEL_GRAPH_RUNNING_SUMS_H_
