// Products by tensor cores, as text: mma.sync of one warp, with operands that are rounded to a
// smaller format as they are written to shared memory, and sums in f32.
//
// The instruction and who has which element: PTX ISA, "Matrix multiply-accumulate operation using
// mma instruction", m16n8k8 and m16n8k16. Thread t of a row's four has words t and t + 4 of the
// row's eight that one instruction takes: a product each in tf32, two that follow one another in
// f16 and bf16. So eight rows and four threads read 32 banks of shared memory.
#ifndef MENDEL_KERNELS_CUDA_TILED_TENSOR_CORES_H_
#define MENDEL_KERNELS_CUDA_TILED_TENSOR_CORES_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "graph/types.h"
#include "kernels/cuda/emit/tile.h"
#include "kernels/cuda/fusion/kernel_code.h"
#include "kernels/cuda/tiled/shared_tile.h"
#include "runtime/numerics.h"

namespace mendel::cuda {

/// Describes how tensor cores multiply in the format of a numerics class.
struct TensorCores {
  Numerics numerics;
  DType stored;      ///< whose elements words are made of
  int architecture;  ///< the first that has them: 80 is sm_80
  int depth;         ///< depth of one product of 16 x 8 sums
  double products;  ///< a clock cycle of a multiprocessor, of the first architecture that has TF32,
                    ///< too: for ranking
  std::string_view word;   ///< the text's type of a word in shared memory, of 4 bytes
  int word_products;       ///< that a word has: 1 or 2
  std::string_view round;  ///< of the text: "Word Round(float)", or "Word Round(float first, float
                           ///< second)" of two products
  /// Of the text: "void Multiply(float& c0, c1, c2, c3, const Word (&a)[4], const Word (&b)[2])".
  std::string_view multiply;
  std::string_view text;  ///< declares these, once a module; needs PreambleText() before it

  int words() const { return depth / word_products; }  ///< of one row or column of a product: 8
};

/// The tensor cores of tf32, f16 and bf16.
std::span<const TensorCores> AllTensorCores();
/// Null for the classes without tensor cores: strict, default and high.
const TensorCores* FindTensorCores(Numerics numerics);

/// The class of tensor cores that the named algorithm uses ("tile-tf32:..."); none: it uses none.
std::optional<Numerics> TensorCoresOf(std::string_view algorithm);

/// A warp's part of a block's tile: 8 x 4 threads of `tile`'s rows and columns each.
inline constexpr int kWarpRows = 8, kWarpColumns = 4, kWarpThreads = 32;

/// Declares `thread_row`, `thread_column`, the place of a thread's first sum in the tile, and what
/// WriteProducts needs. Sum [i][j] is at row thread_row + 8 i, column thread_column + 8 (j / 2) + j
/// % 2. The text has the name `thread`.
void WriteWarpPlaces(KernelCode& code, const Tile& tile);

/// An operand's tile. Its words are ready to be multiplied or, if `rounds` (of one product a word),
/// are rounded as they are read.
struct SharedFactors {
  SharedTile tile;
  bool rounds = false;
};
/// Adds the products of one step to the sums, arrays [thread_rows][thread_columns]: of the left
/// side and each of `rights`. The text has the name `buffer`.
struct RightProduct {
  SharedFactors right;
  std::string sum;
};
void WriteProducts(KernelCode& code, const Tile& tile, const TensorCores& cores,
                   const SharedFactors& left, std::span<const RightProduct> rights);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TILED_TENSOR_CORES_H_
