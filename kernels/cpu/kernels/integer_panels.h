// Packed weights of integer_conv.h: panels of columns, cut into chunks along the depth.
#ifndef MENDEL_KERNELS_CPU_KERNELS_INTEGER_PANELS_H_
#define MENDEL_KERNELS_CPU_KERNELS_INTEGER_PANELS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/cpu/kernels/integer_kernels.h"

namespace mendel::cpu {

/// Quads of a block of the depth.
inline constexpr int64_t kBlockQuads = 256;

/// Weights of `groups` matrices [depth, outputs]. The depth runs over taps, then over the inputs of
/// each. An element lies at channel * channel_step + input * input_step + tap * tap_step. A run of
/// `run` elements, whose codes lie side by side, begins with a new quad. The magnitudes are at most
/// 255.
struct StoredIntegers {
  const int16_t* weights = nullptr;
  int64_t groups = 1, outputs = 1, inputs = 1, taps = 1;
  int64_t channel_step = 0, input_step = 0, tap_step = 0;
  int64_t run = 1;

  int64_t Depth() const { return taps * inputs; }
  int64_t RunQuads() const { return (run + kQuad - 1) / kQuad; }
  int64_t Quads() const { return Depth() / run * RunQuads(); }
};

/// Packed weights in a buffer. It begins with the sums of each channel's weights, with room for
/// a panel after the last channel.
class IntegerPanels {
 public:
  IntegerPanels() = default;
  /// Reads all weights once, to count the entries of chunks. `quads`: bytes from a row's codes to
  /// each quad of the depth.
  IntegerPanels(const StoredIntegers& stored, int64_t panel, std::vector<int32_t> quads);

  int64_t Bytes() const { return bytes_; }
  int64_t Blocks() const { return blocks_; }
  void Pack(const StoredIntegers& stored, std::byte* to) const;
  /// The panel's columns begin at `column` of the group.
  IntegerChunk ChunkAt(const std::byte* packed, int64_t group, int64_t column, int64_t block) const;

 private:
  struct Place {
    int64_t offset = 0;  ///< bytes to the weights; the quads follow, then the numbers of bundles
    int32_t entries = 0;
  };
  size_t Number(int64_t group, int64_t column, int64_t block) const {
    return static_cast<size_t>((group * panels_ + column / panel_) * blocks_ + block);
  }

  int64_t outputs_ = 0, panel_ = 1, panels_ = 0, blocks_ = 0, bytes_ = 0;
  std::vector<int32_t> quads_;
  std::vector<Place> places_;
};

/// The bytes that the sums of so many channels' weights take.
int64_t WeightSumBytes(int64_t channels, int64_t panel);
void StoreWeightSums(const StoredIntegers& stored, int32_t* to);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_KERNELS_INTEGER_PANELS_H_
