#include "verifier/exact_casts.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/status.h"
#include "graph/loop.h"
#include "graph/tensor.h"

namespace mendel {
namespace {

/// Digits and exponents that a number may need.
struct Precision {
  int digits = 0;
  int exponent = 0;

  bool Within(const Precision& other) const {
    return digits <= other.digits && exponent <= other.exponent;
  }
};

Precision Larger(const Precision& a, const Precision& b) {
  return {std::max(a.digits, b.digits), std::max(a.exponent, b.exponent)};
}
Precision Smaller(const Precision& a, const Precision& b) {
  return {std::min(a.digits, b.digits), std::min(a.exponent, b.exponent)};
}

/// The precision of a float dtype; integers and Booleans count as the float they are converted to.
Precision Of(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return {11, 5};
    case DType::kBF16:
      return {8, 8};
    case DType::kF32:
      return {24, 8};
    case DType::kF8E4M3FN:
    case DType::kF8E4M3FNUZ:
      return {4, 4};
    case DType::kF8E5M2:
    case DType::kF8E5M2FNUZ:
      return {3, 5};
    default:
      return {53, 11};
  }
}

/// The precision that a number needs.
Precision OfNumber(double value) {
  if (value == 0 || !std::isfinite(value)) return {};
  int exponent = 0;
  const double mantissa = std::frexp(value, &exponent);
  int digits = 53;
  for (const int fewer : {24, 11, 8}) {
    const double scaled = std::ldexp(mantissa, fewer);
    if (scaled == std::trunc(scaled)) digits = fewer;
  }
  const int range = exponent > -14 && exponent <= 16     ? 5
                    : exponent > -126 && exponent <= 128 ? 8
                                                         : 11;
  return {digits, range};
}

Precision OfStored(const Tensor& value) {
  Precision all;
  for (int64_t i = 0; i < value.size(); ++i) all = Larger(all, OfNumber(value.DoubleAt(i)));
  return all;
}

/// The precision of numbers that a node holds and may return: operands in an ONNX file that are
/// attributes here, and the constants of a loop's body. Parameters of functions, such as the slope
/// of LeakyRelu, are none: the function rounds its result in the narrow dtype, too.
Precision OfHeldNumbers(const Node& node) {
  Precision all;
  for (const std::string_view name : {"min", "max", "value"}) {
    if ((node.op->name == "Clip" && name != "value") || (node.op->name == "Pad" && name == "value"))
      all = Larger(all, OfNumber(node.attrs.Float(name)));
  }
  if (node.op->name != "Loop") return all;
  for (const Node& inner : LoopBodyOf(node.attrs)->nodes()) {
    all = Larger(all, OfHeldNumbers(inner));
    if (IsConstant(inner) && IsFloat(inner.outputs[0].dtype))
      all = Larger(all, OfStored(ConstantValue(inner)));
  }
  return all;
}

class CastMarker {
 public:
  CastMarker(const Graph& graph, WeightMode weights)
      : graph_(graph), weights_(weights), builder_(graph.name()) {}

  absl::StatusOr<Graph> Run() {
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      const Node& node = graph_.nodes()[i];
      precisions_.push_back(OfNode(node));
      Node copy = node;
      if (IsExact(node)) copy.attrs.Set("exact", int64_t{1});
      MENDEL_ASSIGN_OR_RETURN(const int32_t id, builder_.CopyNode(copy, Mapped(node.inputs)));
      copies_.push_back(id);
    }
    for (const GraphOutput& output : graph_.outputs())
      builder_.Output(output.name,
                      {copies_[static_cast<size_t>(output.value.node)], output.value.output});
    return builder_.Build();
  }

 private:
  std::vector<ValueId> Mapped(const std::vector<ValueId>& values) const {
    std::vector<ValueId> mapped;
    for (const ValueId value : values)
      mapped.push_back({copies_[static_cast<size_t>(value.node)], value.output});
    return mapped;
  }

  /// The precision of the float operands of a node; nothing where it has none.
  Precision OfOperands(const Node& node) const {
    Precision all;
    for (const ValueId input : node.inputs) {
      if (IsFloat(graph_.type(input).dtype))
        all = Larger(all, precisions_[static_cast<size_t>(input.node)]);
    }
    return all;
  }

  Precision OfNode(const Node& node) const {
    const TensorType& type = node.outputs[0];
    if (!IsFloat(type.dtype)) return {};
    if (IsConstant(node)) {
      const bool is_symbol = weights_ == WeightMode::kSymbolic && !SymbolName(node).empty();
      return is_symbol ? Of(type.dtype) : OfStored(ConstantValue(node));
    }
    const bool from_floats =
        std::any_of(node.inputs.begin(), node.inputs.end(),
                    [&](ValueId input) { return IsFloat(graph_.type(input).dtype); });
    if (!from_floats) return Of(type.dtype);
    return Smaller(Of(type.dtype), Larger(OfOperands(node), OfHeldNumbers(node)));
  }

  bool IsExact(const Node& node) const {
    return node.op->name == "Cast" && IsFloat(node.outputs[0].dtype) &&
           !IsFloat8(node.outputs[0].dtype) && IsFloat(graph_.type(node.inputs[0]).dtype) &&
           OfOperands(node).Within(Of(node.outputs[0].dtype));
  }

  const Graph& graph_;
  const WeightMode weights_;
  GraphBuilder builder_;
  std::vector<int32_t> copies_;
  std::vector<Precision> precisions_;  ///< by node
};

}  // namespace

absl::StatusOr<Graph> WithExactCasts(const Graph& graph, WeightMode weights) {
  const bool has_cast = std::any_of(graph.nodes().begin(), graph.nodes().end(),
                                    [](const Node& node) { return node.op->name == "Cast"; });
  if (!has_cast) return graph;
  return CastMarker(graph, weights).Run();
}

}  // namespace mendel
