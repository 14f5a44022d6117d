// The whole optimizer as one function: from a graph to a certified plan.
#ifndef MENDEL_OPTIMIZER_PIPELINE_H_
#define MENDEL_OPTIMIZER_PIPELINE_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "optimizer/numeric_gate.h"
#include "optimizer/profile/profile_cache.h"
#include "optimizer/search/search.h"
#include "runtime/plan.h"
#include "verifier/verifier.h"

namespace mendel {

struct OptimizeOptions {
  std::string backend = "cpu";
  /// Replaces the registered backend of that name (runtime/offline_device.h); must outlive the
  /// call. With `costs`, the plan is unmeasured.
  const Backend* device = nullptr;
  int threads = 1;
  /// CPUs that programs run on while they are measured, "none", "cores" or a list (ChooseCpus,
  /// runtime/cpu_topology.h); no part of the plan.
  std::string affinity = "none";
  Numerics numerics = Numerics::kDefault;
  bool refuse_int8 = false;  ///< `default` stays what it is for a quantized model, too
  SearchOptions search;
  GateOptions gate;
  /// The verifier's; fixed draws are for tests only. Weights exact: rules may use stored numbers
  /// (stored_values.h); where they can, the plan holds for the stored weights only.
  VerifierOptions verifier;
  /// Seconds for a certificate; 0: AutomaticCertifyLimit, and no limit for the baseline's own. A
  /// plan that takes longer is dropped for the baseline (notices).
  double certify_seconds = 0;
  /// Seconds for the numeric gate; 0: AutomaticGateLimit. Inputs that do not fit are left out
  /// (notices); a plan with mutants of which none fits is dropped for the baseline.
  double gate_seconds = 0;
  bool error_on_cache_miss = false;
  /// Seconds that are taken for measured ones (ProfilerOptions::costs).
  CostFunction costs = nullptr;
  /// The plan stores it, for reports.
  std::string model_name;
  std::string model_hash;
  std::string mendel_version;
};

struct OptimizeResult {
  Plan plan;
  Certificate certificate;
  GateResult gate;
  SearchResult search;
  bool certificate_reused = false;
  /// Decisions in the caller's place, one sentence each (a numerics class that the gate
  /// refused), or options of no use to him (one that adds no algorithm).
  std::vector<std::string> notices;
  /// Seconds a phase, in order. Not part of the plan: equal inputs give equal plans.
  std::vector<std::pair<std::string, double>> phases;
};

/// Normalizes, searches, certifies against `original`, checks the numbers and assembles the plan.
/// The caller's graph does not change. When the numeric gate refuses the plan's numbers, the next
/// stricter class is tried, and after `strict` the baseline; `notices` says so.
/// Errors: Unimplemented when the verifier cannot decide even a plan without mutants;
/// DeadlineExceeded when it has no time for that; Internal when it refuses a chosen mutant.
absl::StatusOr<OptimizeResult> Optimize(const Graph& original, const OptimizeOptions& options,
                                        ProfileCache& cache);

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_PIPELINE_H_
