#include "verifier/axioms/signs.h"

#include <algorithm>
#include <cmath>
#include <optional>

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

bool HasNonFiniteAttribute(const Node& node) {
  for (const AttributeSpec& spec : node.op->attributes) {
    if (!std::holds_alternative<double>(spec.default_value)) continue;
    const double value = node.attrs.Float(spec.name);
    if (std::isnan(value)) return true;
    if (std::isinf(value) && !std::isinf(std::get<double>(spec.default_value))) return true;
  }
  return false;
}

bool IsDefinedEverywhere(const NodeView& view, const Node& node, std::span<const Sign> signs,
                         const std::function<const Node&(size_t)>& operand, WeightMode weights) {
  if (node.op->infinite != nullptr && node.op->infinite(view)) return false;
  if (HasNonFiniteAttribute(node)) return false;
  const std::optional<PartialDomain>& domain = node.op->domain;
  if (!domain.has_value()) return true;
  const auto is_whole = [](double v) { return v >= 0 && v == std::floor(v); };
  if (domain->whole_exponent >= 0 &&
      KnownAll(operand(static_cast<size_t>(domain->whole_exponent)), weights, is_whole))
    return true;
  const Sign sign = signs[domain->input];
  switch (domain->demand) {
    case Demand::kNonZero:
      return sign == Sign::kPositive ||
             KnownAll(operand(domain->input), weights, [](double v) { return v != 0; });
    case Demand::kPositive:
      return sign == Sign::kPositive;
    case Demand::kNonNegative:
      return sign != Sign::kUnknown;
    case Demand::kSameNode:
      return false;
  }
  return false;
}

}  // namespace mendel
