// Chains of convolutions with elementwise operators between them: the subprograms that
// layout-changing rules work on.
#ifndef MENDEL_MUTATOR_CONV_CHAIN_H_
#define MENDEL_MUTATOR_CONV_CHAIN_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/emitter.h"
#include "graph/graph.h"
#include "graph/window.h"
#include "mutator/rule.h"

namespace mendel {

/// A convolution and the elementwise operators of one tensor operand (bias, activation) that alone
/// read its result.
struct ConvLink {
  int32_t conv = -1;
  std::vector<int32_t> tail;
  int32_t last() const { return tail.empty() ? conv : tail.back(); }
};

/// True for a constant operand of an operator on `rank` dimensions that is the same number
/// everywhere in batch and space.
bool IsUniformOverBatchAndSpace(const Shape& constant, size_t rank);

/// True when `node` is elementwise in exactly one non-constant operand and its other operands are
/// constants that do not vary over batch or space (a scalar, or [1, C, 1...]): it commutes with
/// every rearrangement of batch and space.
bool IsPointwise(const Graph& graph, int32_t node);

/// The maximal chain of links that ends with `node`, first link first; empty when `node` does not
/// end a link or a further pointwise operator belongs to the link. Within the chain each link's
/// result is read by the next link only.
std::vector<ConvLink> ConvChainEndingAt(const Graph& graph, int32_t node);

/// Geometry of a convolution node.
struct ConvShape {
  int64_t batch, channels, out_channels, group;
  std::vector<Window> windows;
  Shape out_spatial;
};
ConvShape ShapeOf(const Graph& graph, int32_t conv);
/// Kernel 1, stride 1 and no padding in all spatial dimensions.
bool IsPointwiseConv(const ConvShape& shape);

/// The link ending at `node` with each of `choices`, when it satisfies `accepts`.
std::vector<Match> MatchLink(const Graph& graph, int32_t node,
                             const std::function<bool(const ConvShape&)>& accepts,
                             const std::vector<std::map<std::string, int64_t>>& choices);

/// The chain of an extracted subprogram that consists of nothing else; FailedPrecondition
/// otherwise.
absl::StatusOr<std::vector<ConvLink>> WholeChain(const Graph& subprogram);

/// Emits `link` on `x` with changed window attributes (weights and bias copied, tail applied).
ValueId EmitLink(Emitter& e, const Graph& graph, const ConvLink& link, ValueId x,
                 const Attributes& attrs);
/// Emits the tail of `link` on `x`.
ValueId EmitTail(Emitter& e, const Graph& graph, const ConvLink& link, ValueId x);

/// `attrs` of `conv` with the given lists replaced, where set.
struct WindowChange {
  std::optional<Ints> strides, dilations, pads;
};
Attributes ChangedWindows(const Graph& graph, int32_t conv, const WindowChange& change);

/// A random Conv (+ Relu) graph for rule samples.
struct ConvSample {
  Shape input;
  Shape weight;
  Ints strides, dilations, pads;
  int64_t group = 1;
  bool bias = true;
  bool relu = true;
  int length = 1;  ///< links; more than one needs weight[0] == weight[1]
};
absl::StatusOr<Graph> MakeConvSample(const ConvSample& sample);

}  // namespace mendel

#endif  // MENDEL_MUTATOR_CONV_CHAIN_H_
