// The inner kernels of pointwise products (pointwise.h, strassen.h), attention (attention.h),
// direct convolutions (direct_conv.h), grouped (grouped.h) and depthwise ones (depthwise.h),
// compiled once for each instruction set (direct_avx2.cc, direct_avx512.cc).
#ifndef MENDEL_KERNELS_CPU_KERNELS_DIRECT_KERNELS_H_
#define MENDEL_KERNELS_CPU_KERNELS_DIRECT_KERNELS_H_

#include <cstdint>

#include "kernels/cpu/kernels/winograd_kernels.h"

namespace mendel::cpu {

/// A block of positions times one panel of output channels. Channels of a position lie in vectors,
/// `src_c` and `dst_c` floats apart.
struct PointwiseBlock {
  const float* src;
  const int64_t* src_at;  ///< floats to each position
  int64_t src_c;
  int64_t depth;         ///< input channels
  const float* weights;  ///< depth x vectors vectors, dense
  const float* bias;     ///< bias of the panel's first channel, padded to whole vectors
  float* dst;
  const int64_t* dst_at;  ///< of the panel's first channel
  int64_t dst_c;
  int64_t count;      ///< positions
  int64_t vectors;    ///< vectors of the panel
  int64_t channels;   ///< channels of the panel
  bool padded;        ///< the last vector has room after its channels, to be filled with zeros
  const float* next;  ///< weights that are needed next
  int64_t lines;      ///< cache lines of them
};

/// y = max(x * factor + summand, floor) for each channel, before a pointwise product.
struct PointwiseInput {
  const float* factor;   ///< one a channel; null: y = x
  const float* summand;  ///< likewise; null: y = x * factor
  float floor;           ///< -infinity: none
};

/// A run of outputs along the last dimension, of one vector of output channels.
struct GroupedRun {
  const float* const* rows;  ///< where the first output's first tap reads, for each row of taps
  int64_t row_count;
  int64_t taps;          ///< in a row
  int64_t tap;           ///< floats between taps
  int64_t stride;        ///< floats between outputs' positions
  int64_t inputs;        ///< input channels of a group
  const int32_t* lanes;  ///< [input][output channel], the lane that it reads
  const float* weights;  ///< [row][input][tap] vectors
  const float* bias;
  int64_t count;  ///< outputs to be stored; as many as the kernel takes are read
  float* dst;
  int64_t at;        ///< floats to the first output, also in the residual
  int64_t step;      ///< floats between outputs
  int64_t channels;  ///< channels of the vector; the others become zero
};

/// A row of outputs along the last dimension, of one vector of channels that are convolved each by
/// itself.
struct DepthwiseRun {
  const float* const* rows;  ///< position 0 of each row of taps; null: zeros
  int64_t row_count;
  int64_t line;      ///< positions of a row; those outside of it are zeros
  int64_t position;  ///< floats between positions
  int64_t readable;  ///< channels of a position that may be read; as many as lanes: whole vectors
  int64_t pad;       ///< the first output's first tap reads position -pad
  int64_t taps;      ///< in a row
  int64_t dilation;  ///< positions between taps
  int64_t stride;    ///< positions between outputs
  const float* weights;  ///< [row][tap] vectors
  const float* bias;
  int64_t count;  ///< outputs
  float* dst;
  int64_t at;        ///< floats to the first output, also in the residual
  int64_t step;      ///< floats between outputs
  int64_t channels;  ///< channels of the vector
  bool padded;       ///< the others exist and become zero
  float* sums;  ///< a vector that the outputs are added to, for channels that exist; null: none
};

/// Rows of taps (all dimensions but the last) of a direct or grouped convolution, at most.
inline constexpr int64_t kMostTapRows = 64;
/// Vectors of output channels that a direct convolution computes together.
inline constexpr int kDirectVectors = 2;

/// A few outputs next to each other along the last dimension, of one panel of output channels, from
/// a source or a held window (direct_conv.h) in which neighboring outputs read neighboring
/// vectors.
struct DirectTile {
  const float* src;        ///< of the first block of input channels
  int64_t src_c;           ///< floats between blocks
  int64_t inputs;          ///< input channels
  const int64_t* taps_at;  ///< floats from a block to what each tap of the first output reads
  int64_t taps;
  int64_t ask;           ///< floats from a block to vectors that are needed next
  int64_t asked;         ///< vectors of them
  const float* weights;  ///< [block][tap][input channel] x vectors vectors, dense
  const float* next;     ///< weights that are needed next, as many; null: these again
  const float* bias;     ///< bias of the panel's first channel, padded to whole vectors
  int64_t count;         ///< outputs
  int64_t vectors;       ///< vectors of the panel
  int64_t channels;      ///< from the panel's first on; those of its last vector that do not exist
                         ///< become zero
  float* dst;
  int64_t at;     ///< floats to the first output's first vector, also in the residual
  int64_t dst_c;  ///< floats between vectors
  int64_t step;   ///< floats between outputs
};

/// DirectWindow describes what a tile reads and the window that contains it:
/// window[block][row][phase][reach] vectors.
struct DirectWindow {
  const float* const* rows;  ///< position 0 of each row of taps, of the first block; null: zeros
  int64_t row_count;
  int64_t blocks;
  int64_t src_c;       ///< floats between blocks
  int64_t begin, end;  ///< first position that is read (those below 0 are zeros), and the row's end
                       ///< (zeros from there on)
  int64_t position;    ///< floats between positions
  int64_t stride;      ///< phases: position begin + phase + k * stride is number k of its phase
  int64_t reach;       ///< positions of a phase
  float* window;
};

/// Positions in pairs, r with pairs + r (which may be missing: zeros), and their channels in halves
/// (strassen.h).
struct StrassenBlock {
  const float* src;
  const int64_t* src_at;
  int64_t src_c;
  int64_t count;  ///< positions
  int64_t pairs;
  int64_t channels;    ///< channels of a position
  int64_t half;        ///< first channel of the second half: whole vectors
  int64_t begin, end;  ///< channels of a half, whole vectors; those that do not exist are zeros
  float* factors;      ///< seven of them, pairs x (end - begin)
  int64_t row;         ///< floats between pairs
  int64_t factor_stride;
};

/// One panel of output channels of either half, from seven products.
struct StrassenPanel {
  const float* products;  ///< pairs x vectors, dense
  int64_t product_stride;
  int64_t vectors;
  const float* bias[2];  ///< of the panel's first channel of either half, padded to whole vectors
  float* dst;
  const int64_t* dst_at;
  int64_t dst_c;
  int64_t at[2];  ///< floats from a position's output to the panel's first channel
  int64_t channels[2];
  int64_t count;
  int64_t pairs;
  bool padded;
};

/// One step from a product of queries and keys to the scores: a summand, or another value where a
/// condition says so.
struct ScoreTerm {
  const float* summand;      ///< summand of the row's first key; null: a condition
  const uint8_t* condition;  ///< Booleans
  int64_t step;              ///< elements to the next key's: 1 or 0
  bool kept;                 ///< the condition where the score stays
  float other;               ///< elsewhere
};

/// A row of `count` scores, with room for whole vectors.
struct SoftmaxProblem {
  int64_t count;
  float scale;
  const ScoreTerm* terms;  ///< applied in order, after the scale
  int64_t term_count;
};

/// The kernels of one instruction set.
struct DirectIsa {
  const char* name;
  int lanes;
  int panel_vectors;   ///< vectors of a full panel of output channels
  int rows[5];         ///< positions that `pointwise` takes at once, by the panel's vectors
  int tile_positions;  ///< outputs that `direct` takes at once, at most
  int positions[2];    ///< outputs that each of `grouped` and of `depthwise` takes at once
  void (*pointwise)(const PointwiseBlock& block, const WinogradEpilogue& epilogue);
  /// to[p * row + c] from `count` positions.
  void (*prepare)(const PointwiseInput& input, const float* src, const int64_t* src_at,
                  int64_t src_c, int64_t count, int64_t channels, float* to, int64_t row);
  /// to := weights of a panel, `depth` x `vectors` vectors, each input channel's times its factor.
  void (*scale_weights)(const float* weights, const float* factor, int64_t depth, int64_t vectors,
                        float* to);
  void (*grouped[2])(const GroupedRun& run, const WinogradEpilogue& epilogue);
  void (*depthwise[2])(const DepthwiseRun& run, const WinogradEpilogue& epilogue);
  void (*direct)(const DirectTile& tile, const WinogradEpilogue& epilogue);
  void (*hold)(const DirectWindow& window);
  void (*strassen_factors)(const StrassenBlock& block);
  void (*strassen_outputs)(const StrassenPanel& panel, const WinogradEpilogue& epilogue);
  /// scores := exp(t - max t), t = scale * scores and its terms; returns 1 / their sum.
  float (*softmax_row)(const SoftmaxProblem& problem, float* scores);
  void (*scale_row)(float* row, int64_t count, float factor);
};

/// Number of outputs in whole calls of `grouped[kernel]` or `depthwise[kernel]` that contain
/// `count`.
int64_t ComputedPositions(const DirectIsa& isa, int kernel, int64_t count);
/// Returns the kernel that computes fewer surplus outputs. A tie goes to the one with more sums in
/// flight.
int KernelForPositions(const DirectIsa& isa, int64_t count);

const DirectIsa& DirectAvx2();
const DirectIsa& DirectAvx512();
/// Returns the kernels for this machine, within the limits of oneDNN (DNNL_MAX_CPU_ISA); null when
/// it has neither AVX2 nor AVX-512.
const DirectIsa* DirectIsaHere();

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_KERNELS_DIRECT_KERNELS_H_
