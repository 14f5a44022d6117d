// Timing of executables, and random inputs for timing and for the numeric gate.
#ifndef MENDEL_RUNTIME_MEASURE_H_
#define MENDEL_RUNTIME_MEASURE_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "graph/graph.h"
#include "graph/tensor.h"
#include "runtime/backend.h"

namespace mendel {

/// Times of one executable in milliseconds: of Executable::TimeRun, the wall clock on the host, a
/// GPU's own events there.
struct Timing {
  double median_ms = 0;
  double min_ms = 0;
  double p90_ms = 0;
  /// (third quartile - first quartile) / median.
  double spread = 0;
  int runs = 0;
};

struct MeasureOptions {
  /// Rounds go on until both minima are reached, or one of the maxima or the deadline is. A round
  /// runs every executable once.
  double min_seconds = 0.5;
  int min_runs = 10;
  double max_seconds = 10;
  int max_runs = 100000;
  /// Times of every round so far, as MeasureRounds returns them.
  using Rounds = std::vector<std::vector<double>>;
  /// Asked once, when the limits above are reached (whoever looks after every round finds what he
  /// looks for): for how many more seconds rounds go on; 0: they are enough. The deadline still
  /// holds. Null: they always are.
  std::function<double(const Rounds&)> more_seconds = nullptr;
  /// Unmeasured rounds before: at least one unless all executables have run before (first runs
  /// allocate).
  int warmup = 2;
  /// Evict the caches before every run, the host's by touching a buffer of 64 MiB, a GPU's by
  /// writing one of twice its L2 cache: weights and activations then come from memory, as in a
  /// program that does something else between two inferences.
  bool cold = false;
  Deadline deadline = Deadline::Never();
};

/// Summary of single times in milliseconds (any order, at least one).
Timing Summarize(std::vector<double> times_ms);

/// Times executables of graphs with the same inputs and outputs, interleaved (A B C, A B C, ...) so
/// that slow drifts of the machine's speed hit all alike. `graph` gives the types of the outputs.
/// At least one round is measured whatever the limits. The first error of a run is returned.
absl::StatusOr<std::vector<Timing>> MeasureInterleaved(std::span<Executable* const> executables,
                                                       const Graph& graph,
                                                       std::span<const Tensor> inputs,
                                                       const MeasureOptions& options);
/// The same, with every single time in milliseconds: a list an executable, an entry a round.
absl::StatusOr<std::vector<std::vector<double>>> MeasureRounds(
    std::span<Executable* const> executables, const Graph& graph, std::span<const Tensor> inputs,
    const MeasureOptions& options);

/// Half-open range that the elements of graph input number `input` (its position in graph.inputs())
/// must lie in when it is integral: the smallest table that it, or a value copied from it, indexes
/// (Gather and its kin); [0, 2) when it indexes nothing, as a mask would.
int64_t IndexLimit(const Graph& graph, size_t input);

/// Deterministic inputs in the order of graph.inputs(): floats standard normal, integers uniform in
/// [0, IndexLimit), bool a fair coin. The same seed gives the same tensors on every machine.
std::vector<Tensor> RandomInputs(const Graph& graph, uint64_t seed);

}  // namespace mendel

#endif  // MENDEL_RUNTIME_MEASURE_H_
