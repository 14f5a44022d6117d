#include "kernels/cuda/backend/corrected_copy.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "base/status.h"
#include "kernels/cuda/fusion/operator_text.h"
#include "kernels/cuda/fusion/transposition.h"

namespace mendel::cuda {
namespace {

/// Values of at most this many elements are moved in little more time than a launch takes. The best
/// kernel moves larger values.
constexpr int64_t kFewElements = int64_t{1} << 18;

/// True where one kernel alone writes the result and none of them reads it.
bool WritesAlone(const PlannedCorrection& correction) {
  const Operand base{false, correction.base};
  const std::vector<PatchKernel>& kernels = correction.patch_kernels.kernels;
  const auto reads = [&](const PatchKernel& kernel) {
    return kernel.x == base ||
           std::find(kernel.operands.begin(), kernel.operands.end(), base) != kernel.operands.end();
  };
  const auto writes = [&](const PatchKernel& kernel) { return kernel.y == base; };
  return std::none_of(kernels.begin(), kernels.end(), reads) &&
         std::count_if(kernels.begin(), kernels.end(), writes) == 1 && writes(kernels.back());
}

bool IsLayoutChange(const Graph& graph, const FusionGroup& group) {
  const auto reads = [&](int32_t id) {
    const OperatorText* const text = FindOperatorText(graph.node(id).op->name);
    return text == nullptr ? Reads::kMany : text->reads;
  };
  return group.row < 0 &&
         std::any_of(group.nodes.begin(), group.nodes.end(),
                     [&](int32_t id) { return reads(id) == Reads::kMoved; }) &&
         std::none_of(group.nodes.begin(), group.nodes.end(),
                      [&](int32_t id) { return reads(id) == Reads::kMany; });
}

}  // namespace

const PlannedCorrection* CorrectionOver(const Partition& partition, const FusionGroup& group) {
  const std::vector<PlannedCorrection>& all = partition.plan.corrections;
  const auto found = std::find_if(all.begin(), all.end(), [&](const PlannedCorrection& one) {
    return one.base == group.result;
  });
  if (found == all.end() || !found->in_place || !WritesAlone(*found) ||
      !IsLayoutChange(partition.graph, group))
    return nullptr;
  if (partition.graph.node(found->patch).attrs.BoxList("boxes").size() > kMostSpared)
    return nullptr;
  const NodeOrigin origin = partition.OriginOf(group.result.node);
  if (origin.conversion || partition.horizontal_fusion.count(origin.node) > 0) return nullptr;
  const bool is_large = NumElements(partition.graph.type(group.result)) > kFewElements;
  return is_large && WriteTransposition(partition.graph, group).has_value() ? nullptr : &*found;
}

absl::StatusOr<FusedKernel> WriteCorrectedCopy(const Graph& graph, const FusionGroup& group,
                                               const std::vector<Box>& boxes,
                                               const EmittedKernel& kernel,
                                               std::span<const KernelOperand> operands) {
  int threads = static_cast<int>(kernel.launch.block);
  ElementsCode elements = WriteElements(graph, group, threads, "block", boxes);
  FusedKernel fused;
  fused.name = Cat(kernel.name, kCorrectedCopy);
  fused.lanes = elements.lanes;
  fused.launch = kernel.launch;
  fused.launch.grid += static_cast<unsigned>(elements.blocks);
  fused.operands.assign(operands.begin(), operands.end());
  std::string declared, corrected, copied, copy_declared;
  for (size_t k = 0; k < operands.size(); ++k) {
    declared += Cat(PointerParameter(operands[k], Cat("c", k)), ", ");
    corrected += Cat("c", k, ", ");
  }
  const std::vector<KernelOperand>& own = elements.code.operands();
  for (size_t k = 0; k < own.size(); ++k) {
    declared += Cat(PointerParameter(own[k], Cat("p", k)), ", ");
    copy_declared += Cat(PointerParameter(own[k], Cat("p", k)), ", ");
    copied += Cat("p", k, ", ");
    fused.operands.push_back(own[k]);
  }
  MENDEL_RETURN_IF_ERROR(CheckPointers(graph, group.result.node, fused.operands.size() + 1));
  const std::string result = ResultParameter(graph, group.result, "y");
  const std::string copy = Cat(fused.name, "_elements");
  fused.text =
      Cat(kernel.body, "\nstatic __device__ __forceinline__ void ", copy, "(unsigned block, ",
          copy_declared, result, ") {\n  using namespace mendel_text;\n", elements.code.Take(),
          "}\n\nextern \"C\" __global__ void __launch_bounds__(", threads, ") ", fused.name, "(",
          declared, result, ") {\n  if (blockIdx.x < ", kernel.launch.grid, "u) ",
          kernel.name_space, "::Mend<", kernel.name_space, "::", kernel.number,
          ">(static_cast<int>(blockIdx.x), ", corrected, "y);\n  else ", copy, "(blockIdx.x - ",
          kernel.launch.grid, "u, ", copied, "y);\n}\n");
  return fused;
}

}  // namespace mendel::cuda
