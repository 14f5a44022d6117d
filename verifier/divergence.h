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
  /// By output: the number of elements that differ in this draw. These certainly differ formally;
  /// others may differ, too.
  std::vector<int64_t> differing;
  /// The earliest tensors of A, in its order, that have no equal tensor in B (up to a view)
  /// although all of their operands have one. Only those that a differing output depends on are
  /// listed.
  std::vector<DivergentTensor> earliest;
};

/// Inputs and outputs are matched by name. Returns Aborted if a denominator is zero in this draw,
/// and DeadlineExceeded.
absl::StatusOr<Divergence> FindDivergence(const Graph& a, const Graph& b, const Draw& draw,
                                          WeightMode weights, const Deadline& deadline);

/// Finds divergences of pairs of programs with the same outputs by the cheapest draws. Not
/// thread-safe.
class DivergenceSearch {
 public:
  DivergenceSearch(WeightMode weights, uint64_t seed, const Deadline& deadline)
      : weights_(weights), seed_(seed), deadline_(deadline) {}

  /// Evaluates under a small prime, and under a large one where some elements do not differ there.
  absl::StatusOr<Divergence> Find(const Graph& a, const Graph& b);
  /// The same if fewer than `limit` elements differ. Returns nullopt as soon as `limit` differing
  /// elements are known.
  absl::StatusOr<std::optional<Divergence>> FindFewer(const Graph& a, const Graph& b,
                                                      int64_t limit);
  /// Evaluations of both programs so far.
  int evaluations() const { return evaluations_; }

 private:
  absl::StatusOr<Divergence> Evaluate(const Graph& a, const Graph& b, const Draw& draw);
  absl::StatusOr<Divergence> UnderSmallPrime(const Graph& a, const Graph& b);
  absl::StatusOr<Divergence> UnderLargePrime(const Graph& a, const Graph& b);

  WeightMode weights_;
  uint64_t seed_;
  Deadline deadline_;
  int evaluations_ = 0;
};

/// Elements that differ, of all outputs together.
int64_t TotalDiffering(const Divergence& divergence);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_DIVERGENCE_H_
