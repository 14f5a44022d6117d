// The inner kernels of the fused Winograd convolution, compiled once for each instruction set
// (winograd_avx2.cc, winograd_avx512.cc). Tensors have three spatial dimensions here; missing ones
// have extent one.
#ifndef MENDEL_KERNELS_CPU_KERNELS_WINOGRAD_KERNELS_H_
#define MENDEL_KERNELS_CPU_KERNELS_WINOGRAD_KERNELS_H_

#include <cstdint>

namespace mendel::cpu {

/// One block of outputs: positions start + step * (0 ... m - 1) in each dimension, of one image.
struct WinogradTile {
  int64_t image;
  int64_t start[3];  ///< start of the outputs
};

/// WinogradStrides gives the position of a channel vector, in floats: image * n + channel block * c
/// + sum of positions * d.
struct WinogradStrides {
  int64_t n;
  int64_t c;
  int64_t d[3];
};

/// WinogradEpilogue finishes a sum: plus bias, plus residual, then the activation (or the residual
/// last).
struct WinogradEpilogue {
  enum class Activation { kNone, kRelu, kClip, kCall };
  const float* bias;      ///< one a channel, padded with zeros to whole vectors
  const float* residual;  ///< laid out as the destination; null: none
  bool residual_last;
  Activation activation;
  float alpha;  ///< kRelu: slope of negative values; kClip: bounds
  float beta;
  /// kCall: the activation of an array, in place.
  void (*call)(const void* context, float* values, int64_t count);
  const void* context;
  /// kCall: the function that `call` computes, for kernels that can apply it in registers.
  enum class Known { kNone, kSigmoid, kSwish, kHardSwish } known;
};

struct WinogradProblem {
  int64_t in[3];
  int64_t out[3];
  int64_t pad[3];   ///< before
  int64_t step[3];  ///< dilation
  int64_t channels_out;
  WinogradStrides src;
  WinogradStrides dst;
};

/// The kernels of one F(m1 x m2 x m3, r1 x r2 x r3) and how wrong they may be. Factors lie as
/// factors[point][tile][channel], products as products[tile][point][channel of a full panel];
/// strides and rows in floats.
struct WinogradTransforms {
  int m[3];
  int r[3];
  /// Largest error of an output, relative to the layer's largest one, for random data and weights
  /// of up to 64 channels: at least a tenth more than winograd_errors (bench/) saw.
  /// WinogradErrorBound (winograd.h) is that for any number of channels.
  double error_bound;
  /// The matrices G, row-major, (m + r - 1) x r numbers each.
  const double* weights[3];
  /// Factors of channel blocks [begin, end) of `count` tiles; rows of `row` floats.
  void (*input)(const WinogradProblem& problem, const float* src, const WinogradTile* tiles,
                int64_t count, int64_t begin, int64_t end, float* factors, int64_t row,
                int64_t point_stride);
  /// Outputs of the channel blocks begin ... begin + vectors - 1 from products with `row` floats a
  /// tile.
  void (*output)(const WinogradProblem& problem, const WinogradEpilogue& epilogue,
                 const float* products, int64_t row, const WinogradTile* tiles, int64_t count,
                 int64_t begin, int64_t vectors, float* dst);
};

/// The kernels of one instruction set.
struct WinogradIsa {
  const char* name;
  int lanes;          ///< floats a vector: the channel block
  int panel_vectors;  ///< vectors of a full panel of output channels
  int panel_rows;     ///< tiles that the product kernel takes at once
  /// Computes products[row][p] = factors[p][row] * weights[p] for `points` points. weights[p] is
  /// depth x vectors * lanes, dense. Weights after them and before `end` are multiplied next, and
  /// prefetched.
  void (*multiply)(const float* factors, int64_t row, int64_t factor_stride, const float* weights,
                   const float* end, int64_t depth, int64_t rows, int64_t vectors, int64_t points,
                   float* products, int64_t product_row);
  /// values[tap][width] transformed along each dimension, in double; point p is rounded to to[p *
  /// stride ...]. Both buffers hold points * width numbers.
  void (*transform_weights)(const WinogradTransforms& transforms, int64_t width, double* values,
                            double* next, float* to, int64_t stride);
  const WinogradTransforms* transforms;
  int transform_count;
};

const WinogradIsa& WinogradAvx2();
const WinogradIsa& WinogradAvx512();

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_KERNELS_WINOGRAD_KERNELS_H_
