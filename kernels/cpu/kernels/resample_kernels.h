// The loops of Resize. Those with vectors are compiled for AVX2. Sums run in the order of the taps.
#ifndef MENDEL_KERNELS_CPU_KERNELS_RESAMPLE_KERNELS_H_
#define MENDEL_KERNELS_CPU_KERNELS_RESAMPLE_KERNELS_H_

#include <cstddef>
#include <cstdint>

namespace mendel::cpu {

/// Output rows as weighted sums of input rows. Input rows begin at `from` and are `step` elements
/// apart. Each output row has `taps` positions and factors; those of the next row follow them.
struct RowSums {
  const float* from;
  int64_t step;
  const int64_t* position;
  const float* factor;
  int64_t taps;
};

/// One tap of a vector of output elements. It lies on one cache line: a load across two lines takes
/// twice as long.
struct alignas(64) LaneTable {
  int32_t lane[8] = {};  ///< lane of the vector of input elements
  float factor[8] = {};
};

/// A vector of output elements.
struct LaneGroup {
  /// Input element in lane 0 of the vector from which the tables take their lanes.
  int64_t first = 0;
  int64_t count = 0;  ///< output elements, from the vector's first lane on
};

/// LanePlan turns a row of `in` elements into another one, group by group. Vectors of a group end
/// within the row, or begin with it where it is shorter than a vector. Each group has `taps`
/// tables.
struct LanePlan {
  const LaneGroup* groups;
  int64_t count;
  const LaneTable* tables;
  int64_t taps;
  int64_t in;
};

struct ResampleIsa {
  int64_t lanes;
  /// The first output row, of `inner` elements.
  void (*blend)(const RowSums& sums, int64_t inner, float* to);
  /// Computes to[y * to_step + i] of group i / lanes, for y < rows: the sum of factor[i] * row y
  /// [first + lane[i]]. `sums` defines row y.
  void (*pick)(const LanePlan& plan, const RowSums& sums, int64_t rows, float* to, int64_t to_step);
};

const ResampleIsa& ResampleAvx2();

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_KERNELS_RESAMPLE_KERNELS_H_
