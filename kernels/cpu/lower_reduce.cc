// Reductions.

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/status.h"
#include "kernels/cpu/lower.h"
#include "kernels/cpu/reduce.h"
#include "kernels/cpu/threads.h"

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

}  // namespace

absl::StatusOr<bool> LowerReduce(Lowering& lowering, int32_t id) {
  const Node& node = lowering.graph().node(id);
  const ValueId input = node.inputs[0];
  const Shape& shape = lowering.shape(input);
  const Ints& axes = node.attrs.IntList("axes");
  const std::optional<Reducer> reducer = ReducerOf(node.op->name);
  if (!reducer.has_value() || lowering.type(input).dtype != DType::kF32) return false;
  Place from = lowering.Any(input);
  std::optional<std::vector<PhysicalDim>> order = PhysicalOrder(from.layout, shape);
  if (!order.has_value()) {
    from = lowering.Plain(input);
    order = PhysicalOrder(from.layout, shape);
  }
  if (!order.has_value()) return false;
  Shape kept_shape = shape;
  for (int64_t axis : axes) kept_shape[static_cast<size_t>(axis)] = 1;
  const std::optional<Shape> from_strides = StridesAlong(*order, from.layout, shape, shape.size());
  const std::optional<Shape> to_strides = StridesAlong(*order, PlainLayout(kept_shape), kept_shape, shape.size());
  if (!from_strides.has_value() || !to_strides.has_value()) return false;
  ReduceProblem problem;
  problem.reducer = *reducer;
  problem.from = from;
  problem.to = lowering.Allocate({id, 0}, PlainLayout(node.outputs[0].shape));
  for (size_t k = 0; k < order->size(); ++k) {
    const bool reduced = std::find(axes.begin(), axes.end(), (*order)[k].dim) != axes.end();
    (reduced ? problem.reduced : problem.kept).push_back((*order)[k].extent);
    (reduced ? problem.reduced_from : problem.kept_from).push_back((*from_strides)[k]);
    if (!reduced) problem.kept_to.push_back((*to_strides)[k]);
  }
  if (node.op->name == "ReduceMean") problem.factor = 1.0 / static_cast<double>(NumElements(problem.reduced));
  const std::vector<Place> touched = {from, problem.to};
  lowering.Emit({id}, "reduce", MakeReduceKernel(std::move(problem)), touched);
  return true;
}

}  // namespace mendel::cpu
