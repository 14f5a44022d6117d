// Common parts of several operators: inference, bounds, restriction and access of elementwise and
// selecting operators.
#ifndef MENDEL_GRAPH_OP_HELPERS_H_
#define MENDEL_GRAPH_OP_HELPERS_H_

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/op_definition.h"

namespace mendel {

using TypesOr = absl::StatusOr<std::vector<TensorType>>;

/// All inputs of one dtype, shapes broadcast NumPy-style; the output has that dtype.
TypesOr InferBroadcast(std::span<const TensorType> inputs, const Attributes& attrs);
/// InferBroadcast with a Boolean output (comparisons).
TypesOr InferBroadcastToBool(std::span<const TensorType> inputs, const Attributes& attrs);
/// Output type = input 0's type.
TypesOr InferSame(std::span<const TensorType> inputs, const Attributes& attrs);
/// InferSame, refusing integral dtypes.
TypesOr InferSameFloat(std::span<const TensorType> inputs, const Attributes& attrs);

/// Every output element is one element of some input, or zero: the bound is the worst input's.
Bound BoundOfSelection(const NodeView& node, std::span<const Bound> inputs, int output,
                       const Arithmetic<Bound>& arithmetic);

/// The box an input needs under broadcasting when output box `out` is wanted.
Box BroadcastBox(const Shape& input, const Box& out);
/// Elementwise operators with broadcasting: each input is cut to its BroadcastBox, and attributes
/// stay.
std::optional<Restriction> RestrictElementwise(const NodeView& node, const Box& out);

/// Access of input `input` under broadcasting into an output of rank `rank`.
InputAccess BroadcastAccess(const Shape& input, size_t rank);
std::optional<AccessPattern> AccessElementwiseSum(const NodeView& node);      ///< add, sub, neg
std::optional<AccessPattern> AccessElementwiseProduct(const NodeView& node);  ///< mul
std::optional<AccessPattern> AccessElementwiseOracle(const NodeView& node);   ///< relu, max, pow

/// Linear inputs as bits: all, or input 0 only. The default (null) is none.
uint32_t LinearInAll(const NodeView& node);
uint32_t LinearInFirst(const NodeView& node);

/// A random shape of the given rank range with extents 1..max_extent.
Shape SampleShape(Rng& rng, int min_rank, int max_rank, int64_t max_extent);
/// A shape that broadcasts into `shape`: leading dimensions dropped, some extents replaced by 1.
Shape SampleBroadcastable(Rng& rng, const Shape& shape);
/// Unary f32 samples; binary f32 samples with broadcasting.
OpSample SampleUnary(Rng& rng);
OpSample SampleBinary(Rng& rng);

/// Negative axes count from the end; InvalidArgument outside [-rank, rank).
absl::StatusOr<int64_t> NormalizeAxis(int64_t axis, size_t rank);

}  // namespace mendel

#endif  // MENDEL_GRAPH_OP_HELPERS_H_
