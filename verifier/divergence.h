// Where two programs part under one draw: how many elements of each output, and from which tensors on.
#ifndef MENDEL_VERIFIER_DIVERGENCE_H_
#define MENDEL_VERIFIER_DIVERGENCE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "graph/graph.h"
#include "verifier/compare.h"
#include "verifier/verifier.h"

namespace mendel {

struct Divergence {
  /// An output: elements that differ in this draw. They differ formally; others may.
  std::vector<int64_t> differing;
  /// Tensors of A, in its order, that no tensor of B equals element for element (up to a view) while every operand is equalled,
  /// and from which tensors without an equal lead to a differing output.
  std::vector<DivergentTensor> earliest;
};

/// Inputs and outputs are matched by name. Aborted: a zero denominator; DeadlineExceeded.
absl::StatusOr<Divergence> FindDivergence(const Graph& a, const Graph& b, const Draw& draw, WeightMode weights,
                                          const Deadline& deadline);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_DIVERGENCE_H_
