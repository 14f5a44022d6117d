// Pools over windows, and the global ones, which are reductions over all spatial axes.

#include "onnx/ops/windows.h"

namespace mendel::lowerings::pools {
namespace {

absl::Status ImportPool(OpContext& op) {
  const ValueId x = op.In(0);
  if (op.rank(x) < 3)
    return InvalidInput("expects at least one spatial dimension, not ", ShapeString(op.shape(x)));
  const Shape spatial(op.shape(x).begin() + 2, op.shape(x).end());
  if (!op.HasAttribute("kernel_shape")) return InvalidInput("has no kernel_shape");
  MENDEL_ASSIGN_OR_RETURN(WindowAttributes windows, ReadWindows(op, spatial, {}));
  MENDEL_RETURN_IF_ERROR(ResolveAutoPad(spatial, windows));
  Attributes attrs{{"kernel_shape", windows.kernel},
                   {"strides", windows.strides},
                   {"pads", windows.pads},
                   {"dilations", windows.dilations},
                   // SAME already rounds up.
                   {"ceil_mode", windows.auto_pad == "NOTSET" || windows.auto_pad == "VALID"
                                     ? op.Int("ceil_mode", 0)
                                     : int64_t{0}}};
  op.Ignore("ceil_mode");
  if (op.op() == "AveragePool") attrs.Set("count_include_pad", op.Int("count_include_pad", 0));
  if (op.op() == "LpPool") attrs.Set("p", op.Int("p", 2));
  if (op.op() == "MaxPool")
    op.Ignore("storage_order");  // orders the second output only, which is not offered
  return op.SetOutput(0, op.Emit(op.op(), {x}, std::move(attrs)));
}

absl::Status ImportGlobalPool(OpContext& op) {
  std::string reduction = op.op() == "GlobalMaxPool" ? "ReduceMax" : "ReduceMean";
  if (op.op() == "GlobalLpPool") {
    const int64_t p = op.Int("p", 2);
    if (p != 1 && p != 2) return Unsupported("only p = 1 and p = 2 are supported, not ", p);
    reduction = p == 1 ? "ReduceL1" : "ReduceL2";
  }
  if (op.rank(op.In(0)) < 3)
    return InvalidInput("expects at least one spatial dimension, not ",
                        ShapeString(op.shape(op.In(0))));
  Ints axes;
  for (int64_t d = 2; d < op.rank(op.In(0)); ++d) axes.push_back(d);
  return op.SetOutput(0,
                      op.Emit(reduction, {op.In(0)}, {{"axes", axes}, {"keepdims", int64_t{1}}}));
}

const OpImportRegistrar registrar({
    {"AveragePool", 1, 1, &ImportPool},
    {"GlobalAveragePool", 1, 1, &ImportGlobalPool},
    {"GlobalLpPool", 1, 1, &ImportGlobalPool},
    {"GlobalMaxPool", 1, 1, &ImportGlobalPool},
    {"LpPool", 1, 1, &ImportPool},
    {"MaxPool", 1, 1, &ImportPool},
});

}  // namespace
}  // namespace mendel::lowerings::pools
