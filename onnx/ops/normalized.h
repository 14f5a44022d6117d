// Formulas that several operators share: root mean square normalization, convolution, Gemm.
#ifndef MENDEL_ONNX_OPS_NORMALIZED_H_
#define MENDEL_ONNX_OPS_NORMALIZED_H_

#include <optional>

#include "onnx/formula.h"

namespace mendel {

/// x / sqrt(mean(x^2) + epsilon) * scale, over the dimensions from `axis` on.
ValueId RmsNormalized(Formula& f, ValueId x, ValueId scale, int64_t axis, double epsilon);

/// Conv of `x` with `w`, with the attributes of `op`.
absl::StatusOr<ValueId> EmitConv(OpContext& op, ValueId x, ValueId w, std::optional<ValueId> bias);

/// Gemm of inputs 0 to 2 of `op`, with its attributes.
absl::StatusOr<ValueId> EmitGemm(OpContext& op);

}  // namespace mendel

#endif  // MENDEL_ONNX_OPS_NORMALIZED_H_
