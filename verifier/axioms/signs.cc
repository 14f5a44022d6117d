#include "verifier/axioms/signs.h"

namespace mendel {

bool IsKnown(const Node& constant, WeightMode weights) {
  return weights == WeightMode::kExact || SymbolName(constant).empty() ||
         IsIntegral(ConstantValue(constant).dtype());
}

Sign SignOfNode(const Node& node, std::span<const TensorType> types, std::span<const Sign> signs,
                bool one_operand, WeightMode weights) {
  if (IsConstant(node)) {
    if (KnownAll(node, weights, [](double v) { return v > 0; })) return Sign::kPositive;
    return KnownAll(node, weights, [](double v) { return v >= 0; }) ? Sign::kNonNegative
                                                                    : Sign::kUnknown;
  }
  if (node.op->sign == nullptr || IsIntegral(node.outputs[0].dtype)) return Sign::kUnknown;
  return node.op->sign({types, node.attrs, node.outputs}, signs, one_operand);
}

}  // namespace mendel
