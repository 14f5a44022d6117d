// A graph as launches whose memory is not planned yet.
#ifndef MENDEL_KERNELS_CUDA_BACKEND_PROGRAM_DRAFT_H_
#define MENDEL_KERNELS_CUDA_BACKEND_PROGRAM_DRAFT_H_

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "graph/rewrite.h"
#include "kernels/cuda/backend/folded_values.h"
#include "kernels/cuda/backend/launch_draft.h"
#include "kernels/cuda/backend/library_groups.h"
#include "kernels/cuda/backend/stored_forms.h"
#include "kernels/cuda/emit/correction_plan.h"

namespace mendel::cuda {

/// Who computes what.
struct Outline {
  explicit Outline(const Graph& graph) : constant(ConstantExpressions(graph)), plan(PlanCorrections(graph, constant)) {
    elsewhere = constant;
    for (const PlannedCorrection& correction : plan.corrections) elsewhere[static_cast<size_t>(correction.patch)] = true;
    for (size_t id = 0; id < plan.unused.size(); ++id) elsewhere[id] = elsewhere[id] || plan.unused[id];
  }

  std::vector<bool> constant;
  CorrectionPlan plan;
  std::vector<bool> elsewhere;  ///< constants, and what corrections and calls compute, or nobody
  std::vector<LibraryGroup> calls = {};
  std::vector<NodeOrigin> origins = {};  ///< by node; empty: each is its own
  std::set<int32_t> beside = {};         ///< nodes, before conversions, whose kernels may stand beside others
};

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

/// The calls, corrections and kernels of `graph`, and kernels side by side where that was asked for. Unimplemented names the node
/// that no kernel computes.
absl::StatusOr<ProgramDraft> DraftLaunches(const Graph& graph, const Outline& outline, FoldedValues& folded);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_BACKEND_PROGRAM_DRAFT_H_
