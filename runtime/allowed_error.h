// The error that a numerics class allows in results.
#ifndef MENDEL_RUNTIME_ALLOWED_ERROR_H_
#define MENDEL_RUNTIME_ALLOWED_ERROR_H_

#include <algorithm>

#include "runtime/numerics.h"

namespace mendel {

/// The largest error of a plan of the class, relative to the largest output, beyond that of its
/// baseline. Classes of f32: 1e-5. bf16: 2^-5, the sum of eight roundings of an operand (2^-8
/// each), or of 64 independent ones, about two for each of 32 layers. int8: one step of a symmetric
/// quantization of the largest output.
inline double AllowedError(Numerics numerics) {
  if (numerics == Numerics::kInt8) return 1.0 / 127;
  return std::max(1e-5, 8 * OperandRounding(numerics));
}

}  // namespace mendel

#endif  // MENDEL_RUNTIME_ALLOWED_ERROR_H_
