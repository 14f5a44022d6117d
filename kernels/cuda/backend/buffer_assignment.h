// Memory for the launches of a launch graph, in one order of them or in several.
#ifndef MENDEL_KERNELS_CUDA_BACKEND_BUFFER_ASSIGNMENT_H_
#define MENDEL_KERNELS_CUDA_BACKEND_BUFFER_ASSIGNMENT_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "kernels/cuda/backend/folded_values.h"
#include "kernels/cuda/backend/launch_graph.h"
#include "kernels/cuda/backend/program.h"
#include "runtime/memory_planner.h"

namespace mendel::cuda {

/// Refers to all that it is given but the launch graph. Not thread-safe.
class BufferAssignment {
 public:
  /// Places the constants, which are the same in every order. `constant`: by node, what depends on
  /// no input.
  BufferAssignment(const Graph& graph, const ProgramOptions& options,
                   const std::vector<bool>& constant, LaunchGraph launch_graph,
                   FoldedValues& folded);

  /// With the kernels' texts and the constants. Once.
  DeviceProgram First(LaunchOrder order);
  /// Without these: all orders that neither are kChain nor launch the same as it.
  std::vector<DeviceProgram> Others();

 private:
  DeviceProgram InOrder(LaunchOrder order);
  void Arrange(LaunchOrder order);
  void ArrangeByLevel();
  const LaunchNode& NodeAt(size_t step) const { return launch_graph_.launches[sequence_[step]]; }
  bool IsConstantValue(ValueId value) const { return constant_[static_cast<size_t>(value.node)]; }

  int64_t BytesOf(ValueId value) const;
  void Life(ValueId value, int step);
  void FindLives();
  MemoryPlan PlannedMemory();
  void PlaceConstants();
  void PlaceValues(DeviceProgram& program);
  void AddCopies(DeviceProgram& program);
  DeviceBuffer PlaceOfValue(DeviceProgram& program, int64_t offset, int64_t bytes) const;
  DeviceBuffer PlaceOf(ValueId value);
  DeviceBuffer Weights(const Tensor& tensor);

  const Graph& graph_;
  const ProgramOptions& options_;
  const std::vector<bool>& constant_;
  const LaunchGraph launch_graph_;
  FoldedValues& folded_;
  std::vector<ValueUse> uses_;                   // uses of the launch graph's launches
  DeviceProgram constants_;                      // weights, uploads and their allocations
  std::map<std::string, DeviceBuffer> weights_;  // by content
  std::map<ValueId, DeviceBuffer> constant_places_;
  std::vector<std::vector<DeviceBuffer>>
      tables_;  // that a kernel brings along, by the launch graph's launches
  // Of one order.
  std::vector<size_t> sequence_;  // sequence of the launch graph's launches
  std::vector<int> steps_;        // by which memory is planned: one a launch, ascending
  std::map<ValueId, BufferLifetime> lives_;
  std::map<ValueId, DeviceBuffer> places_;
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_BACKEND_BUFFER_ASSIGNMENT_H_
