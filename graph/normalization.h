// Common parts of the normalizations: mean and reciprocal standard deviation of a row of elements.
// In GF(p) mean and variance are exact and 1 / sqrt(variance + epsilon) is the oracle "Rsqrt".
#ifndef MENDEL_GRAPH_NORMALIZATION_H_
#define MENDEL_GRAPH_NORMALIZATION_H_

#include <algorithm>
#include <span>

#include "graph/elementwise.h"
#include "graph/fill.h"
#include "graph/functions.h"

namespace mendel {

template <class S>
struct Moments {
  S mean{};
  S rsqrt{};  ///< 1 / sqrt(variance + epsilon)
};

/// Moments of elements [begin, begin + count) of input 0. `divide` divides by `count`.
template <class S>
Moments<S> MomentsOf(const Reader<S>& in, int64_t begin, int64_t count, const S& epsilon,
                     const Divisor<S>& divide) {
  Moments<S> moments;
  for (int64_t k = 0; k < count; ++k) moments.mean = Plus(moments.mean, in.Flat(0, begin + k));
  moments.mean = divide(moments.mean);
  S squares{};
  for (int64_t k = 0; k < count; ++k) {
    const S centered = Minus(in.Flat(0, begin + k), moments.mean);
    squares = Plus(squares, Times(centered, centered));
  }
  if constexpr (!std::is_same_v<S, int64_t>)
    moments.rsqrt = in.Call(functions::kRsqrt, {divide(squares) + epsilon});
  return moments;
}

/// Images [N, C, D...] of which each row of `channels_per_row` channels is normalized over its
/// channels and positions, times input 1 plus input 2, one number a channel.
template <class S>
void FillNormalizedChannels(const Reader<S>& in, const NodeView& node, int64_t channels_per_row,
                            std::span<S> out) {
  const Shape& shape = in.shape(0);
  const int64_t plane = NumElements(Shape(shape.begin() + 2, shape.end()));
  const int64_t count = channels_per_row * plane;
  const int64_t rows = count == 0 ? 0 : NumElements(shape) / count;
  const Divisor<S> divide(in, std::max<int64_t>(1, count));
  const S epsilon = in.Literal(node.attrs.Float("epsilon"));
  ForRanges<S>(rows, 3 * count, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const Moments<S> moments = MomentsOf(in, row * count, count, epsilon, divide);
      for (int64_t k = row * count; k < (row + 1) * count; ++k) {
        const int64_t c = k / plane % shape[1];
        const S normalized = Times(Minus(in.Flat(0, k), moments.mean), moments.rsqrt);
        out[static_cast<size_t>(k)] = Plus(Times(normalized, in.Flat(1, c)), in.Flat(2, c));
      }
    }
  });
}

/// Bound of (x - mean) * Rsqrt(variance + epsilon) over rows of `count` elements bounded by `x`;
/// counts the oracle's operand.
Bound BoundOfNormalized(double count, const Bound& x, double epsilon,
                        const Arithmetic<Bound>& arithmetic);

/// Epsilon must be positive, so that variance + epsilon is safe under the root: with 0 a row of
/// equal elements divides by zero, and the operator would be a partial function.
absl::Status CheckEpsilon(const Attributes& attrs);
/// Epsilon must not be negative, for operators whose variance is an operand with its own domain.
absl::Status CheckEpsilonOfVariance(const Attributes& attrs);

/// Input 0 of a float dtype, inputs 1.. of the same dtype and of shape [channels].
absl::Status CheckChannelParameters(std::span<const TensorType> inputs, int64_t channels);

/// Access of x normalized over dimensions [first, rank), times a scale and plus a bias of shape
/// [channels].
AccessPattern AccessNormalizedChannels(const NodeView& node, size_t first);

/// Five operations an element.
Cost CostOfNormalization(const NodeView& node);

}  // namespace mendel

#endif  // MENDEL_GRAPH_NORMALIZATION_H_
