// A graph as launches whose memory is not planned yet.
#ifndef MENDEL_KERNELS_CUDA_BACKEND_PROGRAM_DRAFT_H_
#define MENDEL_KERNELS_CUDA_BACKEND_PROGRAM_DRAFT_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "kernels/cuda/backend/folded_values.h"
#include "kernels/cuda/backend/launch_draft.h"
#include "kernels/cuda/backend/outline.h"

namespace mendel::cuda {

/// Launches in an order that computes the graph, and whose memory is not a value's own.
struct ProgramDraft {
  std::vector<LaunchDraft> launches;
  std::map<ValueId, ValueId> homes;    ///< of results that overwrite what they correct
  std::map<ValueId, int64_t> scratch;  ///< bytes of buffers that the graph does not have

  /// The value in whose memory `value` lies: its own, or what a correction has written over.
  ValueId Home(ValueId value) const {
    const auto home = homes.find(value);
    return home == homes.end() ? value : home->second;
  }
  ValueUse UseOf(const LaunchDraft& launch, const std::vector<bool>& constant) const;
};

/// The calls, corrections and kernels of the outline's graph, and kernels side by side where that was asked for. Unimplemented
/// names the node that no kernel computes.
absl::StatusOr<ProgramDraft> DraftLaunches(const Outline& outline, FoldedValues& folded);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_BACKEND_PROGRAM_DRAFT_H_
