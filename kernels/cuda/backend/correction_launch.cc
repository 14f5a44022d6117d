#include "kernels/cuda/backend/correction_launch.h"

#include <utility>

#include "base/status.h"
#include "kernels/cuda/backend/corrected_copy.h"
#include "kernels/cuda/fusion/fused_kernel.h"

namespace mendel::cuda {
namespace {

std::string NameOf(const Graph& graph, int32_t patch) {
  const Node& node = graph.node(patch);
  return node.name.empty() ? Cat(node.op->name, " ", patch) : node.name;
}

/// `from` as it is, by the engine that fuses views: a Patch without boxes.
absl::StatusOr<CorrectionLaunch> CopyOf(const Graph& graph, const PlannedCorrection& correction) {
  GraphBuilder builder;
  const ValueId x = builder.Input("x", graph.type(correction.base));
  MENDEL_ASSIGN_OR_RETURN(const ValueId y, builder.Add("Patch", {x}, {{"boxes", Boxes()}}));
  builder.Output("y", y);
  MENDEL_ASSIGN_OR_RETURN(const Graph copy, builder.Build());
  MENDEL_ASSIGN_OR_RETURN(FusedKernel kernel, WriteKernel(copy, {y, {y.node}, -1}));
  for (KernelOperand& operand : kernel.operands) operand.value = correction.base;
  Step info{NameOf(graph, correction.patch), {correction.patch}, Cat("copy_by_", kernel.lanes), 0};
  return CorrectionLaunch{std::move(kernel.name),     std::move(kernel.text), kernel.launch,
                          std::move(kernel.operands), correction.result(),    std::move(info)};
}

/// For people: what the launch writes, and how many boxes of it.
std::string Description(const PlannedCorrection& correction, const PatchKernel& kernel) {
  const size_t boxes = kernel.correction.boxes.size();
  const char* const where =
      kernel.y.scratch ? "in scratch" : (correction.in_place ? "in place" : "in a copy");
  return Cat("correction:", kernel.correction.name, " ", boxes, boxes == 1 ? " box " : " boxes ",
             where);
}

}  // namespace

int64_t ScratchBytes(const Graph& graph, const PlannedCorrection& correction) {
  return correction.patch_kernels.scratch_elements * DTypeSize(graph.type(correction.base).dtype);
}

absl::StatusOr<std::vector<CorrectionLaunch>> LaunchesOf(
    const Graph& graph, const PlannedCorrection& correction,
    const std::function<Tensor(ValueId)>& folded, const FusionGroup* copy) {
  std::vector<CorrectionLaunch> launches;
  if (!correction.in_place) {
    MENDEL_ASSIGN_OR_RETURN(CorrectionLaunch copy, CopyOf(graph, correction));
    launches.push_back(std::move(copy));
  }
  const DType dtype = graph.type(correction.base).dtype;
  const auto operand = [&](const Operand& place) {
    return KernelOperand{place.scratch ? ScratchOf(correction) : place.value, {}, dtype};
  };
  for (const PatchKernel& kernel : correction.patch_kernels.kernels) {
    MENDEL_ASSIGN_OR_RETURN(EmittedKernel emitted, EmitKernel(kernel.correction));
    CorrectionLaunch launch{emitted.name,        emitted.text, emitted.launch,
                            {operand(kernel.x)}, {},           {}};
    if (emitted.weights)
      launch.operands.push_back({{}, PackWeights(kernel.correction, folded(kernel.w)), dtype});
    if (emitted.bias) launch.operands.push_back({kernel.bias, {}, dtype});
    for (const Operand& addend : kernel.operands) launch.operands.push_back(operand(addend));
    launch.result = kernel.y.scratch ? ScratchOf(correction) : correction.result();
    if (copy != nullptr && &kernel == &correction.patch_kernels.kernels.back()) {
      const std::vector<Box>& boxes = graph.node(correction.patch).attrs.BoxList("boxes");
      MENDEL_ASSIGN_OR_RETURN(FusedKernel fused,
                              WriteCorrectedCopy(graph, *copy, boxes, emitted, launch.operands));
      launch.kernel = std::move(fused.name);
      launch.text = std::move(fused.text);
      launch.shape = fused.launch;
      launch.operands = std::move(fused.operands);
    }
    launch.info = {NameOf(graph, correction.patch),
                   {correction.patch},
                   Description(correction, kernel),
                   FlopsOf(kernel.correction)};
    launches.push_back(std::move(launch));
  }
  // The last launch is the one that the pieces end with.
  std::vector<int32_t>& nodes = launches.back().info.nodes;
  for (const int32_t id : correction.nodes) {
    if (id != correction.patch) nodes.push_back(id);
  }
  return launches;
}

}  // namespace mendel::cuda
