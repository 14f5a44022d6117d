// The number types of the emitted text: how elements are stored, and what is computed with.
//
// A number type has Stored, Real (with + and *), Load, Store, Zero and the functions that the
// epilogue uses: Relu(v), LeakyRelu(v, slope), Clip(v, low, high), Sigmoid(v), Tanh(v).
#ifndef MENDEL_KERNELS_CUDA_EMIT_NUMBER_TEXT_H_
#define MENDEL_KERNELS_CUDA_EMIT_NUMBER_TEXT_H_

#include <string>

#include "kernels/cuda/emit/correction.h"

namespace mendel::cuda {

/// "F32", "F16" or "BF16".
std::string NumberName(DType dtype);
/// Its definition: 32-bit sums whatever is stored.
std::string NumberText(DType dtype);
/// Lines that apply `steps` to `value`; additions read add0, add1, ... at the offsets given.
std::string EpilogueCode(const Correction& correction, const std::vector<std::string>& add_offsets,
                         const std::string& bias_index);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_EMIT_NUMBER_TEXT_H_
