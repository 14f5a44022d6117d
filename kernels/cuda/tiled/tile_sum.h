// The loop that sums a tile of one product, as text: operands travel through shared memory, or lie
// there already.
#ifndef MENDEL_KERNELS_CUDA_TILED_TILE_SUM_H_
#define MENDEL_KERNELS_CUDA_TILED_TILE_SUM_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "graph/types.h"
#include "kernels/cuda/fusion/kernel_code.h"
#include "kernels/cuda/tiled/operand_text.h"

namespace mendel::cuda {

/// One side of a product.
struct SummedSide {
  /// Moves the side's tiles. None: the element of product k and row or column i is element k *
  /// pitch + i of `kept`.
  std::optional<OperandText> text = std::nullopt;
  Shape shape = {};
  PlaceOfElement place = {};
  ElementAtPosition element = {};
  std::string kept = "";
  int64_t pitch = 0;
};

/// Writes the statements that leave this thread's sums, from zero on, in
/// `sum`[thread_rows][thread_columns]. The text has the names `thread_row` and `thread_column`, the
/// thread's first ones in the tile; threads pass a barrier at the end. A kept side must extend to
/// whole steps of the tile's depth.
void WriteTileSum(KernelCode& code, const Tile& tile, std::string_view real,
                  const std::string& zero, int64_t depth, const SummedSide& left,
                  const SummedSide& right);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TILED_TILE_SUM_H_
