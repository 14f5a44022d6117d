// Normalization of images' channels: InstanceNormalization, GroupNormalization, and
// BatchNormalization whose parameters are computed at run time. f32.
#ifndef MENDEL_KERNELS_CPU_KERNELS_CHANNEL_NORM_H_
#define MENDEL_KERNELS_CPU_KERNELS_CHANNEL_NORM_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "kernels/cpu/kernels/kernel.h"

namespace mendel::cpu {

/// Channel c of image n has `plane` elements. Row-major (`lanes` 0): one channel after the other.
/// Otherwise strips contain `lanes` (4, 8 or 16) channels side by side. A strip's first element is
/// at n * channels * plane + (c / lanes) * strip_step, and the next position `position_step`
/// elements further on.
struct ChannelGeometry {
  int64_t images = 1;
  int64_t channels = 1;
  int64_t plane = 1;
  int64_t lanes = 0;
  int64_t strip_step = 0;
  int64_t position_step = 0;
};

struct ChannelNormProblem {
  ChannelGeometry geometry;
  /// Channels with common moments; with lanes one of the two numbers divides the other.
  int64_t group = 1;
  double epsilon = 0;
  Place from, to, scale, bias;
  std::optional<Place> mean,
      variance;  ///< both or none: given, a value a channel, instead of computed
};

/// (x - mean) / sqrt(variance + epsilon) * scale + bias; in place or not. Moments are those of runs
/// of 128 positions, in f32 about the run's own mean, merged in double (Chan, Golub, LeVeque 1979):
/// one pass over memory. Scratch memory: ChannelNormScratch bytes.
std::unique_ptr<Kernel> MakeChannelNormKernel(ChannelNormProblem problem);
int64_t ChannelNormScratch(const ChannelGeometry& geometry);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_KERNELS_CHANNEL_NORM_H_
