// Memory for the launches of a draft, in one order of them or in several.
#ifndef MENDEL_KERNELS_CUDA_BACKEND_PLACEMENT_H_
#define MENDEL_KERNELS_CUDA_BACKEND_PLACEMENT_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "kernels/cuda/backend/folded_values.h"
#include "kernels/cuda/backend/program.h"
#include "kernels/cuda/backend/program_draft.h"
#include "runtime/memory_planner.h"

namespace mendel::cuda {

/// Refers to all that it is given but the draft. Not thread-safe.
class Placement {
 public:
  /// Places the constants, which are the same in every order. `constant`: by node, what depends on no input.
  Placement(const Graph& graph, const ProgramOptions& options, const std::vector<bool>& constant, ProgramDraft draft,
            FoldedValues& folded);

  /// With the kernels' texts and the constants. Once.
  DeviceProgram First(LaunchOrder order);
  /// Without these: all orders that neither are kChain nor launch the same as it.
  std::vector<DeviceProgram> Others();

 private:
  DeviceProgram InOrder(LaunchOrder order);
  void Arrange(LaunchOrder order);
  void ArrangeByLevel();
  const LaunchDraft& DraftAt(size_t step) const { return draft_.launches[sequence_[step]]; }
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
  const ProgramDraft draft_;
  FoldedValues& folded_;
  std::vector<ValueUse> uses_;                   // of the draft's launches
  DeviceProgram constants_;                      // weights, uploads and their allocations
  std::map<std::string, DeviceBuffer> weights_;  // by content
  std::map<ValueId, DeviceBuffer> constant_places_;
  std::vector<std::vector<DeviceBuffer>> tables_;  // that a kernel brings along, by the draft's launches
  // Of one order.
  std::vector<size_t> sequence_;  // of the draft's launches
  std::vector<int> steps_;        // by which memory is planned: one a launch, ascending
  std::map<ValueId, BufferLifetime> lives_;
  std::map<ValueId, DeviceBuffer> places_;
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_BACKEND_PLACEMENT_H_
