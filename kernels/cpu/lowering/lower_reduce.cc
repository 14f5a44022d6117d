// Reductions.

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "kernels/cpu/kernels/reduce.h"
#include "kernels/cpu/lowering/lower.h"

namespace mendel::cpu {
namespace {

std::optional<Reducer> ReducerOf(std::string_view op) {
  if (op == "ReduceMean" || op == "ReduceSum") return Reducer::kSum;
  if (op == "ReduceL1") return Reducer::kSumOfMagnitudes;
  if (op == "ReduceSumSquare") return Reducer::kSumOfSquares;
  if (op == "ReduceMax") return Reducer::kMax;
  if (op == "ReduceMin") return Reducer::kMin;
  if (op == "ReduceProd") return Reducer::kProduct;
  if (op == "ReduceL2") return Reducer::kRootOfSquares;
  if (op == "ReduceLogSum") return Reducer::kLogOfSum;
  if (op == "ReduceLogSumExp") return Reducer::kLogOfExpSum;
  return std::nullopt;
}

/// One loop over the operand's elements, and how far one step of it moves, in elements.
struct Loop {
  int64_t extent = 1, from = 0, to = 0;
  bool reduced = false;
};

/// Elements that nested loops visit, the innermost last.
struct Part {
  int64_t from = 0, to = 0;  ///< the first ones
  std::vector<Loop> loops;
};

/// Splits blocks of channels whose last one is partly used into the whole blocks and the rest.
/// Channels are not reduced.
std::vector<Part> PartsOfPadded(const Layout& layout, const Shape& shape, const Ints& axes,
                                const Layout& results) {
  const auto reduced = [&](size_t dim) {
    return std::find(axes.begin(), axes.end(), static_cast<int64_t>(dim)) != axes.end();
  };
  const int64_t blocks = shape[1] / layout.block;
  std::vector<Part> parts;
  for (const bool rest : {false, true}) {
    if (!rest && blocks == 0) continue;
    Part part;
    if (rest)
      part.from = blocks * layout.strides[1], part.to = blocks * layout.block * results.strides[1];
    part.loops.push_back({shape[0], layout.strides[0], results.strides[0], reduced(0)});
    if (!rest)
      part.loops.push_back({blocks, layout.strides[1], layout.block * results.strides[1], false});
    for (size_t d = 2; d < shape.size(); ++d)
      part.loops.push_back({shape[d], layout.strides[d], results.strides[d], reduced(d)});
    part.loops.push_back(
        {rest ? shape[1] % layout.block : layout.block, 1, results.strides[1], false});
    parts.push_back(std::move(part));
  }
  return parts;
}

/// Loops over a layout's elements in the order in which they lie; empty: none found.
std::vector<Part> PartsOf(const Layout& layout, const Shape& shape, const Ints& axes) {
  Shape kept = shape;
  for (int64_t axis : axes) kept[static_cast<size_t>(axis)] = 1;
  const Layout results = PlainLayout(kept);
  const bool channels = std::find(axes.begin(), axes.end(), 1) != axes.end();
  if (layout.block_dim == 1 && IsPadded(layout, shape) && !channels)
    return PartsOfPadded(layout, shape, axes, results);
  const std::optional<std::vector<PhysicalDim>> order = PhysicalOrder(layout, shape);
  if (!order.has_value()) return {};
  const std::optional<Shape> from = StridesAlong(*order, layout, shape, shape.size());
  const std::optional<Shape> to = StridesAlong(*order, results, kept, shape.size());
  if (!from.has_value() || !to.has_value()) return {};
  Part part;
  for (size_t k = 0; k < order->size(); ++k) {
    const bool reduced = std::find(axes.begin(), axes.end(), (*order)[k].dim) != axes.end();
    part.loops.push_back({(*order)[k].extent, (*from)[k], (*to)[k], reduced});
  }
  return {part};
}

}  // namespace

absl::StatusOr<bool> LowerReduce(Lowering& lowering, int32_t id) {
  const Node& node = lowering.graph().node(id);
  const ValueId input = node.inputs[0];
  const Shape& shape = lowering.shape(input);
  const Ints& axes = node.attrs.IntList("axes");
  const std::optional<Reducer> reducer = ReducerOf(node.op->name);
  if (!reducer.has_value() || lowering.type(input).dtype != DType::kF32) return false;
  Place from = lowering.Any(input);
  std::vector<Part> parts = PartsOf(from.layout, shape, axes);
  if (parts.empty()) {
    from = lowering.Plain(input);
    parts = PartsOf(from.layout, shape, axes);
  }
  if (parts.empty()) return false;
  const Place to = lowering.Allocate({id, 0}, PlainLayout(node.outputs[0].shape));
  for (const Part& part : parts) {
    ReduceProblem problem;
    problem.reducer = *reducer;
    problem.from = from;
    problem.from.offset += part.from * static_cast<int64_t>(sizeof(float));
    problem.to = to;
    problem.to.offset += part.to * static_cast<int64_t>(sizeof(float));
    for (const Loop& loop : part.loops) {
      (loop.reduced ? problem.reduced : problem.kept).push_back(loop.extent);
      (loop.reduced ? problem.reduced_from : problem.kept_from).push_back(loop.from);
      if (!loop.reduced) problem.kept_to.push_back(loop.to);
    }
    if (node.op->name == "ReduceMean")
      problem.factor = 1.0 / static_cast<double>(NumElements(problem.reduced));
    lowering.Emit({id}, "reduce", MakeReduceKernel(std::move(problem)), {from, to});
  }
  return true;
}

}  // namespace mendel::cpu
