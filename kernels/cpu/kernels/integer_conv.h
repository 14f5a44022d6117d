// Convolutions and matrix products of codes (u8 or i8) and small weights, with exact sums in 32
// bits, without an instruction for them (VNNI).
//
// A block of outputs (positions, columns) sums one block of the depth after another. A position
// reads its codes in place. Where there is padding, the source is copied first, with the zero
// point's code around each image. So it is where channels fill no quad or panel, and where codes
// are i8: 128 is added to those. Sums begin with minus the zero point's part.
//
// The weights are packed so that no sum in 16 bits saturates (integer_kernels.h).
#ifndef MENDEL_KERNELS_CPU_KERNELS_INTEGER_CONV_H_
#define MENDEL_KERNELS_CPU_KERNELS_INTEGER_CONV_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/cpu/kernels/integer_panels.h"
#include "kernels/cpu/kernels/kernel.h"

namespace mendel::cpu {

/// Channels are last: source [batch, in, groups * inputs], result [batch, out, groups * outputs].
/// Fewer dimensions have extents of one before them. A product of matrices has its rows in out[2]
/// and in[2], and one tap.
struct IntegerConv {
  Place source, weights, to;
  std::optional<Place> zero;  ///< i32, one number, instead of source_zero
  DType from = DType::kU8;    ///< u8 or i8
  DType result = DType::kF32;
  int32_t source_zero = 0;                                 ///< of the type `from`
  int64_t batch = 1, groups = 1, inputs = 1, outputs = 1;  ///< channels of one group
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, taps[3] = {1, 1, 1};
  int64_t pad[3] = {0, 0, 0}, stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1};

  /// An i32 result is the sums. Any other is sum * scale + shift, one number each an output
  /// channel, within [low, high]. Codes are rounded, halves to even, before result_zero is added,
  /// and saturate.
  std::vector<float> scale, shift;
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();
  int32_t result_zero = 0;

  bool IsDepthwise() const { return groups > 1 && inputs == 1 && outputs == 1; }
  int64_t Taps() const { return taps[0] * taps[1] * taps[2]; }
  /// Elements of the depth whose codes lie side by side: those of a tap, or of neighboring taps.
  int64_t Run() const { return (groups == 1 && dilation[2] == 1 ? taps[2] : 1) * inputs; }
  int64_t Positions() const { return out[0] * out[1] * out[2]; }  ///< of an image
};

/// False without AVX2, and where groups are so narrow that most of a vector would be idle.
bool SuitsIntegerConv(const IntegerConv& conv);

/// The weights of a convolution, as its kernel reads them.
class PackedIntegers {
 public:
  /// Keeps no pointer.
  PackedIntegers(const IntegerConv& conv, const StoredIntegers& stored);
  int64_t Bytes() const { return bytes_; }
  void Pack(const StoredIntegers& stored, std::byte* to) const;
  const IntegerPanels& panels() const { return panels_; }

 private:
  int64_t padded_ = 0;  ///< channels of a depthwise convolution
  int64_t bytes_ = 0;
  IntegerPanels panels_;  ///< of any other
};

int64_t IntegerConvScratch(const IntegerConv& conv, int threads);
std::unique_ptr<Kernel> MakeIntegerConvKernel(IntegerConv conv,
                                              std::shared_ptr<const PackedIntegers> packed,
                                              int threads);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_KERNELS_INTEGER_CONV_H_
