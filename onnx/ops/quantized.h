// Formulas that the quantized operators share.
#ifndef MENDEL_ONNX_OPS_QUANTIZED_H_
#define MENDEL_ONNX_OPS_QUANTIZED_H_

#include <optional>

#include "onnx/formula.h"

namespace mendel {

/// Float `x` rounded half to even, plus the zero point, clamped to what `dtype` holds.
ValueId Quantized(Formula& f, ValueId x, std::optional<ValueId> zero, DType dtype);

/// A cast. To an 8-bit float, values beyond the largest finite one become that one if `saturates`.
ValueId Converted(Formula& f, ValueId x, DType dtype, bool saturates);

/// Codes of 8 bits for a float tensor, by its smallest and largest element and 0.
struct DynamicRange {
  ValueId scale;  ///< (largest - smallest) / 255
  ValueId shift;  ///< the zero point, a whole number in the float type
};
/// Scales below `least_scale` are raised to it, so that zeros may be divided; 0: none is.
DynamicRange RangeOf(Formula& f, ValueId x, double least_scale = 0);

}  // namespace mendel

#endif  // MENDEL_ONNX_OPS_QUANTIZED_H_
