// Matrices of running sums: each row is one number over a prefix, or over a suffix, and zero
// elsewhere.
#ifndef MENDEL_GRAPH_RUNNING_SUMS_H_
#define MENDEL_GRAPH_RUNNING_SUMS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "graph/tensor.h"

namespace mendel {

/// Row i times a vector x is `scale` times the sum of x[0, bounds[i]), or of x[bounds[i], columns)
/// where the rows are suffixes.
struct RunningSums {
  double scale = 1;
  bool suffixes = false;
  std::vector<int64_t> bounds;
};

/// The tensor's last two dimensions as running sums, all others being 1; of its transpose if
/// `transposed`. nullopt: they are none, or all rows are equal.
std::optional<RunningSums> RunningSumsOf(const Tensor& tensor, bool transposed = false);

/// True for a triangle of one repeated number, zero on the other side of a diagonal: the bounds
/// grow by one a row, and take at least three values. No training makes such numbers, so that they
/// count as part of the program.
bool IsTriangle(const Tensor& tensor);

}  // namespace mendel

#endif  // MENDEL_GRAPH_RUNNING_SUMS_H_
