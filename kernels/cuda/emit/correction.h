// A correction as a kernel sees it: one convolution recomputed on some boxes, with what follows it,
// written in place.
//
// Everything is a strided view into flat buffers, so that boxes of a whole tensor (the mutant's
// output) and dense pieces in a scratch buffer (between the convolutions of a chain) are the same
// thing. Coordinates are (image, channel, spatial...).
#ifndef MENDEL_KERNELS_CUDA_EMIT_CORRECTION_H_
#define MENDEL_KERNELS_CUDA_EMIT_CORRECTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "graph/tensor.h"
#include "graph/types.h"
#include "kernels/cuda/emit/tile.h"

namespace mendel::cuda {

/// Order of the dimensions in memory: channels first (N, C, D, H, W) or last (N, D, H, W, C).
enum class Layout { kNchw, kNhwc };
std::string_view LayoutName(Layout layout);
/// Strides in elements of (image, channel, spatial...) for a dense tensor of that shape.
Shape StridesOf(const Shape& shape, Layout layout);

/// Element (n, c, p...) lies at base + n * strides[0] + c * strides[1] + ...
struct View {
  int64_t base = 0;
  Shape strides;
};

/// The part of a dense tensor that begins at `begin`.
View ViewAt(const Shape& shape, Layout layout, const Shape& begin);

struct CorrectionBox {
  Shape extents;  ///< images, channels (groups * channels a group) and positions that are computed
  int64_t groups = 1;
  View x;           ///< channel 0 of the first group, position 0 of what may be read
  Shape x_extents;  ///< spatial positions of `x` that may be read; all others are zero
  Shape x_origin;   ///< position in `x` that the first tap of output 0 reads, a spatial dimension;
                    ///< may be negative
  Box taps;  ///< the part of the kernel that is summed over, spatial dimensions; no dimensions: all
             ///< of it
  int64_t w_begin = 0;     ///< output channel 0 in the packed weights
  int64_t bias_begin = 0;  ///< output channel 0 in the bias
  View y;
  std::vector<View> operands;  ///< operands of the epilogue's kAdd steps, in order
};

/// One operation on the sum. An epilogue is a list of them, in order.
struct EpilogueStep {
  enum class Kind { kBias, kAdd, kRelu, kLeakyRelu, kClip, kSigmoid, kTanh };
  Kind kind = Kind::kBias;
  double low = 0;   ///< of kClip; kLeakyRelu: the slope
  double high = 0;  ///< of kClip
  bool operator==(const EpilogueStep&) const = default;
};
std::string EpilogueText(const std::vector<EpilogueStep>& steps);

/// A few boxes with long sums leave most of a GPU idle. Their sums may be divided among blocks: one
/// kernel writes partial sums to scratch memory. A second one adds them, always in the same order,
/// and computes the epilogue.
struct DividedSum {
  enum class Stage {
    kNone,   ///< one kernel sums and finishes
    kParts,  ///< reads x and the weights, writes partial sums at `base` of y, a scratch buffer; its
             ///< boxes have no y and no operands
    kTotal,  ///< reads partial sums at `base` of x, a scratch buffer; its boxes have no x. It has
             ///< no weights
  };
  Stage stage = Stage::kNone;
  int parts = 1;     ///< a sum
  int64_t base = 0;  ///< in elements of the correction's dtype, a multiple of eight
  Tile tile;         ///< of both kernels
};

struct Correction {
  std::string name;    ///< name of the kernel: letters, digits and underscores
  std::string mutant;  ///< for people
  DType dtype = DType::kF32;
  Layout layout = Layout::kNchw;
  int64_t channels = 0;      ///< input channels a group
  int64_t out_channels = 0;  ///< rows of the weights, all groups
  Shape kernel, strides, dilations;
  std::vector<EpilogueStep> epilogue;
  std::vector<CorrectionBox> boxes;
  std::vector<std::string>
      reported;  ///< the boxes as people read them, an entry a box; may be empty
  DividedSum divided;
};

/// The taps that `box` sums over.
Box TapsOf(const Correction& correction, const CorrectionBox& box);
/// True where some box sums over part of the kernel only.
bool HasPartialSums(const Correction& correction);
/// Products in a sum of `box`.
int64_t SumOf(const Correction& correction, const CorrectionBox& box);

/// Channels a row of the packed weights has: out_channels, a multiple of four.
int64_t PackedRow(const Correction& correction);
/// The weights [O, C / group, K...] as kernels read them: row tap * channels + c, then the output
/// channel. An entry an element: its place in the weights, -1 for zeros that fill up a row.
std::vector<int64_t> PackedOrder(const Correction& correction);
/// `weights` in that order.
std::vector<double> PackWeights(const Correction& correction, const std::vector<double>& weights);
/// The same for stored elements, whose bytes are kept: [taps * channels, PackedRow]. `weights` has
/// the correction's dtype and as many elements as its weights (CHECK).
Tensor PackWeights(const Correction& correction, const Tensor& weights);

/// InvalidArgument when ranks, extents or views do not fit together, or something does not fit the
/// kernel's integers.
absl::Status CheckCorrection(const Correction& correction);

/// Elements of the correction's dtype that the partial sums of a divided sum take, which are f32.
int64_t PartialElements(const Correction& correction);

/// Textbook operations (a multiplication and an addition are two; adding partial sums is none), and
/// bytes that must move at least once.
double FlopsOf(const Correction& correction);
double BytesOf(const Correction& correction);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_EMIT_CORRECTION_H_
