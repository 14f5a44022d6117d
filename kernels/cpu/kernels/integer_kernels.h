// The kernels of integer_conv.h for one instruction set. They are internal to it.
//
// An instruction multiplies four codes (u8, a quad) of the depth with four weights (i8) of each
// column, and adds neighboring products in 16 bits, with saturation. No sum saturates: positive
// weights of a sum add up to at most kMostWeight, and so do the negative ones. Another instruction
// adds the two sums of a column in 32 bits.
#ifndef MENDEL_KERNELS_CPU_KERNELS_INTEGER_KERNELS_H_
#define MENDEL_KERNELS_CPU_KERNELS_INTEGER_KERNELS_H_

#include <cstddef>
#include <cstdint>

namespace mendel::cpu {

/// 255 * 128 is less than 2^15.
inline constexpr int kMostWeight = 128;
inline constexpr int64_t kQuad = 4;
/// Columns of the widest panel.
inline constexpr int64_t kMostPanel = 32;

/// The weights of one panel of columns, for one block of the depth: entries of a quad each. Bundles
/// of four entries come first, then those of three, of two, and single ones. A bundle is summed in
/// 16 bits. A quad with too large weights has several entries that add up to it.
struct IntegerChunk {
  int64_t columns = 0;                                ///< that exist
  int64_t fours = 0, threes = 0, twos = 0, ones = 0;  ///< bundles
  const int32_t* quads = nullptr;   ///< bytes from a row's codes to the quad, one an entry
  const int8_t* weights = nullptr;  ///< of each entry the panel's columns, kQuad each
};

/// From sums to results. Scales and shifts have room for a panel after the last channel. The bounds
/// are those of the result's type, or within.
struct IntegerFinish {
  const float* scale;
  const float* shift;
  float low, high;
  int32_t zero;
};

struct IntegerIsa {
  int64_t panel;  ///< columns
  /// Adds a chunk's products to the sums of `count` rows and a panel. Row r has its codes at
  /// rows[r]. A row of sums has a panel's length. With `first`, a panel's length, sums begin with
  /// it; with null they continue.
  void (*add)(const uint8_t* const* rows, int64_t count, const IntegerChunk& chunk,
              const int32_t* first, int32_t* sums);
  /// Results of a panel's rows, `count` of its columns, as i32, f32, u8 or i8.
  using Finish = void (*)(const int32_t* sums, int64_t rows, const IntegerFinish& finish,
                          int64_t channel, int64_t count, std::byte* to, int64_t to_stride);
  Finish to_i32, to_f32, to_u8, to_i8;
  /// Sums of one panel of channels at `count` positions, which begin with `first`. Tap t of a
  /// position has the panel's codes at rows[r] + offsets[t], and its weights at
  /// weights + t * padded, in i32.
  void (*depthwise)(const uint8_t* const* rows, int64_t count, const int32_t* offsets, int64_t taps,
                    const int32_t* weights, int64_t padded, const int32_t* first, int32_t* sums);
};
const IntegerIsa& IntegerAvx2();
const IntegerIsa& IntegerAvx512();

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_KERNELS_INTEGER_KERNELS_H_
