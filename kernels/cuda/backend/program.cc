#include "kernels/cuda/backend/program.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "graph/loop.h"
#include "kernels/cuda/backend/buffer_assignment.h"
#include "kernels/cuda/backend/folded_values.h"
#include "kernels/cuda/backend/launch_graph.h"
#include "kernels/cuda/backend/partition.h"
#include "kernels/cuda/fusion/preamble.h"

namespace mendel::cuda {
namespace {

/// Longer loops would be tens of thousands of launches.
constexpr int64_t kMostUnrolled = 1024;

/// The first program, and with `others` those in other orders, of a graph without loops.
absl::StatusOr<std::vector<DeviceProgram>> LowerSteps(const Graph& graph,
                                                      const ProgramOptions& options, bool others) {
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

/// The nodes that `nodes` come from, each once.
std::vector<int32_t> OriginsOf(const std::vector<int32_t>& nodes,
                               const std::vector<int32_t>& origins) {
  std::vector<int32_t> result;
  for (const int32_t node : nodes) {
    const int32_t origin = origins[static_cast<size_t>(node)];
    if (std::find(result.begin(), result.end(), origin) == result.end()) result.push_back(origin);
  }
  return result;
}

/// LowerSteps of any graph: loops are unrolled, and launches name the loops that they are steps of.
absl::StatusOr<std::vector<DeviceProgram>> Lower(const Graph& graph, const ProgramOptions& options,
                                                 bool others) {
  if (!HasLoop(graph)) return LowerSteps(graph, options, others);
  std::vector<int32_t> origins;
  MENDEL_ASSIGN_OR_RETURN(const Graph unrolled, UnrollLoops(graph, &origins, kMostUnrolled));
  ProgramOptions inner = options;
  inner.algorithms.clear();
  inner.engines.clear();
  for (size_t i = 0; i < origins.size(); ++i) {
    const int32_t id = static_cast<int32_t>(i);
    if (const auto found = options.algorithms.find(origins[i]); found != options.algorithms.end())
      inner.algorithms[id] = found->second;
    if (const auto found = options.engines.find(origins[i]); found != options.engines.end())
      inner.engines[id] = found->second;
  }
  MENDEL_ASSIGN_OR_RETURN(std::vector<DeviceProgram> programs, LowerSteps(unrolled, inner, others));
  for (DeviceProgram& program : programs) {
    for (DeviceLaunch& launch : program.launches) {
      launch.info.nodes = OriginsOf(launch.info.nodes, origins);
      launch.info.requested_by = OriginsOf(launch.info.requested_by, origins);
    }
  }
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
