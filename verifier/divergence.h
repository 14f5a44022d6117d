// Divergence of two programs under one draw: the number of differing elements of each output, and
// the tensors where it begins.
#ifndef MENDEL_VERIFIER_DIVERGENCE_H_
#define MENDEL_VERIFIER_DIVERGENCE_H_

#include <cstdint>
#include <optional>
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
  /// Tensors of A, in its order, that no tensor of B equals element for element (up to a view)
  /// while every operand is equalled, and from which tensors without an equal lead to a differing
  /// output.
  std::vector<DivergentTensor> earliest;
};

/// Inputs and outputs are matched by name. Aborted: a zero denominator; DeadlineExceeded.
absl::StatusOr<Divergence> FindDivergence(const Graph& a, const Graph& b, const Draw& draw,
                                          WeightMode weights, const Deadline& deadline);

/// Divergences of pairs of programs with the same outputs, each at the least price. Not
/// thread-safe.
class DivergenceSearch {
 public:
  DivergenceSearch(WeightMode weights, uint64_t seed, const Deadline& deadline)
      : weights_(weights), seed_(seed), deadline_(deadline) {}

  /// Evaluates under a small prime, and under a large one where some elements do not differ there.
  absl::StatusOr<Divergence> Find(const Graph& a, const Graph& b);
  /// The same where fewer than `limit` elements differ; nothing as soon as it is known that there
  /// are as many.
  absl::StatusOr<std::optional<Divergence>> FindFewer(const Graph& a, const Graph& b,
                                                      int64_t limit);
  /// Evaluations of both programs so far.
  int evaluations() const { return evaluations_; }

 private:
  absl::StatusOr<Divergence> Evaluate(const Graph& a, const Graph& b, const Draw& draw);
  /// Under the small prime.
  absl::StatusOr<Divergence> Glance(const Graph& a, const Graph& b);
  absl::StatusOr<Divergence> Look(const Graph& a, const Graph& b);

  WeightMode weights_;
  uint64_t seed_;
  Deadline deadline_;
  int evaluations_ = 0;
};

/// Elements that differ, of all outputs together.
int64_t TotalDiffering(const Divergence& divergence);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_DIVERGENCE_H_
