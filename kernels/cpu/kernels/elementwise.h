// Fused elementwise kernels: a chain of functions evaluated tile by tile, so that intermediate
// values stay in the L1 cache.
#ifndef MENDEL_KERNELS_CPU_KERNELS_ELEMENTWISE_H_
#define MENDEL_KERNELS_CPU_KERNELS_ELEMENTWISE_H_

#include <array>
#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "graph/types.h"
#include "kernels/cpu/kernels/kernel.h"
#include "kernels/cpu/simd/tile_math.h"

namespace mendel::cpu {

/// An operand in memory, with its strides along the loops.
struct TileOperand {
  Place place;
  Shape strides;
  DType dtype = DType::kF32;  ///< as it lies in memory; registers are f32
  bool scaled = false;        ///< the register gets (element - zero) * scale
  float zero = 0, scale = 1;
};

/// registers[out] = function(registers[in...]). Registers 0 ... operands - 1 are the operands.
struct TileCall {
  std::string_view name;
  TileFunction function = nullptr;
  int out = 0;
  std::array<int, 3> in{};
  std::array<float, 4> parameters{};
};

struct TileProgram {
  Shape extents;  ///< loops in the output's memory order, outermost first; the output is contiguous
                  ///< along them
  std::vector<TileOperand> operands;
  std::vector<TileCall> calls;
  int result = 0;  ///< register
  int registers = 0;
  Place output;
  DType output_dtype = DType::kF32;
  bool quantizes = false;               ///< the result on its way to the output, which is u8 or i8
  std::array<float, 4> quantization{};  ///< parameters of the tile function Quantize
};

/// Registers that a program may have.
inline constexpr size_t kMaxRegisters = 64;

std::unique_ptr<Kernel> MakeElementwiseKernel(TileProgram program);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_KERNELS_ELEMENTWISE_H_
