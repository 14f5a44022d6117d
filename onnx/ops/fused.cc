// Fused operators of ONNX Runtime (domain com.microsoft), spelled in what they fuse.

#include <cmath>

#include "onnx/formula.h"
#include "onnx/ops/normalized.h"

namespace mendel::lowerings::fused {
namespace {

/// Gelu of x, or of x + bias where there is one.
absl::Status ImportGelu(OpContext& op) {
  Formula f(op);
  const ValueId x = op.Has(1) ? f.Add(op.In(0), op.In(1)) : op.In(0);
  const bool fast = op.op() == "FastGelu";
  const std::string approximate = fast ? "tanh" : op.Str("approximate", "none");
  f.SetOutput(0, f.Op("Gelu", {x}, {{"approximate", approximate}}));
  return f.status();
}

/// x sigmoid(alpha x).
absl::Status ImportQuickGelu(OpContext& op) {
  Formula f(op);
  f.SetOutput(0, f.Swish(op.In(0), op.Float("alpha", static_cast<double>(1.702f))));
  return f.status();
}

/// Axis 0 moves in front of the last: [0, 1, .., r - 1] becomes [1, .., r - 2, 0, r - 1].
ValueId MovedBatch(Formula& f, ValueId value) {
  Ints perm;
  for (int64_t d = 1; d + 1 < f.rank(value); ++d) perm.push_back(d);
  perm.push_back(0);
  perm.push_back(f.rank(value) - 1);
  return f.Transpose(value, perm);
}

/// alpha A B with either operand transposed before.
absl::Status ImportFusedMatMul(OpContext& op) {
  Formula f(op);
  ValueId a = op.In(0), b = op.In(1);
  if (op.rank(a) < 2 || op.rank(b) < 2) return Unsupported("operands below rank 2");
  const bool batch_a = op.Int("transBatchA", 0) != 0, batch_b = op.Int("transBatchB", 0) != 0;
  if (batch_a) a = MovedBatch(f, a);
  if (batch_b) b = MovedBatch(f, b);
  if (op.Int("transA", 0) != 0) a = f.Transposed(a);
  if (op.Int("transB", 0) != 0) b = f.Transposed(b);
  const ValueId product = f.MatMul(a, b);
  const double alpha = op.Float("alpha", 1);
  f.SetOutput(0, alpha == 1 ? product : f.Times(product, alpha));
  return f.status();
}

/// The activation `name`; parameter `k` is what `parameter` makes of its ONNX name, number and
/// default.
template <class Parameter>
ValueId Activated(Formula& f, const std::string& name, ValueId x, const Parameter& parameter) {
  if (name.empty()) return x;
  if (name == "Relu" || name == "Sigmoid" || name == "Softplus" || name == "Softsign" ||
      name == "Tanh")
    return f.Op(name, {x});
  if (name == "LeakyRelu") return f.Op(name, {x}, {{"alpha", parameter("alpha", 0, 0.01f)}});
  if (name == "Elu" || name == "ThresholdedRelu")
    return f.Op(name, {x}, {{"alpha", parameter("alpha", 0, 1.0)}});
  if (name == "Clip")
    return f.Op(name, {x},
                {{"min", parameter("min", 0, -HUGE_VAL)}, {"max", parameter("max", 1, HUGE_VAL)}});
  if (name == "HardSigmoid")
    return f.Op(name, {x},
                {{"alpha", parameter("alpha", 0, 0.2f)}, {"beta", parameter("beta", 1, 0.5)}});
  if (name == "Selu")
    return f.Op(name, {x},
                {{"alpha", parameter("alpha", 0, 1.67326319217681884765625)},
                 {"gamma", parameter("gamma", 1, 1.05070102214813232421875)}});
  f.Fail(Unsupported("activation '", name, "' is not supported"));
  return x;
}

/// Conv, plus input 3, activated.
absl::Status ImportFusedConv(OpContext& op) {
  Formula f(op);
  MENDEL_ASSIGN_OR_RETURN(ValueId y, EmitConv(op, op.In(0), op.In(1),
                                              op.Has(2) ? std::optional(op.In(2)) : std::nullopt));
  if (op.Has(3)) y = f.Add(y, op.In(3));
  const std::vector<double> given =
      op.FloatList("activation_params").value_or(std::vector<double>());
  const auto parameter = [&](const char*, size_t k, double fallback) {
    return k < given.size() ? given[k] : fallback;
  };
  f.SetOutput(0, Activated(f, op.Str("activation", ""), y, parameter));
  return f.status();
}

/// Gemm, activated.
absl::Status ImportFusedGemm(OpContext& op) {
  Formula f(op);
  MENDEL_ASSIGN_OR_RETURN(const ValueId y, EmitGemm(op));
  const auto parameter = [&](const char* name, size_t, double fallback) {
    return op.Float(Cat("activation_", name), fallback);
  };
  f.SetOutput(0, Activated(f, op.Str("activation", ""), y, parameter));
  return f.status();
}

/// LayerNormalization of input + skip + bias, over the last dimension; output 3 is that sum.
absl::Status ImportSkipLayerNormalization(OpContext& op) {
  Formula f(op);
  const bool simplified = op.op() == "SkipSimplifiedLayerNormalization";
  const int bias = simplified ? 3 : 4;
  ValueId sum = f.Add(op.In(0), op.In(1));
  if (op.Has(bias)) sum = f.Add(sum, op.In(bias));
  const int64_t axis = op.rank(op.In(0)) - 1;
  const double epsilon = op.Float("epsilon", static_cast<double>(1e-12f));
  if (simplified) {
    f.SetOutput(0, RmsNormalized(f, sum, op.In(2), axis, epsilon));
  } else {
    std::vector<ValueId> inputs = {sum, op.In(2)};
    if (op.Has(3)) inputs.push_back(op.In(3));
    f.SetOutput(0, f.Op("LayerNormalization", inputs, {{"axis", axis}, {"epsilon", epsilon}}));
  }
  if (op.Wants(3)) f.SetOutput(3, sum);
  return f.status();
}

const OpImportRegistrar registrar({
    {"com.microsoft.BiasGelu", 2, 2, &ImportGelu},
    {"com.microsoft.FastGelu", 1, 2, &ImportGelu},
    {"com.microsoft.FusedConv", 2, 4, &ImportFusedConv},
    {"com.microsoft.FusedGemm", 2, 3, &ImportFusedGemm},
    {"com.microsoft.FusedMatMul", 2, 2, &ImportFusedMatMul},
    {"com.microsoft.Gelu", 1, 1, &ImportGelu},
    {"com.microsoft.QuickGelu", 1, 1, &ImportQuickGelu},
    {"com.microsoft.SkipLayerNormalization", 3, 5, &ImportSkipLayerNormalization},
    {"com.microsoft.SkipSimplifiedLayerNormalization", 3, 4, &ImportSkipLayerNormalization},
    {"com.microsoft.TransposeMatMul", 2, 2, &ImportFusedMatMul},
});

}  // namespace
}  // namespace mendel::lowerings::fused
