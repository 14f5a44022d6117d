// A tile is the part of a result that one block of threads of an emitted kernel computes.
#ifndef MENDEL_KERNELS_CUDA_EMIT_TILE_H_
#define MENDEL_KERNELS_CUDA_EMIT_TILE_H_

namespace mendel::cuda {

/// A block of threads computes rows x columns (positions x output channels), `depth` products at a
/// time; a thread computes thread_rows x thread_columns of them in registers.
struct Tile {
  int rows = 64;
  int columns = 64;
  int depth = 16;
  int thread_rows = 4;
  int thread_columns = 4;

  int threads() const { return rows / thread_rows * (columns / thread_columns); }
  bool operator==(const Tile&) const = default;
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_EMIT_TILE_H_
