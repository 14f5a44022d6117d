#include "kernels/cuda/backend/program.h"

#include <utility>

#include "base/status.h"
#include "kernels/cuda/backend/buffer_assignment.h"
#include "kernels/cuda/backend/folded_values.h"
#include "kernels/cuda/backend/launch_graph.h"
#include "kernels/cuda/backend/partition.h"
#include "kernels/cuda/fusion/preamble.h"

namespace mendel::cuda {
namespace {

/// The first program, and with `others` those in other orders.
absl::StatusOr<std::vector<DeviceProgram>> Lower(const Graph& graph, const ProgramOptions& options,
                                                 bool others) {
  MENDEL_ASSIGN_OR_RETURN(
      const Partition partition,
      PartitionOf(graph, options.algorithms, options.numerics, options.libraries, options.engines));
  FoldedValues folded(partition.graph);
  MENDEL_ASSIGN_OR_RETURN(LaunchGraph launch_graph, BuildLaunchGraph(partition, folded));
  BufferAssignment assignment(partition.graph, options, partition.constant, std::move(launch_graph),
                              folded);
  const bool is_open = options.order == LaunchOrder::kFaster;
  std::vector<DeviceProgram> programs;
  programs.push_back(assignment.First(is_open ? LaunchOrder::kChain : options.order));
  if (!is_open || !others) return programs;
  for (DeviceProgram& other : assignment.Others()) programs.push_back(std::move(other));
  return programs;
}

}  // namespace

std::string DeviceProgram::ModuleText(size_t kernel) const {
  return PreambleText() + texts[kernel] + "\n";
}

std::string DeviceProgram::ModuleText() const {
  std::string text = PreambleText();
  for (const std::string& kernel : texts) text += kernel + "\n";
  return text;
}

absl::StatusOr<DeviceProgram> LowerToDevice(const Graph& graph, const ProgramOptions& options) {
  MENDEL_ASSIGN_OR_RETURN(std::vector<DeviceProgram> programs, Lower(graph, options, false));
  return std::move(programs[0]);
}

absl::StatusOr<std::vector<DeviceProgram>> LowerInOrders(const Graph& graph,
                                                         const ProgramOptions& options) {
  return Lower(graph, options, true);
}

}  // namespace mendel::cuda
