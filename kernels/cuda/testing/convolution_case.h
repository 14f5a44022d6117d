// Random convolutions with what may follow them, for tests on a device.
#ifndef MENDEL_KERNELS_CUDA_TESTING_CONVOLUTION_CASE_H_
#define MENDEL_KERNELS_CUDA_TESTING_CONVOLUTION_CASE_H_

#include <cstdint>

#include "kernels/cuda/testing/device_case.h"
#include "runtime/numerics.h"

namespace mendel::cuda {

/// One or two convolutions, plain or transposed, of 1 to 3 dimensions, with groups, strides,
/// dilations and lopsided pads, in f32, f16 or bf16, with biases, residuals, activations and other
/// operators after them; the program is left empty. Where `numerics` rounds operands, f32 ones have
/// more bits than any format.
DeviceCase RandomConvolutions(uint64_t seed, Numerics numerics);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TESTING_CONVOLUTION_CASE_H_
