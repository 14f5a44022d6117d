// Formulas that several operators share: root mean square normalization, convolution.
#ifndef MENDEL_ONNX_OPS_NORMALIZED_H_
#define MENDEL_ONNX_OPS_NORMALIZED_H_

#include <optional>

#include "onnx/formula.h"

namespace mendel {

/// x / sqrt(mean(x^2) + epsilon) * scale, over the dimensions from `axis` on.
ValueId RmsNormalized(Formula& f, ValueId x, ValueId scale, int64_t axis, double epsilon);

/// Conv of `x` with `w`, with the attributes of `op`.
absl::StatusOr<ValueId> EmitConv(OpContext& op, ValueId x, ValueId w, std::optional<ValueId> bias);

}  // namespace mendel

#endif  // MENDEL_ONNX_OPS_NORMALIZED_H_
