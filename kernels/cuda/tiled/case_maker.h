// A case maker builds random cases of tiled kernels, for tests.
#ifndef MENDEL_KERNELS_CUDA_TILED_CASE_MAKER_H_
#define MENDEL_KERNELS_CUDA_TILED_CASE_MAKER_H_

#include <cstdint>

#include "base/random.h"
#include "graph/emitter.h"
#include "kernels/cuda/testing/device_case.h"

namespace mendel::cuda {

/// Decides which operators may occur, and so what a case's values are.
enum class ChainValues {
  kFloats,  ///< all, in any dtype
  kField    ///< those that IsVerifiedInField (tests/field_elements.h) knows, in f32
};

/// Emits a graph and draws its inputs; a subclass defines the graph. A seed has one case.
class CaseMaker {
 protected:
  CaseMaker(uint64_t seed, ChainValues values);

  /// Up to two leading axes of all matrices.
  void DrawBatch();
  int64_t Extent() { return rng_.Below(3) == 0 ? 4 * rng_.Between(1, 9) : rng_.Between(1, 37); }
  /// [batch, rows, columns].
  Shape With(int64_t rows, int64_t columns) const;

  /// Sixteenths within [-1, 1]: an input, or `stored` in the graph.
  ValueId Source(const Shape& shape, bool stored = false);
  /// The right side of a product, [depth, columns].
  ValueId Right(int64_t depth, int64_t columns, bool batched, bool transposed);
  ValueId Function(ValueId value);
  /// An elementwise operator behind `value`, alone or with another operand.
  ValueId Follower(ValueId value);

  /// The case with `value` as its output. Call once, last.
  DeviceCase Finished(ValueId value);

  Rng rng_;
  const bool floats_;
  DType dtype_ = DType::kF32;
  Shape batch_;
  Emitter e_;

 private:
  const uint64_t seed_;
  DeviceCase case_ = {};
  int sources_ = 0;
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TILED_CASE_MAKER_H_
