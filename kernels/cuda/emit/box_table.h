// The table of a kernel's boxes: one struct entry a box for what differs between them, constants
// for what does not.
#ifndef MENDEL_KERNELS_CUDA_EMIT_BOX_TABLE_H_
#define MENDEL_KERNELS_CUDA_EMIT_BOX_TABLE_H_

#include <map>
#include <string>

#include "kernels/cuda/emit/correction.h"
#include "kernels/cuda/emit/kernel_text.h"

namespace mendel::cuda {

/// "d", "h", "w" or the last of them: the spatial dimensions of a kernel of that rank.
std::vector<std::string> SpatialNames(size_t spatial);

struct BoxTable {
  std::string constants;  ///< declarations of what all boxes have in common
  std::string members;    ///< members of struct Box
  std::string entries;    ///< initializers, a line a box
  std::map<std::string, std::string>
      expressions;    ///< by field name: how kernel code reads it, e.g. "box.y_base", "kImages"
  int64_t tiles = 0;  ///< tiles of all boxes: the launch's blocks
  int64_t bytes = 0;  ///< bytes of all entries
};

/// Fields: images, channels (a group), size_*, x_base, x_n, x_c, x_*, limit_*, origin_*, w_begin,
/// bias_begin, y_*, add<k>_*; where a box sums over part of the kernel taps_* (extents) and tap_*
/// (the first).
BoxTable MakeBoxTable(const Correction& correction, const Tile& tile);

/// Tiles that `box` has.
int64_t TilesOf(const CorrectionBox& box, const Tile& tile);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_EMIT_BOX_TABLE_H_
