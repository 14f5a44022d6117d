// Signs of values, derived node by node by the operators' own rules (graph/sign.h) and from stored
// numbers.
#ifndef MENDEL_VERIFIER_AXIOMS_SIGNS_H_
#define MENDEL_VERIFIER_AXIOMS_SIGNS_H_

#include <functional>
#include <limits>
#include <span>

#include "graph/graph.h"
#include "verifier/verifier.h"

namespace mendel {

/// The verifier knows the elements of a Constant: a literal always, a weight in exact mode only.
bool IsKnown(const Node& constant, WeightMode weights);

/// True when `node` is a Constant whose elements are known, finite, and all satisfy `holds`.
template <class Predicate>
bool KnownAll(const Node& node, WeightMode weights, Predicate holds);

/// Sign of all outputs of a node whose inputs have `signs`. `one_operand`: its inputs are all the
/// same value.
Sign SignOfNode(const Node& node, std::span<const TensorType> types, std::span<const Sign> signs,
                bool one_operand, WeightMode weights);

/// True when an infinity or NaN is among the node's attributes. Attributes that may be infinite
/// have an infinite default (Clip).
bool HasNonFiniteAttribute(const Node& node);

/// True when the outputs of a node whose operands have `signs` are finite wherever the operands
/// are. `operand(k)`: the node of input k.
bool IsDefinedEverywhere(const NodeView& view, const Node& node, std::span<const Sign> signs,
                         const std::function<const Node&(size_t)>& operand, WeightMode weights);

template <class Predicate>
bool KnownAll(const Node& node, WeightMode weights, Predicate holds) {
  if (!IsConstant(node) || !IsKnown(node, weights)) return false;
  const Tensor& value = ConstantValue(node);
  const int64_t count = value.size();
  constexpr double kLargest = std::numeric_limits<double>::max();
  for (int64_t i = 0; i < count; ++i) {
    const double element = value.DoubleAt(i);
    if (!(element >= -kLargest && element <= kLargest && holds(element))) return false;
  }
  return true;
}

}  // namespace mendel

#endif  // MENDEL_VERIFIER_AXIOMS_SIGNS_H_
