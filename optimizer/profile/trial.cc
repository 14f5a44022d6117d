#include "optimizer/profile/trial.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "runtime/measure.h"

namespace mendel {
namespace {

constexpr uint64_t kInputSeed = 20170317;

/// The lower one of two: what disturbs a run makes it longer.
double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

Trial::Trial(const Graph& graph) : inputs_(RandomInputs(graph, kInputSeed)) {
  for (const Tensor& input : inputs_) sources_.push_back(input.bytes());
  for (const GraphOutput& output : graph.outputs())
    outputs_.emplace_back(static_cast<size_t>(ByteSize(graph.type(output.value))));
  for (auto& bytes : outputs_) sinks_.emplace_back(bytes);
}

absl::StatusOr<const OutputBytes*> Trial::Run(Executable& executable) {
  MENDEL_RETURN_IF_ERROR(executable.Run(sources_, sinks_));
  return &outputs_;
}

absl::StatusOr<std::vector<std::vector<double>>> Trial::StepMedians(
    std::span<Executable* const> executables, const Limits& limits) {
  std::vector<std::vector<std::vector<double>>> times(executables.size());
  const Deadline enough = Deadline::After(limits.seconds);
  for (int run = 0; run < limits.max_runs; ++run) {
    if (run >= limits.min_runs && enough.Passed()) break;
    if (run >= 1 && limits.deadline.Passed()) break;
    for (size_t k = 0; k < executables.size(); ++k) {
      std::vector<double> seconds;
      MENDEL_RETURN_IF_ERROR(executables[k]->RunTimed(sources_, sinks_, seconds));
      times[k].resize(seconds.size());
      for (size_t step = 0; step < seconds.size(); ++step) times[k][step].push_back(seconds[step]);
    }
  }
  std::vector<std::vector<double>> medians(executables.size());
  for (size_t k = 0; k < executables.size(); ++k) {
    for (auto& step : times[k]) medians[k].push_back(Median(std::move(step)));
  }
  return medians;
}

}  // namespace mendel
