// Sums of two tensors of codes, quantized: the residual connections of quantized networks.
#ifndef MENDEL_KERNELS_CPU_KERNELS_CODE_SUM_H_
#define MENDEL_KERNELS_CPU_KERNELS_CODE_SUM_H_

#include <memory>

#include "kernels/cpu/kernels/elementwise.h"

namespace mendel::cpu {

/// The program as one pass over vectors in registers, bit for bit; null where it is no sum of two
/// tensors of codes, with or without Relu, that becomes codes.
std::unique_ptr<Kernel> MakeCodeSumKernel(const TileProgram& program);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_KERNELS_CODE_SUM_H_
