// Tiled kernels as algorithms of products: "tile:64x64x16:4x4" (candidate.h).
#ifndef MENDEL_KERNELS_CUDA_TILED_LIBRARY_H_
#define MENDEL_KERNELS_CUDA_TILED_LIBRARY_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/cuda/backend/library_groups.h"

namespace mendel::cuda {

/// Needs no device. Thread-safe.
class TiledLibrary final : public CallLibrary {
 public:
  static constexpr int kUsualMultiprocessors = 100;
  /// Of another number, other texts: measurements of the old ones do not count any more.
  static constexpr int kVersion = 2;

  /// `multiprocessors` of the GPU for which candidates are ranked. What a name stands for does not depend on it.
  explicit TiledLibrary(int multiprocessors) : multiprocessors_(multiprocessors) {}

  std::string_view name() const override { return "tile"; }
  std::string Identity() const override;
  bool Multiplies(Numerics) const override { return false; }
  /// At most two chains of products (RankedChains) and six others (RankedCandidates); those with a fusion first.
  std::vector<std::string> Algorithms(const GroupingScope& scope, int32_t node, Numerics numerics) const override;
  /// Any candidate within the limits, offered or not. InvalidArgument names the node, the algorithm and what is wrong: a name that
  /// is none, a limit, an operator that is no product, a fusion that there is nothing for, more parts than its sums have.
  absl::StatusOr<LibraryGroup> Group(const GroupingScope& scope, int32_t node, const std::string& algorithm,
                                     Numerics numerics) const override;

 private:
  const int multiprocessors_;
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TILED_LIBRARY_H_
