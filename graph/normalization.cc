#include "graph/normalization.h"

#include <cmath>

#include "base/status.h"
#include "graph/whole_access.h"

namespace mendel {

Bound BoundOfNormalized(double count, const Bound& x, double epsilon,
                        const Arithmetic<Bound>& arithmetic) {
  // Over the common denominator count * Q of a row (Q the product of its elements' denominators):
  // x_i = X_i / Q, sum X_i is bounded by SumOf, and x_i - mean = (count * X_i - sum X_i) / (count *
  // Q) has at most twice its coefficients. The variance sums `count` squares of that and divides by
  // count again.
  const Bound sum = SumOf(count, x);
  const double bits = std::log2(std::max(1.0, count));
  const Bound centered{sum.num_degree, sum.den_degree, sum.log2_num + 1, sum.log2_den + bits};
  const Bound variance{2 * centered.num_degree, 2 * centered.den_degree,
                       2 * centered.log2_num + bits, 2 * centered.log2_den + bits};
  arithmetic.CountOperands(1, variance + arithmetic.Literal(epsilon));
  return centered * Bound::Symbol();
}

absl::Status CheckEpsilon(const Attributes& attrs) {
  const double epsilon = attrs.Float("epsilon");
  if (!(epsilon > 0) || std::isinf(epsilon))
    return InvalidInput("epsilon must be finite and positive, not ", epsilon);
  return absl::OkStatus();
}

absl::Status CheckEpsilonOfVariance(const Attributes& attrs) {
  const double epsilon = attrs.Float("epsilon");
  if (!(epsilon >= 0) || std::isinf(epsilon))
    return InvalidInput("epsilon must be finite and not negative, not ", epsilon);
  return absl::OkStatus();
}

absl::Status CheckChannelParameters(std::span<const TensorType> inputs, int64_t channels) {
  if (!IsFloat(inputs[0].dtype))
    return InvalidInput("expected a float tensor, not ", TypeString(inputs[0]));
  for (const TensorType& parameter : inputs.subspan(1)) {
    if (parameter != TensorType{inputs[0].dtype, {channels}}) {
      return InvalidInput("expected a parameter of type ",
                          TypeString({inputs[0].dtype, {channels}}), ", not ",
                          TypeString(parameter));
    }
  }
  return absl::OkStatus();
}

AccessPattern AccessNormalizedChannels(const NodeView& node, size_t first) {
  const size_t rank = node.inputs[0].shape.size();
  AccessPattern pattern = WholeAlong(node, first, rank);
  pattern.combine = AccessPattern::Combine::kProduct;
  pattern.divided_inputs = 1;
  DimAccess channel;
  channel.coefficients.assign(rank, 0);
  channel.coefficients[1] = 1;
  pattern.inputs.insert(pattern.inputs.end(), 2, InputAccess{{channel}});
  pattern.terms = {{0, 1}, {2}};
  return pattern;
}

Cost CostOfNormalization(const NodeView& node) {
  Cost cost{5.0 * static_cast<double>(NumElements(node.outputs[0])),
            static_cast<double>(ByteSize(node.outputs[0]))};
  for (const TensorType& input : node.inputs) cost.bytes += static_cast<double>(ByteSize(input));
  return cost;
}

}  // namespace mendel
