// The preamble is the text before every emitted kernel: number types, wrapping integers, and
// functions with one name for float and double.
#ifndef MENDEL_KERNELS_CUDA_FUSION_PREAMBLE_H_
#define MENDEL_KERNELS_CUDA_FUSION_PREAMBLE_H_

#include <string>

#include "graph/types.h"

namespace mendel::cuda {

/// CUDA C++ without headers, guarded against being read twice. Everything lies in namespace
/// mendel_text.
const std::string& PreambleText();

/// The struct that stores a dtype: "F32", "Bool", ... It has Stored, Real, Load and Store.
std::string_view StorageName(DType dtype);
/// The C type that its elements are computed in: float (f32, f16, bf16), double (f64) or long long
/// (integers and bool).
std::string_view RealName(DType dtype);
/// The C type of an element in memory.
std::string_view StoredName(DType dtype);
/// `value` as a literal of the type RealName(dtype), rounded to it.
std::string LiteralOf(DType dtype, double value);
/// The same for an exact integer.
std::string LiteralOf(DType dtype, int64_t value);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_FUSION_PREAMBLE_H_
