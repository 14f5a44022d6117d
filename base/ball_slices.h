// Matrices of balls cut into slices: small integers whose inner products doubles represent exactly
// (base/ball_gemm.h).
#ifndef MENDEL_BASE_BALL_SLICES_H_
#define MENDEL_BASE_BALL_SLICES_H_

#include <arb.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace mendel {

/// One operand of a product as lines - rows of the left one, columns of the right one - of `depth`
/// elements each: balls or, where `numbers` is set, exact numbers.
struct BallLines {
  arb_srcptr balls;
  const double* numbers;
  int64_t count;
  int64_t depth;
  int64_t stride;  ///< from line to line
  int64_t step;    ///< within a line
};

/// The exponent range that the elements of a line share.
struct LineScale {
  static constexpr int64_t kNone = INT64_MIN / 4;

  int64_t exponent = kNone;  ///< midpoints are below 2^(exponent - 1)
  int64_t lowest = -kNone;   ///< and multiples of 2^lowest
  int64_t radius = kNone;    ///< radii are below 2^radius

  bool zero() const { return lowest == -kNone; }  ///< all midpoints are
  int64_t bits() const { return zero() ? 1 : exponent - lowest; }
};

/// One scale per line. nullopt where an element is not finite, of an absurd size, or much wider
/// than its line's midpoints.
std::optional<std::vector<LineScale>> ScalesOf(const BallLines& lines);

/// Digit s of an element is at most 2^(width - 1) in magnitude and stands for multiples of
/// 2^(exponent - width (s + 1)).
struct SliceLayout {
  int64_t width;
  int64_t slices;
  int64_t block;   ///< lines that lie together: slice 0 of all of them, then slice 1, ...
  int64_t stride;  ///< from line to line, and within a line, of one slice
  int64_t step;
};

/// An operand in slices. T: double, or float for widths up to 25.
template <class T>
struct BallSlices {
  int64_t count = 0;
  int64_t depth = 0;
  SliceLayout layout{};
  std::vector<T> digits;
  std::vector<T> magnitudes;  ///< at least |midpoint| + radius, by 2^exponent of the line; without
                              ///< slices, as layout says
  std::vector<T> radii;       ///< at least radius + what is cut off, by 2^radius of the line
  std::vector<LineScale> scales;
  bool exact = true;  ///< all radii are zero

  int64_t LinesOf(int64_t block) const {
    return std::min(layout.block, count - block * layout.block);
  }
  /// Block `block` begins here, with all its slices.
  int64_t Begin(int64_t block) const { return block * layout.block * layout.slices * depth; }
};

/// `scales` are those of `lines`. Large operands use several threads.
template <class T>
BallSlices<T> CutIntoSlices(const BallLines& lines, std::vector<LineScale> scales,
                            const SliceLayout& layout);

}  // namespace mendel

#endif  // MENDEL_BASE_BALL_SLICES_H_
