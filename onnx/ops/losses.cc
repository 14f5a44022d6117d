// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss, in the steps of ONNX's function bodies.

#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "onnx/formula.h"
#include "onnx/ops/indexing.h"

namespace mendel::lowerings::losses {
namespace {

/// Inputs and attributes of a loss; the log probabilities are an operand of their own.
struct Loss {
  ValueId target;                  ///< [N, d1, d2, ...]: the class of each sample
  std::optional<ValueId> weight;   ///< [C]
  std::optional<int64_t> ignored;  ///< samples of this class do not count
  std::string reduction;
};

absl::StatusOr<Loss> ReadLoss(OpContext& op) {
  const Shape x = op.shape(op.In(0));
  if (x.size() < 2) return InvalidInput("expects dimensions of samples and of classes");
  Loss loss;
  loss.target = op.In(1);
  loss.reduction = op.Str("reduction", "mean");
  if (op.HasAttribute("ignore_index")) loss.ignored = op.Int("ignore_index", 0);
  if (op.Has(2)) loss.weight = op.In(2);
  if (loss.reduction != "none" && loss.reduction != "sum" && loss.reduction != "mean")
    return InvalidInput("reduction '", loss.reduction, "' does not exist");
  Shape samples = x;
  samples.erase(samples.begin() + 1);
  if (op.shape(loss.target) != samples)
    return InvalidInput("target ", ShapeString(op.shape(loss.target)), " is not ",
                        ShapeString(samples));
  if (loss.weight.has_value() && op.shape(*loss.weight) != Shape{x[1]})
    return InvalidInput("weight ", ShapeString(op.shape(*loss.weight)), " is not ",
                        ShapeString({x[1]}));
  if (!loss.ignored.has_value()) {
    MENDEL_ASSIGN_OR_RETURN(loss.target, CheckedIndices(op, loss.target, x[1]));
  }
  return loss;
}

/// Reduces all elements to a scalar.
ValueId Reduced(Formula& f, std::string_view name, ValueId x) {
  Ints axes(f.shape(x).size());
  std::iota(axes.begin(), axes.end(), 0);
  return f.Op(name, {x}, {{"axes", std::move(axes)}, {"keepdims", int64_t{0}}});
}

/// The weight of each sample, of the shape of the target; none when all count alike. `column` holds
/// the classes as [N, 1, d1, d2, ...], ignored ones replaced.
std::optional<ValueId> SampleWeights(Formula& f, const Loss& loss, ValueId like, ValueId column,
                                     std::optional<ValueId> mask) {
  const auto weight_of = [&](ValueId classes) {
    return f.Op("Gather", {*loss.weight, classes}, {{"axis", int64_t{0}}});
  };
  if (!mask.has_value()) {
    if (!loss.weight.has_value()) return std::nullopt;
    return weight_of(loss.target);
  }
  const Shape samples = f.shape(loss.target);
  const ValueId none = f.Scalar(like, 0);
  if (!loss.weight.has_value()) return f.Where(f.Reshape(*mask, samples), none, f.Scalar(like, 1));
  return f.Reshape(f.Where(*mask, none, weight_of(column)), samples);
}

/// The loss picks from the log probabilities `x` [N, C, d1, d2, ...].
absl::StatusOr<ValueId> NegativeLogLikelihood(OpContext& op, const Loss& loss, ValueId x) {
  Formula f(op);
  const int64_t classes = op.shape(x)[1];
  Shape shape = op.shape(x);
  shape[1] = 1;
  ValueId column = f.Reshape(loss.target, shape);
  std::optional<ValueId> mask;
  if (loss.ignored.has_value()) {
    const ValueId wide = f.Cast(column, DType::kI64);
    const Ints ignored = {*loss.ignored};
    mask = f.Op("Equal", {wide, f.Literal(Tensor::FromInts({DType::kI64, {}}, ignored))});
    column = f.Where(*mask, f.Sub(column, column), column);
    if (!f.ok()) return f.status();
    MENDEL_ASSIGN_OR_RETURN(column, CheckedIndices(op, column, classes));
  }
  ValueId picked = f.Op("GatherElements", {x, column}, {{"axis", int64_t{1}}});
  if (mask.has_value()) picked = f.Where(*mask, f.Scalar(x, 0), picked);
  ValueId result = f.Reshape(f.Op("Neg", {picked}), f.shape(loss.target));
  const std::optional<ValueId> weights = SampleWeights(f, loss, x, column, mask);
  if (weights.has_value()) result = f.Mul(result, *weights);
  if (loss.reduction == "sum") result = Reduced(f, "ReduceSum", result);
  if (loss.reduction == "mean") {
    result = weights.has_value()
                 ? f.Div(Reduced(f, "ReduceSum", result), Reduced(f, "ReduceSum", *weights))
                 : Reduced(f, "ReduceMean", result);
  }
  return f.ok() ? absl::StatusOr<ValueId>(result) : f.status();
}

absl::Status ImportNegativeLogLikelihood(OpContext& op) {
  MENDEL_ASSIGN_OR_RETURN(const Loss loss, ReadLoss(op));
  return op.SetOutput(0, NegativeLogLikelihood(op, loss, op.In(0)));
}

absl::Status ImportSoftmaxCrossEntropy(OpContext& op) {
  MENDEL_ASSIGN_OR_RETURN(const Loss loss, ReadLoss(op));
  Formula f(op);
  const Shape shape = op.shape(op.In(0));
  const Shape inner(shape.begin() + 2, shape.end());
  const ValueId flat = f.Reshape(op.In(0), {shape[0], shape[1], NumElements(inner)});
  const ValueId logs = f.Op("LogSoftmax", {f.Transpose(flat, {0, 2, 1})}, {{"axis", int64_t{2}}});
  const ValueId x = f.Reshape(f.Transpose(logs, {0, 2, 1}), shape);
  if (op.Wants(1)) f.SetOutput(1, x);
  MENDEL_RETURN_IF_ERROR(f.status());
  return op.SetOutput(0, NegativeLogLikelihood(op, loss, x));
}

const OpImportRegistrar registrar({
    {"NegativeLogLikelihoodLoss", 2, 3, &ImportNegativeLogLikelihood},
    {"SoftmaxCrossEntropyLoss", 2, 3, &ImportSoftmaxCrossEntropy},
});

}  // namespace
}  // namespace mendel::lowerings::losses
