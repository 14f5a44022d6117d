// A chain shape divides the work of two products in one kernel among blocks. It says what each
// block keeps in shared memory between the products.
//
// A block computes a part of the first product's result, over the whole depth of the second
// product, and then the second product's part. Parts are rows of a matrix, or boxes of positions in
// images. A box includes all positions around it that the second convolution reads (the halo, which
// neighboring blocks compute, too).
#ifndef MENDEL_KERNELS_CUDA_TILED_CHAIN_SHAPE_H_
#define MENDEL_KERNELS_CUDA_TILED_CHAIN_SHAPE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "kernels/cuda/fusion/operator_text.h"
#include "kernels/cuda/tiled/candidate.h"
#include "kernels/cuda/tiled/product_chain.h"

namespace mendel::cuda {

/// One axis along which the second product's result is divided: rows, or images, or a dimension of
/// their positions.
struct KeptAxis {
  int64_t results = 1;             ///< results of the second product along the axis
  int64_t tile = 1;                ///< of them in a block
  int64_t input = 1;               ///< positions of the kept value along the axis
  int64_t first = 0, advance = 1;  ///< what tile t keeps begins at position first + t * advance,
                                   ///< which may be padding
  int64_t count = 1, step = 1;     ///< number of positions, and their distance

  int64_t tiles() const { return (results + tile - 1) / tile; }
};

struct ChainShape {
  /// Matrices: what is kept is the second product's left side; else its right one.
  bool of_rows = false;
  ProductExtents first, second;  ///< of both products
  std::vector<KeptAxis> axes;    ///< rows; or images and positions
  int64_t depth = 0;   ///< of the second product in what is kept: columns, or channels of a group
  int64_t groups = 1;  ///< matrices of the first product's batch that those channels are of
  int64_t group_depth = 0;  ///< channels of each that are among them
  /// An element of depth k and kept position i is element k * pitch + i in shared memory.
  int64_t pitch = 0;
  /// Depths with their padding, zeros, which the second product's loop reads.
  int64_t padded_depth = 0;
  /// Kept positions are the positions of the tile, so that the second product reads its factors
  /// where they are kept.
  bool in_place = false;
  int parts = 1;           ///< blocks among which the second product's other side is divided
  int64_t across = 0;      ///< rows or columns of a tile in the divided direction
  int64_t other = 0;       ///< in the other direction
  int64_t limits[2] = {};  ///< of both products in the other direction; of the first one of a group

  /// Results and kept positions of a block.
  int64_t Results() const;
  int64_t Kept() const;
  int64_t Tiles() const;
  int64_t Blocks() const { return second.batch * Tiles() * parts; }
  /// Tiles in the other direction that a block of the second product computes, one after the other.
  int64_t OtherTiles() const;
  int64_t KeptElements() const { return WholePacks(padded_depth * pitch); }
  /// True if `lanes` columns of the second product's tile, from a multiple of that on, lie side by
  /// side in its result.
  bool LieSideBySide(int64_t lanes) const;
  /// Products that a block computes, padding included.
  double BlockProducts(const Tile& tile) const;
};

/// InvalidArgument where `candidate` has no room for the chain: shared memory, a part of the other
/// side for each block, threads for the rows of a row operator; Unimplemented where groups of both
/// convolutions do not divide one another.
absl::StatusOr<ChainShape> ShapeOfChain(const Graph& graph, const ProductChain& chain,
                                        const TiledCandidate& candidate);

/// Elements of shared memory before what is kept: both products' tiles, or a row operator's
/// reductions.
int64_t SharedBeforeKept(const ProductChain& chain, const TiledCandidate& candidate);

/// The best candidates, at most two, the best first. None if blocks would multiply more than
/// four times as much as the two products do. The ranking's model is that of
/// RankedCandidates.
std::vector<TiledCandidate> RankedChains(const Graph& graph, const ProductChain& chain,
                                         int64_t real_bytes, int multiprocessors);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TILED_CHAIN_SHAPE_H_
