// The inner kernels of convolutions on thin boxes (strip.h), compiled once for each instruction set
// (strip_avx2.cc, strip_avx512.cc).
#ifndef MENDEL_KERNELS_CPU_KERNELS_STRIP_KERNELS_H_
#define MENDEL_KERNELS_CPU_KERNELS_STRIP_KERNELS_H_

#include <cstdint>

#include "kernels/cpu/kernels/winograd_kernels.h"

namespace mendel::cpu {

/// Positions that the product kernel takes at once.
inline constexpr int kStripRows = 6;
/// Taps that one call of the product kernel takes at most.
inline constexpr int kStripTaps = 16;
/// Floats of the widest panel of output channels.
inline constexpr int kStripPanel = 64;

/// Neighboring positions that one call of the finishing kernel takes at most.
inline constexpr int kStripPositions = 8;

/// StripRow says where the sums of one position, or of several neighboring ones, go over a panel of
/// channels.
struct StripRow {
  const float* sums;
  int64_t sums_step;  ///< floats between positions; kStripPositions of them may be read, and whole
                      ///< vectors of channels
  int64_t positions;  ///< more than one: element p of a channel lies at [p], and both distances
                      ///< between channels are equal ones
  int64_t channels;
  const float* bias;              ///< one a channel
  const float* residual;          ///< residual of the first channel; null: none
  const int64_t* residual_steps;  ///< floats from the first channel to each of the panel
  int64_t residual_step;          ///< floats between any two neighboring channels; 0: not equal
  float* to;
  const int64_t* to_steps;
  int64_t to_step;
};

/// The kernels of one instruction set.
struct StripIsa {
  const char* name;
  int lanes;          ///< floats a vector
  int panel_vectors;  ///< vectors of a full panel of output channels
  /// sums[r] += sum over t and k of rows[t * kStripRows + r][k] * weights[t * depth + k], for
  /// `count` rows, weights and sums being vectors * lanes wide and the weights dense. Meanwhile
  /// taps * depth * `lines` cache lines from `next` are requested: weights that come from further
  /// away than the second-level cache then arrive in time.
  void (*multiply)(const float* const* rows, int64_t count, int64_t taps, int64_t depth,
                   const float* weights, int64_t vectors, float* const* sums, const float* next,
                   int64_t lines);
  /// to[p * row + c] = from[c * channel_step + p * position_step].
  void (*gather)(const float* from, int64_t channel_step, int64_t position_step, int64_t channels,
                 int64_t positions, float* to, int64_t row);
  /// Adds bias and residual, applies the activation, and stores. Reads and writes nothing beyond
  /// the row's residual and outputs. Only the epilogue's activation fields are used.
  void (*finish)(const StripRow& row, const WinogradEpilogue& epilogue);
};

const StripIsa& StripAvx2();
const StripIsa& StripAvx512();

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_KERNELS_STRIP_KERNELS_H_
