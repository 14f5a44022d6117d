#include "runtime/quantized.h"

#include <string_view>

namespace mendel {
namespace {

/// The operand of a Cast to `to`.
std::optional<ValueId> CastTo(const Graph& graph, ValueId value, DType to) {
  const Node& node = graph.node(value.node);
  if (node.op->name != "Cast" || graph.type(value).dtype != to) return std::nullopt;
  return node.inputs[0];
}

/// Codes, perhaps cast to i32, perhaps less a zero point.
std::optional<QuantizedOperand> Centered(const Graph& graph, ValueId value) {
  const auto code = [&](ValueId v) -> std::optional<ValueId> {
    if (IsCode(graph.type(v).dtype)) return v;
    const std::optional<ValueId> from = CastTo(graph, v, DType::kI32);
    return from.has_value() && IsCode(graph.type(*from).dtype) ? from : std::nullopt;
  };
  if (const auto codes = code(value); codes.has_value()) return QuantizedOperand{*codes, {}, {}};
  const Node& node = graph.node(value.node);
  if (node.op->name != "Sub" || graph.type(value).dtype != DType::kI32) return std::nullopt;
  const auto codes = code(node.inputs[0]);
  if (!codes.has_value() || graph.type(*codes).shape != graph.type(value).shape)
    return std::nullopt;
  return QuantizedOperand{*codes, node.inputs[1], {}};
}

}  // namespace

std::optional<QuantizedOperand> FindQuantizedOperand(const Graph& graph, ValueId value) {
  if (graph.type(value).dtype == DType::kI32) return Centered(graph, value);
  if (graph.type(value).dtype != DType::kF32) return std::nullopt;
  const Node& node = graph.node(value.node);
  if (const auto whole = CastTo(graph, value, DType::kF32); whole.has_value())
    return Centered(graph, *whole);
  if (node.op->name != "Mul") return std::nullopt;
  for (const size_t k : {0, 1}) {
    const auto whole = CastTo(graph, node.inputs[k], DType::kF32);
    std::optional<QuantizedOperand> operand;
    if (whole.has_value()) operand = Centered(graph, *whole);
    if (!operand.has_value() || graph.type(operand->codes).shape != graph.type(value).shape)
      continue;
    operand->scale = node.inputs[1 - k];
    return operand;
  }
  return std::nullopt;
}

bool IsQuantized(const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    if (node.op->name != "Conv" && node.op->name != "MatMul") continue;
    if (FindQuantizedOperand(graph, node.inputs[0]).has_value()) return true;
  }
  return false;
}

Numerics NumericsFor(const Graph& graph, Numerics asked) {
  return asked == Numerics::kDefault && IsQuantized(graph) ? Numerics::kInt8 : asked;
}

}  // namespace mendel
