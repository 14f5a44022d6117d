// Reductions: axes become explicit, non-negative and sorted, whether they came as attribute, input
// or not at all.

#include <algorithm>

#include "onnx/op_context.h"

namespace mendel::lowerings::reductions {
namespace {

absl::StatusOr<Ints> Axes(OpContext& op, int64_t rank) {
  MENDEL_ASSIGN_OR_RETURN(const std::optional<Ints> given, op.AttributeOrInput("axes", 1));
  Ints axes;
  if (given.has_value()) {
    for (int64_t axis : *given) {
      MENDEL_ASSIGN_OR_RETURN(const int64_t normal, op.Axis(axis, rank));
      axes.push_back(normal);
    }
  }
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end())
    return InvalidInput("an axis is given twice");
  return axes;
}

absl::Status ImportReduce(OpContext& op) {
  const ValueId x = op.In(0);
  MENDEL_ASSIGN_OR_RETURN(Ints axes, Axes(op, op.rank(x)));
  const int64_t keepdims = op.Int("keepdims", 1);
  const bool no_op = op.Int("noop_with_empty_axes", 0) != 0;
  if (axes.empty() && (no_op || op.rank(x) == 0)) {  // of each element alone
    Shape single = op.shape(x);
    if (static_cast<int>(single.size()) >= kMaxRank) return Unsupported("rank ", kMaxRank);
    single.push_back(1);
    MENDEL_ASSIGN_OR_RETURN(const ValueId elements, op.Reshape(x, single));
    return op.SetOutput(
        0, op.Emit(op.op(), {elements}, {{"axes", Ints{op.rank(x)}}, {"keepdims", int64_t{0}}}));
  }
  for (int64_t d = 0; axes.empty() && d < op.rank(x); ++d) {
    axes.resize(static_cast<size_t>(op.rank(x)));
    for (size_t k = 0; k < axes.size(); ++k) axes[k] = static_cast<int64_t>(k);
  }
  return op.SetOutput(
      0, op.Emit(op.op(), {x}, {{"axes", axes}, {"keepdims", int64_t{keepdims != 0}}}));
}

absl::Status ImportArg(OpContext& op) {
  MENDEL_ASSIGN_OR_RETURN(const int64_t axis, op.Axis(op.Int("axis", 0), op.rank(op.In(0))));
  return op.SetOutput(
      0, op.Emit(op.op(), {op.In(0)},
                 {{"axis", axis},
                  {"keepdims", int64_t{op.Int("keepdims", 1) != 0}},
                  {"select_last_index", int64_t{op.Int("select_last_index", 0) != 0}}}));
}

absl::Status ImportCumSum(OpContext& op) {
  MENDEL_ASSIGN_OR_RETURN(const int64_t given, op.ConstantInt(1, "axis"));
  MENDEL_ASSIGN_OR_RETURN(const int64_t axis, op.Axis(given, op.rank(op.In(0))));
  return op.SetOutput(0, op.Emit("CumSum", {op.In(0)},
                                 {{"axis", axis},
                                  {"exclusive", int64_t{op.Int("exclusive", 0) != 0}},
                                  {"reverse", int64_t{op.Int("reverse", 0) != 0}}}));
}

const OpImportRegistrar registrar({
    {"ArgMax", 1, 1, &ImportArg},
    {"ArgMin", 1, 1, &ImportArg},
    {"CumSum", 2, 2, &ImportCumSum},
    {"ReduceL1", 1, 2, &ImportReduce},
    {"ReduceL2", 1, 2, &ImportReduce},
    {"ReduceLogSum", 1, 2, &ImportReduce},
    {"ReduceLogSumExp", 1, 2, &ImportReduce},
    {"ReduceMax", 1, 2, &ImportReduce},
    {"ReduceMean", 1, 2, &ImportReduce},
    {"ReduceMin", 1, 2, &ImportReduce},
    {"ReduceProd", 1, 2, &ImportReduce},
    {"ReduceSum", 1, 2, &ImportReduce},
    {"ReduceSumSquare", 1, 2, &ImportReduce},
});

}  // namespace
}  // namespace mendel::lowerings::reductions
