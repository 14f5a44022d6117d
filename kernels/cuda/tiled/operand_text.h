// An operand text moves the tile of one operand from global memory to registers, to shared memory,
// and to the threads that multiply.
#ifndef MENDEL_KERNELS_CUDA_TILED_OPERAND_TEXT_H_
#define MENDEL_KERNELS_CUDA_TILED_OPERAND_TEXT_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "graph/graph.h"
#include "graph/types.h"
#include "kernels/cuda/emit/kernel_text.h"
#include "kernels/cuda/fusion/kernel_code.h"
#include "kernels/cuda/fusion/position.h"
#include "kernels/cuda/tiled/candidate.h"
#include "kernels/cuda/tiled/shared_tile.h"
#include "kernels/cuda/tiled/tensor_cores.h"

namespace mendel::cuda {

struct OperandTile {
  std::string name;       ///< of its buffers in shared memory
  int across = 0;         ///< rows (left) or columns (right) of the tile
  std::string origin;     ///< the tile's first row or column
  int64_t limit = 0;      ///< rows or columns of the product
  bool by_depth = false;  ///< threads that follow one another read along the depth, else across
  int lanes = 1;          ///< elements a read, side by side in memory in that direction
  int padding = kTilePadding;  ///< of its buffers (SharedTile)
  /// Asynchronous copies read the operand: it is stored in the format in which it is multiplied,
  /// and `lanes` elements are 16 bytes.
  bool copied = false;
  const TensorCores* cores =
      nullptr;  ///< that multiply it, and whose words are staged; null: elements are, as they are
};

/// The element's position where row or column `at` and product `k` of the sum are; `inside` as in
/// ProductPlaces::right.
using PlaceOfElement =
    std::function<Position(const std::string& at, const std::string& k, std::string& inside)>;
using ElementAtPosition = std::function<std::string(const Position& position)>;

/// Writes into `code`, which must outlive it. The text has the names `thread`, `k0` (a step's first
/// product) and `buffer`, which is multiplied while the other one is filled.
class OperandText {
 public:
  OperandText(KernelCode& code, const Tile& tile, std::string_view real, OperandTile operand);

  /// The operand's tile in shared memory. Tiles that are copied along the depth are swizzled, and
  /// so are pairs of products that are read along it.
  const SharedTile& shared() const { return shared_; }
  bool copied() const { return operand_.copied; }
  /// The text's type of a word in the shared tile.
  std::string_view word() const { return operand_.cores == nullptr ? real_ : operand_.cores->word; }
  /// Units that a thread reads in a step: each of `lanes` elements, or as many of two products that
  /// make words together.
  int Reads() const;
  /// Opens a loop over them, by `i`: `across` and `depth` are the place of the unit's first element
  /// in the tile.
  void OpenReads() const;

  void DeclareRegisters() const;
  /// Reads the tile of the step that begins with product `k0` of `depth` into registers; zeros lie
  /// beyond the product. `shape`: of the operand. `element` is called where `i`, `across` and
  /// `depth` are known.
  void Fetch(const std::string& k0, int64_t depth, const std::string& zero, const Shape& shape,
             const PlaceOfElement& place, const ElementAtPosition& element) const;
  /// Copies from `value` to the buffer that is not multiplied, instead of Fetch and Stage.
  void Copy(const std::string& k0, int64_t depth, ValueId value, const PlaceOfElement& place) const;
  /// Writes the registers to the buffer that is not multiplied.
  void Stage() const;
  /// Declares the array `name`: the factors of product `k` of the step for this thread's `count`
  /// rows or columns, from `own` of the tile on.
  void Factors(const std::string& name, const std::string& own, int count) const;

 private:
  void FetchLanes(const std::string& read, const Shape& shape, const PlaceOfElement& place,
                  const ElementAtPosition& element) const;
  void StageElements() const;
  void StagePairs() const;
  void Unrolled(const std::string& header) const;
  int PairedReads() const;
  int UnitElements() const { return PairedReads() * operand_.lanes; }
  int Units() const;
  std::string Next(const std::string& read, const std::string& lane) const;
  std::string InTile() const;

  KernelCode& code_;
  const Tile tile_;
  const std::string real_;
  const OperandTile operand_;
  const int word_products_;
  const SharedTile shared_;
};

/// `position` as one that a vector access starts from, with the number `f` of its element.
Position AsRoot(Position position);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TILED_OPERAND_TEXT_H_
