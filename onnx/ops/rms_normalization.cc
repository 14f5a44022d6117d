// RMSNormalization and ONNX Runtime's SimplifiedLayerNormalization, in squares, means and roots.

#include "onnx/ops/normalized.h"

namespace mendel {

ValueId RmsNormalized(Formula& f, ValueId x, ValueId scale, int64_t axis, double epsilon) {
  Ints axes;
  for (int64_t d = axis; d < f.rank(x); ++d) axes.push_back(d);
  const ValueId mean = f.Reduce("ReduceMean", f.Mul(x, x), axes);
  const ValueId root = f.Op("Sqrt", {f.Plus(mean, epsilon)});
  return f.Mul(f.Mul(x, f.Op("Reciprocal", {root})), scale);
}

namespace lowerings::rms_normalization {
namespace {

absl::Status ImportRmsNormalization(OpContext& op) {
  Formula f(op);
  op.Ignore("stash_type");  // the language has no rounding inside an operator
  const ValueId x = op.In(0);
  MENDEL_ASSIGN_OR_RETURN(const int64_t axis, op.Axis(op.Int("axis", -1), op.rank(x)));
  const double epsilon = op.Float("epsilon", static_cast<double>(1e-5f));
  // Scale broadcasts into x, never x into scale.
  const std::optional<Shape> shape = BroadcastShapes(op.shape(x), op.shape(op.In(1)));
  if (shape != op.shape(x))
    return InvalidInput("scale ", ShapeString(op.shape(op.In(1))), " does not broadcast into ",
                        ShapeString(op.shape(x)));
  f.SetOutput(0, RmsNormalized(f, x, op.In(1), axis, epsilon));
  return f.status();
}

const OpImportRegistrar registrar({
    {"RMSNormalization", 2, 2, &ImportRmsNormalization},
    {"SimplifiedLayerNormalization", 2, 2, &ImportRmsNormalization},
});

}  // namespace
}  // namespace lowerings::rms_normalization
}  // namespace mendel
