// The sign of all elements of a value, as far as it is known for all inputs. It makes denominators,
// logarithms and roots safe, and decides which scalings pass through Relu. Floats only: integers
// wrap, so that nothing is known of them.
#ifndef MENDEL_GRAPH_SIGN_H_
#define MENDEL_GRAPH_SIGN_H_

#include <algorithm>
#include <cstdint>
#include <span>

namespace mendel {

struct NodeView;

/// The sign of every element, over the reals; each implies those before it.
enum class Sign : uint8_t { kUnknown, kNonNegative, kPositive };

/// Sign of all outputs of a node from those of its inputs. `one_operand`: all inputs are one and
/// the same value.
using SignRule = Sign (*)(const NodeView& node, std::span<const Sign> inputs, bool one_operand);

/// The sign of one number.
inline Sign SignOf(double value) {
  return value > 0 ? Sign::kPositive : (value == 0 ? Sign::kNonNegative : Sign::kUnknown);
}

/// Rules. Exp, Softmax, ...
inline Sign SignPositive(const NodeView&, std::span<const Sign>, bool) { return Sign::kPositive; }
/// Max(x, a nonnegative number): Relu, Abs.
inline Sign SignNonNegative(const NodeView&, std::span<const Sign> inputs, bool) {
  return std::max(Sign::kNonNegative, inputs[0]);
}
/// Elements of input 0, or increasing functions of them with f(0) = 0.
inline Sign SignOfFirst(const NodeView&, std::span<const Sign> inputs, bool) { return inputs[0]; }
/// Elements, products or smallest elements of the inputs.
inline Sign SignLeast(const NodeView&, std::span<const Sign> inputs, bool) {
  return inputs.empty() ? Sign::kUnknown : *std::min_element(inputs.begin(), inputs.end());
}
/// Sums, means and extremes of the elements of input 0, if there are any.
Sign SignOfReduction(const NodeView& node, std::span<const Sign> inputs, bool one_operand);
/// Sums of magnitudes or squares: never negative.
Sign SignOfNorm(const NodeView& node, std::span<const Sign> inputs, bool one_operand);

}  // namespace mendel

#endif  // MENDEL_GRAPH_SIGN_H_
