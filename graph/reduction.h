// Common parts of the reductions (ReduceSum, ReduceMax, ArgMax, ...): geometry, inference,
// restriction and access.
//
// Attributes: `axes` (sorted, non-negative, not empty) and `keepdims` (0 or 1).
#ifndef MENDEL_GRAPH_REDUCTION_H_
#define MENDEL_GRAPH_REDUCTION_H_

#include <string_view>
#include <vector>

#include "graph/fill.h"
#include "graph/op_helpers.h"

namespace mendel {

/// The elements that make one output element: Base(o) + offsets[k] for every k, in row-major
/// order of the reduced axes.
struct Reduction {
  Shape kept;          ///< extents of the axes that stay
  Shape kept_strides;  ///< their strides in the input
  std::vector<int64_t> offsets;

  Reduction(const Shape& input, const Ints& axes);
  int64_t count() const { return static_cast<int64_t>(offsets.size()); }
  int64_t Base(int64_t output) const {
    int64_t base = 0;
    for (size_t d = kept.size(); d-- > 0; output /= kept[d])
      base += output % kept[d] * kept_strides[d];
    return base;
  }
};

/// out[o] = reduce(elements of output o). `reduce` takes a span of them. It may call oracles, but
/// not divide.
template <class S, class Reduce>
void FillReduction(const Reader<S>& in, const Ints& axes, std::span<S> out, const Reduce& reduce) {
  const Reduction reduction(in.shape(0), axes);
  ForRanges<S>(static_cast<int64_t>(out.size()), reduction.count(),
               [&](int64_t begin, int64_t end) {
                 std::vector<S> values(reduction.offsets.size());
                 for (int64_t o = begin; o < end; ++o) {
                   const int64_t base = reduction.Base(o);
                   for (size_t k = 0; k < values.size(); ++k)
                     values[k] = in.Flat(0, base + reduction.offsets[k]);
                   out[static_cast<size_t>(o)] = reduce(std::span<const S>(values));
                 }
               });
}

/// Number of input elements of one output element.
double ReducedCount(const NodeView& node);

/// Inference for any dtype, for all but bool, and for floats.
TypesOr InferReduceAny(std::span<const TensorType> inputs, const Attributes& attrs);
TypesOr InferReduceNumeric(std::span<const TensorType> inputs, const Attributes& attrs);
TypesOr InferReduceFloat(std::span<const TensorType> inputs, const Attributes& attrs);
/// The reduced shape, or InvalidArgument.
absl::StatusOr<Shape> ReducedShape(const Shape& input, const Ints& axes, int64_t keepdims);
/// The box of the input that output box `out` needs: whole along `axes`.
Box ReducedBox(const Shape& input, const Ints& axes, int64_t keepdims, const Box& out);

std::optional<AccessPattern> AccessReduceSum(const NodeView& node);
std::optional<AccessPattern> AccessReduceOracle(const NodeView& node);

/// A reduction of floats or, with `infer`, of more dtypes; the caller adds meaning and bound.
/// Access is that of one oracle.
OpDefinition ReduceOp(std::string_view name, OpSample (*sample)(Rng& rng));
OpSample SampleReduceFloat(Rng& rng);
OpSample SampleReduceNumeric(Rng& rng);

}  // namespace mendel

#endif  // MENDEL_GRAPH_REDUCTION_H_
