// What a numerics class allows results to be wrong by.
#ifndef MENDEL_RUNTIME_ALLOWED_ERROR_H_
#define MENDEL_RUNTIME_ALLOWED_ERROR_H_

#include <algorithm>

#include "runtime/numerics.h"

namespace mendel {

/// Error that a plan of the class may have whatever its baseline has, relative to the largest output. f32's classes: 1e-5. bf16:
/// 2^-5, the sum of eight roundings of an operand (2^-8 each), or of 64 that are independent, about two for each of 32 layers.
inline double AllowedError(Numerics numerics) { return std::max(1e-5, 8 * OperandRounding(numerics)); }

}  // namespace mendel

#endif  // MENDEL_RUNTIME_ALLOWED_ERROR_H_
