// Direct convolutions of one group: any padding, stride and dilation, one to three spatial
// dimensions.
//
// A tile is a few positions along the last dimension, times a panel of output channels. Its outputs
// stay in registers while all inputs and taps are summed. The tile's inputs are copied first into a
// window of whole vectors, with zeros for padding. In the window neighboring outputs read
// neighboring vectors whatever the stride, so that one kernel serves all layouts. With stride 1, a
// blocked source and few panels the copy would cost too much: only tiles that reach into the
// padding are copied.
//
// A sum runs over blocks of inputs, then taps, then the block's inputs: an exact reordering, class
// `strict`.
#ifndef MENDEL_KERNELS_CPU_KERNELS_DIRECT_CONV_H_
#define MENDEL_KERNELS_CPU_KERNELS_DIRECT_CONV_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/cpu/kernels/direct_kernels.h"
#include "kernels/cpu/kernels/window_plan.h"
#include "kernels/cpu/memory/weight_view.h"

namespace mendel::cpu {

inline constexpr std::string_view kNativeDirect = "direct-own";

/// One convolution.
struct DirectConvPlan : WindowPlan {
  int64_t channels_in = 1;
  int64_t channels_out = 1;
  std::vector<int64_t> starts;   ///< first output of each tile of a row, and their end
  int64_t reach = 0;             ///< positions of a window's row that lie one stride apart
  std::vector<int64_t> taps_at;  ///< floats from a window's block of channels to what each tap of
                                 ///< the first output reads
  std::vector<int64_t>
      source_taps_at;         ///< likewise, for tiles that read the source in place; empty: none do
  bool weights_stay = false;  ///< all of them fit the second-level cache
  int64_t group = 1;          ///< tiles whose windows are held while the weights pass
  bool share_panels = false;  ///< each thread has its own weights rather than its own tiles

  int64_t Blocks() const { return (channels_in + isa->lanes - 1) / isa->lanes; }
  int64_t OutputVectors() const { return (channels_out + isa->lanes - 1) / isa->lanes; }
  int64_t Panels() const { return (OutputVectors() + kDirectVectors - 1) / kDirectVectors; }
  int64_t Tiles() const {
    return static_cast<int64_t>(starts.size()) - 1;
  }  ///< of a row of outputs, nearly equal
  int64_t AllTiles() const { return batch * out[0] * out[1] * Tiles(); }
  int64_t WeightFloats() const { return OutputVectors() * Taps() * channels_in * isa->lanes; }
  int64_t RowFloats() const { return stride[2] * reach * isa->lanes; }  ///< of a window
  int64_t BlockFloats() const { return taps[0] * taps[1] * RowFloats(); }
  int64_t WindowFloats() const { return Blocks() * BlockFloats(); }
  int64_t ScratchBytes() const {
    return shares * group * WindowFloats() * static_cast<int64_t>(sizeof(float));
  }
};

/// Fills what follows from the shape, channels and strides. At most kMostTapRows rows of taps.
void CutDirectConv(DirectConvPlan& plan, int threads);

/// `weights`: out x in x taps, row-major; `scale`: one factor an output channel, or empty. `to`
/// contains zeros. In the current ThreadScope.
void PackDirectConvWeights(const DirectConvPlan& plan, const WeightView& weights,
                           const std::vector<double>& scale, float* to);

/// Runs in the current ThreadScope. `scratch` has ScratchBytes() bytes and lies on a 64-byte
/// boundary.
void RunDirectConv(const DirectConvPlan& plan, const float* src, const float* weights,
                   const WinogradEpilogue& epilogue, float* dst, float* scratch);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_KERNELS_DIRECT_CONV_H_
