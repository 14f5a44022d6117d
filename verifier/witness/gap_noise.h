// Rounding noise of both sides of a pair, and the gaps that exceed it.
#ifndef MENDEL_VERIFIER_WITNESS_GAP_NOISE_H_
#define MENDEL_VERIFIER_WITNESS_GAP_NOISE_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "verifier/witness/witness.h"
#include "verifier/witness/witness_pair.h"

namespace mendel {

/// Estimates noise (float_noise.h) with as many runs as a decision needs. One thread at a time.
class GapNoise {
 public:
  /// By element, row-major; one entry an output of a pair.
  using Noise = std::vector<std::vector<double>>;

  /// `joint`: both programs (JoinByValue); it outlives this object.
  GapNoise(const Graph& joint, uint64_t seed) : joint_(joint), seed_(seed) {}

  /// Evaluations of `pairs` are so costly that few runs have to do.
  static bool IsCostly(const Graph& pairs);

  /// Noise of all outputs of `pairs` (RestrictPair), whose values are `values`. Runs after the
  /// first are spared where its noise is far below all gaps. Where one run has to do, an element
  /// has at least the median noise of its output.
  absl::StatusOr<Noise> OfPairs(const Graph& pairs, const std::vector<HostValue>& inputs,
                                const std::vector<HostValue>& values);

  /// The largest gap of a query beyond noise, which is raised to that of many runs element by
  /// element until a gap stays visible. `costly`: the noise at hand has to do.
  absl::StatusOr<VisibleGap> Visible(const WitnessQuery& query,
                                     const std::vector<HostValue>& inputs, const HostValue& f,
                                     const HostValue& g, std::vector<double>& noise_f,
                                     std::vector<double>& noise_g, bool costly);

  /// Work of all runs so far.
  double flops() const { return flops_; }

 private:
  absl::StatusOr<Noise> Runs(const Graph& pairs, const std::vector<HostValue>& inputs,
                             const std::vector<HostValue>& values, bool once, bool costly);
  absl::StatusOr<std::pair<double, double>> OfElement(const WitnessQuery& query,
                                                      const std::vector<HostValue>& inputs,
                                                      int64_t flat);

  const Graph& joint_;
  const uint64_t seed_;
  double flops_ = 0;
};

}  // namespace mendel

#endif  // MENDEL_VERIFIER_WITNESS_GAP_NOISE_H_
