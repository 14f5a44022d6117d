// One graph's executables on one set of inputs: their outputs, and the times of their steps.
#ifndef MENDEL_OPTIMIZER_PROFILE_TRIAL_H_
#define MENDEL_OPTIMIZER_PROFILE_TRIAL_H_

#include <cstddef>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "graph/graph.h"
#include "graph/tensor.h"
#include "optimizer/output_check.h"
#include "runtime/backend.h"

namespace mendel {

/// Contains the inputs that every measurement of the profiler uses, and room for the outputs.
class Trial {
 public:
  explicit Trial(const Graph& graph);

  const std::vector<Tensor>& inputs() const { return inputs_; }
  /// Runs once; the result stays valid until the next run.
  absl::StatusOr<const OutputBytes*> Run(Executable& executable);

  struct Limits {
    int min_runs = 3;
    int max_runs = 50;
    double seconds = 1;
    /// Once it has passed, one run is enough.
    Deadline deadline = Deadline::Never();
  };
  /// Median seconds of every step, over interleaved runs of executables that have run before.
  absl::StatusOr<std::vector<std::vector<double>>> StepMedians(
      std::span<Executable* const> executables, const Limits& limits);

 private:
  std::vector<Tensor> inputs_;
  std::vector<std::span<const std::byte>> sources_;
  OutputBytes outputs_;
  std::vector<std::span<std::byte>> sinks_;
};

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_PROFILE_TRIAL_H_
