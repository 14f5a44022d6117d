// Code shared by the lowerings of the direct kernels: places of operands, and the step itself.
#ifndef MENDEL_KERNELS_CPU_LOWERING_DIRECT_EMIT_H_
#define MENDEL_KERNELS_CPU_LOWERING_DIRECT_EMIT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/status.h"
#include "kernels/cpu/lowering/contraction.h"
#include "kernels/cpu/lowering/lowering.h"
#include "kernels/cpu/lowering/native_lowering.h"

namespace mendel::cpu {

struct DirectOperands {
  Place src, weights, bias, dst;
  std::optional<Place> residual;
  std::optional<Place> factor, summand;  ///< of a PointwiseInput; a gate has no summand
  float floor = 0;                       ///< of it
};

/// True when the contraction's result is f32, and it and the operands have elements.
bool IsDirectF32(const Graph& graph, const Node& node);

/// Returns the value that the contraction reads.
ValueId SourceOf(const Lowering& lowering, const Group& group);

/// Places of everything but the weights. `channels` of the output.
DirectOperands PrepareDirect(Lowering& lowering, const Group& group, const NativeFused& fused,
                             const Layout& src, const Layout& dst, int64_t channels, int64_t lanes);

/// Emits NativeKernel(plan, post_ops, operands), and what of the group is not fused to it. The
/// result takes a residual's place where nothing else that is read lies in its buffer.
template <class NativeKernel, class Plan>
absl::Status EmitDirect(Lowering& lowering, const Group& group, const NativeFused& fused,
                        std::string_view name, Plan plan, DirectOperands operands) {
  std::vector<Place> touched = {operands.src, operands.weights, operands.bias, operands.dst};
  std::vector<int32_t> nodes = NodesOf(group, fused.count);
  if (group.prepared.has_value()) {
    touched.push_back(*operands.factor);
    if (operands.summand.has_value()) touched.push_back(*operands.summand);
    nodes.insert(nodes.begin(), group.prepared->nodes.begin(), group.prepared->nodes.end());
  }
  std::optional<std::pair<Place, Place>> in_place;
  if (operands.residual.has_value()) {
    const int buffer = operands.residual->buffer;
    touched.push_back(*operands.residual);
    if (buffer != operands.src.buffer &&
        (!operands.factor.has_value() || buffer != operands.factor->buffer))
      in_place = {operands.dst, *operands.residual};
  }
  const int64_t scratch = plan.ScratchBytes();
  const std::string full = Cat(name, ":", plan.isa->name);
  lowering.Emit(
      nodes, full,
      std::make_unique<NativeKernel>(std::move(plan), fused.post_ops, std::move(operands)), touched,
      scratch, in_place);
  return LowerRest(lowering, group, fused.count);
}

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_LOWERING_DIRECT_EMIT_H_
