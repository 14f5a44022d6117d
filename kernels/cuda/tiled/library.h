// Tiled kernels as algorithms of products: "tile:64x64x16:4x4", by tensor cores
// "tile-tf32:64x64x16:4x4" (candidate.h).
#ifndef MENDEL_KERNELS_CUDA_TILED_LIBRARY_H_
#define MENDEL_KERNELS_CUDA_TILED_LIBRARY_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/cuda/backend/library_groups.h"
#include "kernels/cuda/tiled/tensor_cores.h"
#include "runtime/numerics.h"

namespace mendel::cuda {

/// Needs no device. Thread-safe.
class TiledLibrary final : public CallLibrary {
 public:
  static constexpr int kUsualMultiprocessors = 100;
  /// Another number means other texts: measurements of the old texts no longer count.
  static constexpr int kVersion = 4;

  /// `multiprocessors` of the GPU for which candidates are ranked, and its `architecture` (80:
  /// sm_80), which has tensor cores of some classes. What a name stands for does not depend on
  /// them. `experiments`: chains of products and asynchronous copies are offered
  /// (backend/experiments.h).
  TiledLibrary(int multiprocessors, int architecture, bool experiments)
      : multiprocessors_(multiprocessors), architecture_(architecture), experiments_(experiments) {}

  std::string_view name() const override { return "tile"; }
  std::string Identity() const override;
  bool Multiplies(Numerics numerics) const override { return FindTensorCores(numerics) != nullptr; }
  /// At most six (RankedCandidates) without tensor cores. Then at most six of each class that
  /// `numerics` allows and the architecture has. In each group fusions come first. Experiments: at
  /// most two chains of products (RankedChains) come before all, and after each group its first two
  /// that can copy an operand asynchronously, with such copies, if the architecture has them.
  std::vector<std::string> Algorithms(const GroupingScope& scope, int32_t node,
                                      Numerics numerics) const override;
  /// Any candidate within the limits, offered or not. InvalidArgument names the node, the algorithm
  /// and what is wrong: a name that is none, a limit, an operator that is no product, a fusion that
  /// there is nothing for, more parts than its sums have, tensor cores of a class that `numerics`
  /// does not allow or that the architecture lacks, asynchronous copies that it lacks or that no
  /// operand allows.
  absl::StatusOr<LibraryGroup> Group(const GroupingScope& scope, int32_t node,
                                     const std::string& algorithm,
                                     Numerics numerics) const override;

 private:
  const int multiprocessors_, architecture_;
  const bool experiments_;
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TILED_LIBRARY_H_
