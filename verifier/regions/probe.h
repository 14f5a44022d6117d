// Two programs as one, and chosen boxes of their outputs under random tests.
#ifndef MENDEL_VERIFIER_REGIONS_PROBE_H_
#define MENDEL_VERIFIER_REGIONS_PROBE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/random.h"
#include "graph/graph.h"
#include "verifier/verifier.h"

namespace mendel {

/// Both programs over one set of inputs, what they have in common computed once: outputs 0 .. n-1
/// are those of f, n .. 2n-1 those of g. Symbols are renamed in symbolic mode (name and type) and
/// dropped in exact mode. InvalidArgument when inputs or outputs differ in number or type.
absl::StatusOr<Graph> JoinPrograms(const Graph& f, const Graph& g, WeightMode weights);

/// A box of output `output` of both programs.
struct Probe {
  int output = 0;
  Box box;
};

/// The elements of each probe that differ in some test, row-major in the probe's box, and how much
/// that proves.
struct ProbeResult {
  std::vector<std::vector<bool>> differs;
  /// log2 of the probability that an element that differs was not noticed; minus infinity without
  /// probes.
  double bound_log2 = 0;
  int tests = 0;
  std::string reason;  ///< why less was tested than `target_log2` requests
};

/// Evaluates the probes of `joint` (JoinPrograms): once under a small prime, which finds most of
/// what differs, and those that do not all differ there under as many certifying draws from `rng`
/// as `target_log2` needs, at least one and at most max_tests. target_log2 >= 0 requests no bound,
/// for tiers that a certificate follows: two tests (or max_tests) under small primes, nothing else.
/// Aborted when denominators stay zero, DeadlineExceeded. Probes whose values need more than
/// `max_bytes` at once are evaluated in parts, as far as cutting them helps.
absl::StatusOr<ProbeResult> RunProbes(const Graph& joint, const std::vector<Probe>& probes,
                                      const VerifierOptions& options, double target_log2, Rng& rng,
                                      int64_t max_bytes = int64_t{256} << 20);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_REGIONS_PROBE_H_
