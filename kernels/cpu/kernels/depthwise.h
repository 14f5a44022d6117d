// Depthwise convolutions: every channel by itself, one or two spatial dimensions, any padding,
// stride and dilation. Bias, residual and activation are applied in registers.
//
// The source is read in place. With `inputs` > 0, a pointwise product with an epilogue of its own
// computes it, a few vectors of channels wide. Its rows stay in the second-level cache unless they
// are very long. The product's outputs, often the largest tensors of a network, are then never in
// memory (depth first).
//
// Means of each image and channel (the first step of a squeeze-and-excitation) are summed while
// outputs are stored. Sums are exact reorderings: class `strict`.
#ifndef MENDEL_KERNELS_CPU_KERNELS_DEPTHWISE_H_
#define MENDEL_KERNELS_CPU_KERNELS_DEPTHWISE_H_

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "kernels/cpu/kernels/direct_kernels.h"
#include "kernels/cpu/memory/weight_view.h"

namespace mendel::cpu {

inline constexpr std::string_view kNativeDepthwise = "depthwise-own";
/// This algorithm includes the pointwise convolution before it.
inline constexpr std::string_view kNativeExpandedDepthwise = "depthwise-own:expand";

/// One convolution. A missing first dimension has extent one.
struct DepthwisePlan {
  /// A panel is the vectors of channels that are computed together.
  struct Panel {
    int64_t vector = 0;  ///< first
    int64_t vectors = 0;
    int64_t weights = 0;  ///< floats before its part of the product's weights
  };
  /// Output rows of one image and panel.
  struct Task {
    int64_t image = 0;
    int64_t first = 0, last = 0;
    size_t panel = 0;
    int64_t band = 0;  ///< number of these rows among those of the image and panel
  };

  const DirectIsa* isa = nullptr;
  int64_t batch = 1;
  int64_t inputs = 0;  ///< channels of the source when a product comes first, else 0
  int64_t channels = 1;
  int64_t in[2] = {1, 1};
  int64_t out[2] = {1, 1};
  int64_t taps[2] = {1, 1};
  int64_t pad[2] = {0, 0};  ///< before; not negative
  int64_t stride[2] = {1, 1};
  int64_t dilation[2] = {1, 1};
  WinogradStrides src{};  ///< d[1] and d[2] are used
  WinogradStrides dst{};
  /// The source has whole vectors (only its own channels are read otherwise).
  bool src_padded = false;
  bool padded = false;    ///< the destination has room for whole vectors
  bool averaged = false;  ///< means are wanted

  int kernel = 0;     ///< which of the instruction set's
  int64_t held = 0;   ///< rows of the product at once
  int64_t strip = 1;  ///< output rows of all of a panel's vectors before the next ones
  std::vector<Panel> panels;
  std::vector<std::vector<Task>> shares;  ///< one a thread
  int64_t bands = 1;                      ///< bands of each image and panel

  int64_t Vectors() const { return (channels + isa->lanes - 1) / isa->lanes; }
  int64_t WeightFloats() const { return Vectors() * taps[0] * taps[1] * isa->lanes; }
  int64_t ProductWeightFloats() const { return Vectors() * inputs * isa->lanes; }
  int64_t HeldFloats() const;  ///< of one thread
  int64_t HeldBytes() const {
    return static_cast<int64_t>(shares.size()) * HeldFloats() * static_cast<int64_t>(sizeof(float));
  }
  int64_t Sums() const { return averaged ? bands * batch * Vectors() * isa->lanes : 0; }
  int64_t ScratchBytes() const {
    return HeldBytes() + Sums() * static_cast<int64_t>(sizeof(double));
  }
};

/// Fills what follows from the fields up to `averaged`.
void CutDepthwise(DepthwisePlan& plan, int threads);

/// `weights`: channels x taps, row-major; `scale`: one factor a channel, or empty. `to` holds
/// zeros.
void PackDepthwiseWeights(const DepthwisePlan& plan, const WeightView& weights,
                          const std::vector<double>& scale, float* to);
/// `weights`: channels x inputs, row-major; `scale` and `to` likewise. In the current ThreadScope.
void PackProductWeights(const DepthwisePlan& plan, const WeightView& weights,
                        const std::vector<double>& scale, float* to);

struct DepthwiseOperands {
  const float* src = nullptr;
  const float* product_weights = nullptr;  ///< null: no product
  const float* weights = nullptr;
  float* dst = nullptr;
  float* means = nullptr;  ///< batch x channels, dense; written when the plan is `averaged`
};

/// `product`: of the product, without residual; its bias is padded to whole vectors like the
/// other's. In the current ThreadScope. `scratch`: ScratchBytes() bytes on a 64-byte boundary.
void RunDepthwise(const DepthwisePlan& plan, const DepthwiseOperands& operands,
                  const WinogradEpilogue& product, const WinogradEpilogue& epilogue,
                  float* scratch);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_KERNELS_DEPTHWISE_H_
