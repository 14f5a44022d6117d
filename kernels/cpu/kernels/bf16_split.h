// Numbers of f32 as sums of two of bf16: x = high + low. A product x w becomes high high + high low
// + low high. A contraction becomes one of three times the depth: [high, high, low] of the source
// against [high, low, high] of the weights.
#ifndef MENDEL_KERNELS_CPU_KERNELS_BF16_SPLIT_H_
#define MENDEL_KERNELS_CPU_KERNELS_BF16_SPLIT_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "graph/evaluate.h"
#include "graph/tensor.h"
#include "kernels/cpu/kernels/kernel.h"
#include "kernels/cpu/lowering/layout.h"

namespace mendel::cpu {

/// The largest finite number of bf16. Larger numbers of f32 get it as their high part, and at most
/// `kLargestLow` as their low part: their sum is no infinity.
inline constexpr float kLargestBf16 = 0x1.FEp127F;
inline constexpr float kLargestLow = 0x1.FEp119F;

/// A source whose rows [x] become dense rows [high, high, low]. An infinity or NaN is written once,
/// as the first part, with zeros for the other two: infinity - infinity never arises, and the
/// contraction gives what x itself would.
struct SplitPlan {
  int64_t images = 1;     ///< each lies as a whole
  int64_t positions = 1;  ///< rows of an image
  int64_t channels = 1;   ///< elements of a row
  int64_t width =
      1;  ///< of them side by side; `width` elements of all rows of the image, then the next ones
};

/// SplitRowsOf says which elements form a row. A row runs along `axis` of a convolution's source,
/// which is the last axis or 1. With `block` above 1 (axis 1), a whole image lies in blocks of
/// channels: the split source lies in blocks too, each of its parts in whole blocks.
struct SplitRowsOf {
  size_t axis = 1;
  int64_t block = 1;

  auto operator<=>(const SplitRowsOf&) const = default;
  /// The layout of a source whose rows lie side by side.
  Layout Source(const Shape& shape) const;
  /// Channels of a part, those that fill its last block included.
  int64_t Channels(const Shape& shape) const { return (shape[axis] + block - 1) / block * block; }
};
/// Returns nullopt when a single pass cannot read the layout. It reads Source, or dense blocks of
/// channels for rows that are none.
std::optional<SplitPlan> PlanSplit(const Layout& layout, const Shape& shape,
                                   const SplitRowsOf& rows);
/// Requires a machine with AVX512_BF16. The kernel runs in the ThreadScope of the run.
std::unique_ptr<Kernel> MakeSplitKernel(const SplitPlan& plan, const Place& from, const Place& to);

/// Rows `begin` to `end`: bf16_split_avx512.cc.
void SplitRows(const SplitPlan& plan, const float* from, int64_t begin, int64_t end, uint16_t* to);

/// Constant weights as [high, low, high] along `axis`, in bf16, each part followed by zeros up to
/// `extent`. The second high part is zero where the number is not finite.
Tensor SplitWeights(const HostValue& weights, size_t axis, int64_t extent);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_KERNELS_BF16_SPLIT_H_
