// Products by tensor cores, as text: mma.sync of one warp, with operands in f32 that are rounded to a smaller format and sums in
// f32.
//
// The instruction and who has which element: PTX ISA, "Matrix multiply-accumulate operation using mma instruction", m16n8k8 and
// m16n8k16. Which product of a sum is whose does not matter as long as both operands agree: thread t of a row's four has the
// products t, t + 4, ... here, so that eight rows and four threads read 32 banks of shared memory.
#ifndef MENDEL_KERNELS_CUDA_TILED_TENSOR_CORES_H_
#define MENDEL_KERNELS_CUDA_TILED_TENSOR_CORES_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "kernels/cuda/emit/tile.h"
#include "kernels/cuda/fusion/kernel_code.h"
#include "runtime/numerics.h"

namespace mendel::cuda {

/// How tensor cores multiply in the format of a numerics class.
struct TensorCores {
  Numerics numerics;
  int architecture;  ///< the first that has them: 80 is sm_80
  int depth;         ///< of one product of 16 x 8 sums
  double products;   ///< a clock cycle of a multiprocessor, of the first architecture that has TF32, too: for ranking
  /// Of the text: "void Multiply(float& c0, c1, c2, c3, const float (&a)[depth / 2], const float (&b)[depth / 4])".
  std::string_view multiply;
  std::string_view round;  ///< of the text: "float Round(float)", for operands before Multiply; empty: Multiply rounds
  std::string_view text;   ///< declares both, once a module; needs PreambleText() before it
};

/// Of tf32, f16 and bf16.
std::span<const TensorCores> AllTensorCores();
/// Null for the classes without: strict, default and high.
const TensorCores* FindTensorCores(Numerics numerics);

/// Those that the algorithm of this name uses ("tile-tf32:..."); none where it uses none.
std::optional<Numerics> TensorCoresOf(std::string_view algorithm);

/// A warp's part of a block's tile: 8 x 4 threads of `tile`'s rows and columns each.
inline constexpr int kWarpRows = 8, kWarpColumns = 4, kWarpThreads = 32;

/// Declares `thread_row`, `thread_column`, the place of a thread's first sum in the tile, and what WriteProducts needs. Sum [i][j]
/// is at row thread_row + 8 i, column thread_column + 8 (j / 2) + j % 2. The text has the name `thread`.
void WriteWarpPlaces(KernelCode& code, const Tile& tile);

/// Where an operand's tile of one step lies: product k of row or column c at [(buffer * depth + k) * pitch + c].
struct SharedOperand {
  std::string name;
  int pitch = 0;
};
/// Adds the products of one step to the sums, arrays [thread_rows][thread_columns]: of the left side and each of `rights`.
struct RightProduct {
  SharedOperand right;
  std::string sum;
};
void WriteProducts(KernelCode& code, const Tile& tile, const TensorCores& cores, std::string_view real, const SharedOperand& left,
                   std::span<const RightProduct> rights);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TILED_TENSOR_CORES_H_
