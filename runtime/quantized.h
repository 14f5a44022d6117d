// Quantized operands: how DequantizeLinear and the integer operators of ONNX look in a graph.
#ifndef MENDEL_RUNTIME_QUANTIZED_H_
#define MENDEL_RUNTIME_QUANTIZED_H_

#include <optional>

#include "graph/graph.h"
#include "runtime/numerics.h"

namespace mendel {

/// (codes - zero) * scale, each where it is there. The value's dtype is f32, or i32 without a
/// scale.
struct QuantizedOperand {
  ValueId codes;                 ///< u8 or i8
  std::optional<ValueId> zero;   ///< i32
  std::optional<ValueId> scale;  ///< f32
};
/// nullopt when the value is computed in another way.
std::optional<QuantizedOperand> FindQuantizedOperand(const Graph& graph, ValueId value);

/// True when some convolution or matrix product reads a quantized operand.
bool IsQuantized(const Graph& graph);
/// The class that the model asks for where the caller asked for `asked`: `int8` in place of
/// `default` for a quantized one, else `asked`.
Numerics NumericsFor(const Graph& graph, Numerics asked);

}  // namespace mendel

#endif  // MENDEL_RUNTIME_QUANTIZED_H_
