// Products of every position's channels with one matrix: 1x1 convolutions of any stride, transposed
// convolutions whose kernel is as large as their stride (one product for each phase), and matrix
// products with constant right sides. The sums stay in registers until bias, residual and
// activation have been applied. A factor, a summand and a ReLU for each input channel may come
// first (a batch normalization that cannot be folded), or a factor for each image and input channel
// (the gate of a squeeze-and-excitation).
#ifndef MENDEL_KERNELS_CPU_KERNELS_POINTWISE_H_
#define MENDEL_KERNELS_CPU_KERNELS_POINTWISE_H_

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cpu/kernels/direct_kernels.h"
#include "kernels/cpu/lowering/fuse.h"
#include "kernels/cpu/lowering/lowering.h"
#include "kernels/cpu/memory/weight_view.h"

namespace mendel::cpu {

inline constexpr std::string_view kNativePointwise = "pointwise-own";

/// One product, cut into blocks. Missing dimensions have extent one.
struct PointwisePlan {
  /// Output channels computed together.
  struct Panel {
    int64_t channel = 0;  ///< first
    int64_t channels = 0;
    int64_t vectors = 0;
    int64_t weights = 0;  ///< floats before its weights
    int64_t dst = 0;      ///< floats from a position's output to the panel's first channel
  };

  const DirectIsa* isa = nullptr;
  int64_t batch = 1;
  int64_t extent[3] = {1, 1, 1};  ///< positions
  int64_t channels_in = 1;
  int64_t channels_out = 1;
  WinogradStrides src{};              ///< d: floats between positions
  WinogradStrides dst{};              ///< likewise
  std::vector<int64_t> phases = {0};  ///< floats from a position's output to that of each phase
  bool padded = false;                ///< dst has room for whole vectors
  bool prepared = false;              ///< a PointwiseInput comes first
  float floor = -std::numeric_limits<float>::infinity();  ///< of it
  bool gated = false;  ///< instead: PointwiseInput's factors come first, one an image and channel,
                       ///< without summand
  bool gathered = false;  ///< inputs are copied into the scratch memory first, where each
                          ///< position's lie together
  bool scaled =
      false;  ///< the gate multiplies each image's weights instead of its inputs: they are fewer
  std::vector<Panel> panels;
  int64_t positions = 1;
  int64_t block = 1;   ///< positions at once
  int64_t shares = 1;  ///< threads
  bool share_panels = false;
  int64_t row = 0;  ///< floats between prepared positions

  bool Copies() const {
    return prepared || gathered || (gated && !scaled);
  }  ///< inputs pass through the scratch memory
  int64_t WeightFloats() const;
  int64_t ShareFloats() const;  ///< scratch memory of one thread
  int64_t ScratchBytes() const;
};

/// Fills what follows from the fields up to `gated`.
void CutPointwise(PointwisePlan& plan, int threads);

/// `scale`: one factor an output channel, or empty. `to` contains zeros. In the current
/// ThreadScope.
void PackPointwiseWeights(const PointwisePlan& plan, const WeightMatrix& weights,
                          const std::vector<double>& scale, float* to);

inline constexpr int64_t kLargestPointwiseBlock = 256;
using PositionOffsets = std::array<int64_t, kLargestPointwiseBlock>;
/// Floats to positions [begin, end), counted from 0 over images and dimensions; `strides` is one of
/// the plan's.
void LocatePositions(const PointwisePlan& plan, const WinogradStrides& strides, int64_t begin,
                     int64_t end, PositionOffsets& at);

struct PointwiseOperands {
  const float* src;
  const float* weights;
  const PointwiseInput* input;  ///< read when the plan is `prepared` or `gated`
  float* dst;
};
/// Runs in the current ThreadScope. `scratch` has ScratchBytes() bytes and lies on a 64-byte
/// boundary.
void RunPointwise(const PointwisePlan& plan, const PointwiseOperands& operands,
                  const WinogradEpilogue& epilogue, float* scratch);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_KERNELS_POINTWISE_H_
