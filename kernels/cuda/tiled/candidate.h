// The search space of tiled kernels: what a block and a thread compute, and which operators a
// kernel computes besides a product.
//
// Mirage ("Mirage: A Multi-Level Superoptimizer for Tensor Programs", OSDI'25) searches for
// programs of the kernel, of the block and of the thread together. Here the form of the kernel is
// given - a loop over the depth of a product with a prologue before and an epilogue after it - and
// what is searched is its tile and what is fused into it. Every candidate is an algorithm of its
// product's node, which the search measures.
#ifndef MENDEL_KERNELS_CUDA_TILED_CANDIDATE_H_
#define MENDEL_KERNELS_CUDA_TILED_CANDIDATE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cuda/emit/kernel_text.h"
#include "kernels/cuda/fusion/operator_text.h"
#include "runtime/numerics.h"

namespace mendel::cuda {

/// A tiled fusion is what a kernel computes besides one product, its views, and the elementwise
/// operators before and after it.
enum class TiledFusion {
  kNone,
  kPair,  ///< a second product of the same left side, combined elementwise with the first (a gated
          ///< MLP)
  /// The row operator that makes the left side (a normalization, a softmax, the mean of squares of
  /// an RMS normalization): statistics first, then elements as they are read.
  kRows,
  kChain,  ///< a second product of what is made of the first (product_chain.h)
};

struct TiledCandidate {
  Tile tile = {};
  TiledFusion fusion = TiledFusion::kNone;
  /// For kChain: blocks that compute the same part of the first product, each for another part of
  /// the second. Otherwise: parts of each sum, a block each, which another launch totals.
  int parts = 1;
  /// The class in whose format tensor cores multiply (tf32, f16 or bf16; TensorCores in
  /// tensor_cores.h). None: threads multiply on their own, in the dtype's own arithmetic.
  std::optional<Numerics> tensor_cores = std::nullopt;
  /// Operands that lie in memory as their tiles lie in shared memory are copied there without
  /// registers (operand_order.h).
  bool asynchronous = false;

  bool operator==(const TiledCandidate& other) const;
  int products() const { return fusion == TiledFusion::kPair ? 2 : 1; }
};

/// "tile:64x64x16:4x4" (rows x columns x depth of a block : rows x columns of a thread), then
/// ":pair", ":rows", ":chain" or, of several parts, ":chain4"; of others than chains ":async" for
/// asynchronous copies and ":split4" for four parts. "tile-tf32:64x64x16:4x4" by tensor cores: a
/// warp is 8 x 4 threads then.
std::string CandidateName(const TiledCandidate& candidate);
/// InvalidArgument where `name` is no such name, or beyond the limits below for elements computed
/// in `real_bytes`: powers of two, extents of a block up to 256, of a thread up to 8 and of the
/// depth up to 64, 32 to 1,024 threads, 48 KiB of shared memory, as many registers, by estimate, as
/// those threads can have, kMostParts, or kMostPartsOfChain. A chain needs more shared memory, see
/// ShapeOfChain, and copies nothing asynchronously. By tensor cores: no f64 and no integers, no
/// chains, even rows and columns of a thread, whole warps of 8 x 4 threads, and a depth of whole
/// products of the tensor cores.
absl::StatusOr<TiledCandidate> ParseCandidate(std::string_view name, int64_t real_bytes);

inline constexpr int64_t kMostShared = 48 << 10;  ///< bytes of a block
inline constexpr int kMostParts = 64;
inline constexpr int kMostPartsOfChain = 16;

/// Statistics that a row operator may have of a row.
inline constexpr int kMostStatistics = 4;
/// Elements of shared memory, at most: two buffers of each operand's tile, with rows padded against
/// bank conflicts by TilePadding. Those of tensor cores in 16 bits are two to an element. The
/// reductions of kRows, one a warp, take the same place before.
int64_t SharedElements(const TiledCandidate& candidate);
int TilePadding(const TiledCandidate& candidate);
inline constexpr int kTilePadding = 4;  ///< without tensor cores
constexpr int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
/// Elements of one operand, so that the next one's are aligned to the widest reads.
constexpr int64_t WholePacks(int64_t elements) { return CeilDiv(elements, 4) * 4; }

/// All tiles that are offered, from square ones for large products to flat ones for few rows or
/// one; by tensor cores of a class, or without them.
std::span<const Tile> OfferedTiles(std::optional<Numerics> tensor_cores = std::nullopt);

/// The work of one launch.
struct BlockWork {
  int64_t blocks = 1;
  double products = 0;  ///< products of a block, padding included
  double bytes = 0;     ///< that a block reads
  int64_t steps = 0;    ///< of its loops, one after the other
  int64_t shared = 0;   ///< bytes of a block
};
/// Clock cycles of a launch, roughly: waves of blocks, each as long as the largest of its
/// arithmetic, traffic and latency. It ranks candidates and predicts nothing.
double CyclesOf(const TiledCandidate& candidate, const BlockWork& work, int64_t real_bytes,
                int multiprocessors);

/// The best candidates, by CyclesOf, for a product of these extents on a GPU with this number
/// of multiprocessors, the best first. There are at most kMostCandidates, at most two with a fusion
/// for each of `fusions`, and none where tiles would be mostly padding. Sums are divided only if
/// the undivided candidate has fewer blocks than there are multiprocessors; the totaling launch
/// counts. All candidates are by tensor cores of the class, or none is.
inline constexpr size_t kMostCandidates = 6;
std::vector<TiledCandidate> RankedCandidates(const ProductExtents& extents, int64_t real_bytes,
                                             std::span<const TiledFusion> fusions,
                                             int multiprocessors,
                                             std::optional<Numerics> tensor_cores = std::nullopt);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TILED_CANDIDATE_H_
