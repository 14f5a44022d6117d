// Chain places are the positions of a block of a chain kernel: its results, and the positions that
// it keeps for them in shared memory (chain_shape.h).
#ifndef MENDEL_KERNELS_CUDA_TILED_CHAIN_PLACES_H_
#define MENDEL_KERNELS_CUDA_TILED_CHAIN_PLACES_H_

#include <string>
#include <vector>

#include "graph/graph.h"
#include "kernels/cuda/fusion/kernel_code.h"
#include "kernels/cuda/fusion/position.h"
#include "kernels/cuda/tiled/chain_shape.h"

namespace mendel::cuda {

/// Writes index arithmetic into `code`, which with `shape` must outlive it. Functions add to
/// `inside` the conditions under which the place exists.
class ChainPlaces {
 public:
  ChainPlaces(KernelCode& code, const ChainShape& shape) : code_(code), shape_(shape) {}

  /// Declares the first result and the first kept position of tile number `tile` along each axis.
  /// Call first.
  void Begin(const std::string& tile);
  const std::string& first_result(size_t axis) const { return results_[axis]; }

  /// The column of kept position `at` in the first convolution's result, of shape `made`.
  std::string KeptColumn(const Shape& made, const std::string& at, std::string& inside) const;
  /// The second product's column of position `at` of the tile.
  std::string ResultColumn(const std::string& at, std::string& inside) const;
  /// The offset in shared memory of the element of the first convolution's result at `position`;
  /// `matrix` is the second one's.
  std::string KeptOffset(const Position& position, const std::string& matrix) const;

 private:
  KernelCode& code_;
  const ChainShape& shape_;
  std::vector<std::string> results_, kept_;
};

/// Adds a term to a condition.
void Require(std::string& inside, const std::string& condition);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TILED_CHAIN_PLACES_H_
