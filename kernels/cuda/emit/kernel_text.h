// The kernel text of a correction is CUDA C++: a tiled implicit GEMM over all its boxes in one
// launch, with the epilogue inside.
//
// The text includes nothing and needs no toolkit's headers: NVRTC, nvcc and (behind
// emulator/shim.h) the host's compiler take the same bytes. Shapes are constants; what differs
// between boxes is a table with prefix sums of their tiles. Everything that computes is a template
// over the number type, so that the text can also be instantiated with elements of a prime field.
#ifndef MENDEL_KERNELS_CUDA_EMIT_KERNEL_TEXT_H_
#define MENDEL_KERNELS_CUDA_EMIT_KERNEL_TEXT_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/cuda/emit/correction.h"
#include "kernels/cuda/emit/tile.h"

namespace mendel::cuda {

/// Multiprocessors of the GPU (H100) that tiles are chosen for, and into how many parts sums are
/// divided.
inline constexpr int kMultiprocessors = 132;
/// All tiles that are tried, larger ones first.
std::span<const Tile> Tiles();
/// The tile whose padding costs least, the larger one of equals unless the launch would have fewer
/// blocks than a GPU has multiprocessors.
Tile ChooseTile(const Correction& correction);
/// Tiles that the boxes have, all channels and groups.
int64_t TilesOf(const Correction& correction, const Tile& tile);

struct LaunchShape {
  unsigned grid = 1;    ///< blocks, one dimension
  unsigned block = 1;   ///< threads a block, one dimension
  unsigned shared = 0;  ///< bytes of dynamic shared memory for 4-byte numbers
};

/// The decisions about a kernel before its text is written.
struct KernelShape {
  Tile tile;
  LaunchShape launch;
  /// Bytes of the table of boxes, in the constant memory of the kernel's module.
  int64_t constant_bytes = 0;
};
/// Constant memory of a module.
inline constexpr int64_t kConstantBytes = 64 << 10;

struct EmittedKernel {
  std::string name;  ///< name of the entry, in C linkage
  // Mend is the template's old name, Correct in version 0.2: plans store the texts by their hash.
  std::string name_space;  ///< of the template Mend<Number> and the number types
  std::string text;
  LaunchShape launch;
  Tile tile;
  int operands = 0;  ///< parameters are x, packed weights (if any), bias (if any), operands of the
                     ///< additions, y: all pointers
  bool bias = false;
  bool weights = true;
  std::string body = "";    ///< the text without its entry, which calls
                            ///< name_space::Mend<name_space::number>(block, parameters...)
  std::string number = "";  ///< the number type of the correction's dtype
};

/// The shape that EmitKernel gives `correction`. InvalidArgument or Unimplemented as
/// CheckCorrection, and Unimplemented where the boxes need more blocks than a launch may have or
/// more constant memory than there is.
absl::StatusOr<KernelShape> ShapeOf(const Correction& correction);

/// Emits the kernel. Errors are those of ShapeOf; InvalidArgument for another tile than that of a
/// divided sum. The text depends on the correction only.
absl::StatusOr<EmittedKernel> EmitKernel(const Correction& correction);
absl::StatusOr<EmittedKernel> EmitKernel(const Correction& correction, const Tile& tile);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_EMIT_KERNEL_TEXT_H_
