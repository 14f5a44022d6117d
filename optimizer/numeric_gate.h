// The numeric gate compares baseline and plan, in their own precision, with float64
// (docs/verification.md, "The numeric gate").
#ifndef MENDEL_OPTIMIZER_NUMERIC_GATE_H_
#define MENDEL_OPTIMIZER_NUMERIC_GATE_H_

#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "mendel/plan.pb.h"
#include "optimizer/profile/profiler.h"

namespace mendel {

/// Below this magnitude a float32 has lost precision to denormals, and a backend may flush them:
/// errors are taken relative to at least this.
inline constexpr double kSmallestScale = 0x1p-126 / 0x1p-23;

struct GateOptions {
  uint64_t seed = 1;
  /// Inputs by name instead of the random ones (`--data`); edge inputs are then left out.
  std::vector<std::map<std::string, Tensor>> samples;
  /// The plan's error may be the larger of AllowedError and this times the baseline's.
  double factor = 4;
  /// Edge inputs (zeros, large, denormal, one-hot) are evaluated while the reference needs fewer
  /// flops than this in all.
  double edge_flops = 4e9;
  /// Inputs that are not compared by then are left out.
  Deadline limit = Deadline::Never();
  /// Once it is true, inputs after the first are left out.
  const std::atomic<bool>* interrupted = nullptr;
};

struct GateResult {
  std::vector<plan::NumericResult> outputs;  ///< worst over all inputs
  int inputs = 0;                            ///< compared; with none, `outputs` is empty
  int left_out = 0;  ///< inputs that the limit or an interrupt left no time for
  double reference_seconds = 0;
  bool passed = true;
  std::string failure;  ///< names the output when not passed
};

/// Runs `baseline` and `plan` on the backend, in the profiler's numerics class, and `original` in
/// double precision. Under `int8` the baseline runs in f32 (`default`). An error only when
/// something cannot run.
absl::StatusOr<GateResult> NumericGate(const Graph& original, const Variant& baseline,
                                       const Variant& plan, const Profiler& profiler,
                                       const GateOptions& options);

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_NUMERIC_GATE_H_
