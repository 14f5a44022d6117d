// Fused Winograd convolution: blocks of tiles are gathered and transformed, multiplied with packed
// weights point by point, and transformed back with bias, residual and activation, all within the
// cache. Stride 1, one group, any padding and dilation (a dilated convolution is several plain ones
// on every n-th position), one to three spatial dimensions. Not in class `strict`. Relative to the
// largest output, the error is about 2 (F(2,3)) to 10 (F(4,3)) times that of a direct sum: each
// kernel has its bound (WinogradErrorBound), and a class offers those within twice its own
// (AllowedError of runtime/allowed_error.h); the numeric gate measures whole plans against that.
#ifndef MENDEL_KERNELS_CPU_KERNELS_WINOGRAD_H_
#define MENDEL_KERNELS_CPU_KERNELS_WINOGRAD_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/cpu/kernels/kernel.h"
#include "kernels/cpu/kernels/winograd_kernels.h"
#include "kernels/cpu/memory/weight_view.h"

namespace mendel::cpu {

inline constexpr std::string_view kNativeWinograd = "winograd-own:";

/// The kernels for this machine, within what oneDNN is allowed to use (DNNL_MAX_CPU_ISA); null when
/// it has neither AVX2 nor AVX-512.
const WinogradIsa* WinogradIsaHere();

/// One convolution, cut into tiles. Positions are those of WinogradProblem.
struct WinogradPlan {
  const WinogradIsa* isa = nullptr;
  const WinogradTransforms* transforms = nullptr;
  WinogradProblem problem{};
  int64_t batch = 1;
  int64_t channels_in = 1;
  std::vector<int64_t> starts[3];  ///< first output of each tile along a dimension
  int64_t tiles = 0;
  int64_t block = 1;   ///< tiles transformed at once; not the size of a tile
  int64_t shares = 1;  ///< threads
  bool share_channels = false;
  int64_t points = 1;
  int64_t row = 0;            ///< floats between factors of neighboring tiles
  int64_t factor_stride = 0;  ///< floats between points
  int64_t product_row = 0;    ///< floats between tiles of one panel of products

  int64_t ChannelBlocks() const { return (channels_in + isa->lanes - 1) / isa->lanes; }
  int64_t OutputVectors() const { return (problem.channels_out + isa->lanes - 1) / isa->lanes; }
  int64_t Panels() const { return (OutputVectors() + isa->panel_vectors - 1) / isa->panel_vectors; }
  int64_t WeightFloats() const { return points * channels_in * OutputVectors() * isa->lanes; }
  int64_t ScratchBytes() const;
};

/// Returns the largest error of an output, relative to the layer's largest one, for random data
/// (signed or not, as after a ReLU) and weights. It is a measured number, see WinogradTransforms.
/// Beyond 64 channels the rounding of the sums counts, which grows as their square root.
double WinogradErrorBound(const WinogradTransforms& transforms, int64_t channels_in);

/// Fills what follows from the fields up to `channels_in`. Of the problem only the strides may
/// still be missing.
void CutIntoTiles(WinogradPlan& plan, int threads);

/// `weights`: out x in x taps, row-major; `scale`: one factor an output channel, or empty.
/// Transformed in double and rounded once, in the current ThreadScope.
void PackWinogradWeights(const WinogradPlan& plan, const WeightView& weights,
                         const std::vector<double>& scale, float* to);

/// Runs one convolution in the current ThreadScope. `scratch`: ScratchBytes() bytes on a 64-byte
/// boundary.
void RunWinograd(const WinogradPlan& plan, const float* src, const float* weights,
                 const WinogradEpilogue& epilogue, float* dst, float* scratch);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_KERNELS_WINOGRAD_H_
