// A shared tile is an operand's tile in shared memory, as text: two buffers, of which one is
// multiplied while the other one is filled. A word is what a multiplying thread reads at once: a
// product's factor, or those of two consecutive products, in 16 bits each.
#ifndef MENDEL_KERNELS_CUDA_TILED_SHARED_TILE_H_
#define MENDEL_KERNELS_CUDA_TILED_SHARED_TILE_H_

#include <cstdint>
#include <string>

namespace mendel::cuda {

struct SharedTile {
  std::string name;  ///< name of the array of words
  int across = 0;    ///< rows (left) or columns (right)
  int words = 0;     ///< words of each of them in a step
  /// Words between rows of a buffer, against bank conflicts; where it is swizzled: none.
  int padding = 0;
  /// Words of one row or column follow one another, in parts of four words (16 bytes) that are
  /// exchanged so that the same part of eight rows or columns lies in different banks; `words` is a
  /// multiple of 8 then. Else row or column follows row or column.
  bool swizzled = false;

  int pitch() const { return swizzled ? words : across + padding; }
  /// Words of both buffers, so that what follows them is aligned to four.
  int64_t Words() const;
  /// Word `word` of row or column `at` (expressions) of a buffer. `eighth`: the remainder of `at`
  /// by 8, which may be simpler.
  std::string At(const std::string& buffer, const std::string& word, const std::string& at,
                 const std::string& eighth) const;
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TILED_SHARED_TILE_H_
