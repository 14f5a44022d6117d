// Operators on lines along one axis: CumSum, ArgMax, ArgMin, Hardmax and TopK.

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "kernels/cpu/kernels/lines.h"
#include "kernels/cpu/kernels/typed.h"
#include "kernels/cpu/lowering/lower.h"

namespace mendel::cpu {
namespace {

/// Returns the lines of the node's operand; nullopt when kernels do not support the element type or
/// the number of lines.
std::optional<Lines> LinesOf(const Lowering& lowering, const Node& node) {
  const TensorType& type = lowering.type(node.inputs[0]);
  if (!IsNumber(type.dtype)) return std::nullopt;
  const int64_t axis = node.attrs.Int("axis");
  const Shape& shape = type.shape;
  if (shape[static_cast<size_t>(axis)] > std::numeric_limits<int32_t>::max()) return std::nullopt;
  return Lines{type.dtype, NumElements(Shape(shape.begin(), shape.begin() + axis)),
               shape[static_cast<size_t>(axis)],
               NumElements(Shape(shape.begin() + axis + 1, shape.end()))};
}

}  // namespace

absl::StatusOr<bool> LowerCumSum(Lowering& lowering, int32_t id) {
  const Node& node = lowering.graph().node(id);
  const std::optional<Lines> lines = LinesOf(lowering, node);
  if (!lines.has_value()) return false;
  const Place from = lowering.Plain(node.inputs[0]);
  const Place to = lowering.Allocate({id, 0}, PlainLayout(node.outputs[0].shape));
  lowering.Emit({id}, "cumulative sum",
                MakeCumSumKernel(*lines, from, to, node.attrs.Int("exclusive") != 0,
                                 node.attrs.Int("reverse") != 0),
                {from, to}, 0, std::pair{to, from});
  return true;
}

absl::StatusOr<bool> LowerArgExtreme(Lowering& lowering, int32_t id) {
  const Node& node = lowering.graph().node(id);
  const std::optional<Lines> lines = LinesOf(lowering, node);
  if (!lines.has_value()) return false;
  const Place from = lowering.Plain(node.inputs[0]);
  const Place to = lowering.Allocate({id, 0}, PlainLayout(node.outputs[0].shape));
  lowering.Emit({id}, "arg extreme",
                MakeArgExtremeKernel(*lines, from, to, node.op->name == "ArgMax",
                                     node.attrs.Int("select_last_index") != 0),
                {from, to});
  return true;
}

absl::StatusOr<bool> LowerHardmax(Lowering& lowering, int32_t id) {
  const Node& node = lowering.graph().node(id);
  const std::optional<Lines> lines = LinesOf(lowering, node);
  if (!lines.has_value()) return false;
  const Place from = lowering.Plain(node.inputs[0]);
  const Place to = lowering.Allocate({id, 0}, PlainLayout(node.outputs[0].shape));
  lowering.Emit({id}, "hardmax", MakeHardmaxKernel(*lines, from, to), {from, to}, 0,
                std::pair{to, from});
  return true;
}

absl::StatusOr<bool> LowerTopK(Lowering& lowering, int32_t id) {
  const Node& node = lowering.graph().node(id);
  const std::optional<Lines> lines = LinesOf(lowering, node);
  if (!lines.has_value()) return false;
  const int threads =
      static_cast<int>(std::min<int64_t>(lowering.options().threads, lines->outer * lines->inner));
  const Place from = lowering.Plain(node.inputs[0]);
  const Place values = lowering.Allocate({id, 0}, PlainLayout(node.outputs[0].shape));
  const Place positions = lowering.Allocate({id, 1}, PlainLayout(node.outputs[1].shape));
  lowering.Emit({id}, "top k",
                MakeTopKKernel(*lines, from, values, positions, node.attrs.Int("k"),
                               node.attrs.Int("largest") != 0, threads),
                {from, values, positions}, TopKScratch(*lines, threads));
  return true;
}

}  // namespace mendel::cpu
