// Products of a matrix of balls by columns that are gathered from another one: convolutions.
// (BallGemm is in base/ball.h.)
#ifndef MENDEL_BASE_BALL_GEMM_H_
#define MENDEL_BASE_BALL_GEMM_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "base/ball.h"

namespace mendel {

/// Both operands are cut into slices once, for the precision of the BallScope in which that is
/// done; products are as precise as the largest element of the row on the left and of the whole
/// image on the right request. Thread-safe once made.
class BallProducts {
 public:
  /// Writes the columns [depth x n], row-major, out of `plane`, which has an element for each of
  /// the image's. Elements that come from nowhere (padding) are zero.
  using Gather = std::function<void(const float* plane, double* columns)>;

  /// left[rows x depth] in blocks of `block` rows, and an image of `size` balls. Null where slices
  /// do not pay (few rows) or an element has none (it is not finite): BallGemm serves then. Neither
  /// operand is kept.
  static std::unique_ptr<const BallProducts> Make(const Ball* left, int64_t rows, int64_t depth,
                                                  int64_t block, const Ball* image, int64_t size);
  /// Numbers on the left.
  static std::unique_ptr<const BallProducts> Make(const double* left, int64_t rows, int64_t depth,
                                                  int64_t block, const Ball* image, int64_t size);
  virtual ~BallProducts() = default;

  /// c[rows of the block x n] = the block's rows times the columns, every sum with one rounding, in
  /// the thread's BallScope.
  virtual void Multiply(int64_t block, int64_t n, const Gather& gather, Ball* c,
                        int64_t ldc) const = 0;
};

}  // namespace mendel

#endif  // MENDEL_BASE_BALL_GEMM_H_
