#include "graph/sign.h"

#include "graph/meaning.h"

namespace mendel {

Sign SignOfReduction(const NodeView& node, std::span<const Sign> inputs, bool) {
  return NumElements(node.inputs[0]) > 0 ? inputs[0] : Sign::kUnknown;
}

Sign SignOfNorm(const NodeView& node, std::span<const Sign> inputs, bool one_operand) {
  return std::max(Sign::kNonNegative, SignOfReduction(node, inputs, one_operand));
}

}  // namespace mendel
