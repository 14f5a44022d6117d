// Formulas that the quantized operators share.
#ifndef MENDEL_ONNX_OPS_QUANTIZED_H_
#define MENDEL_ONNX_OPS_QUANTIZED_H_

#include <optional>

#include "onnx/formula.h"

namespace mendel {

/// Float `x` rounded half to even, plus the zero point, clamped to what `dtype` holds.
ValueId Quantized(Formula& f, ValueId x, std::optional<ValueId> zero, DType dtype);

}  // namespace mendel

#endif  // MENDEL_ONNX_OPS_QUANTIZED_H_
