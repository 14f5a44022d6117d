// Random convolutions with what may follow them, for tests on a device.
#ifndef MENDEL_KERNELS_CUDA_TESTING_CONVOLUTION_CASE_H_
#define MENDEL_KERNELS_CUDA_TESTING_CONVOLUTION_CASE_H_

#include <cstdint>

#include "kernels/cuda/testing/device_case.h"
#include "runtime/numerics.h"

namespace mendel::cuda {

/// One or two convolutions, plain or transposed, of 1 to 3 dimensions, with groups, strides,
/// dilations and lopsided pads, in f32, f16 or bf16, with biases, residuals, activations (Silu
/// among them) and other operators after them; the program is left empty. Where `numerics` rounds
/// operands, f32 ones have more bits than any format.
DeviceCase RandomConvolutions(uint64_t seed, Numerics numerics);

/// A layer of a known network, seed by seed in turn, with the channels and extents that it has
/// there, in f32, f16 or bf16: stems, strided, dilated, depthwise, grouped and transposed ones, of
/// 1 to 3 dimensions. A bias, a residual and Relu follow it or do not. At most 60 million products,
/// so that the definition takes a second at most. The program is left empty.
DeviceCase LayerConvolution(uint64_t seed, Numerics numerics);
/// The number of different layers.
size_t LayerConvolutions();

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TESTING_CONVOLUTION_CASE_H_
