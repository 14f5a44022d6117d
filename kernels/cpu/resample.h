// Resize as passes, one a dimension: every output row is a weighted sum of a few input rows.
#ifndef MENDEL_KERNELS_CPU_RESAMPLE_H_
#define MENDEL_KERNELS_CPU_RESAMPLE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "graph/resampling.h"
#include "kernels/cpu/kernel.h"

namespace mendel::cpu {

/// One dimension of a dense tensor [outer, in, inner] becomes `out` positions. `taps`: one list an output position; an empty one
/// gives the extrapolation value.
struct ResamplePass {
  int64_t outer = 1;
  int64_t in = 1;
  int64_t inner = 1;
  std::vector<ResampleTaps> taps;

  int64_t out() const { return static_cast<int64_t>(taps.size()); }
  int64_t OutputFloats() const { return outer * out() * inner; }
};

/// Floats that the passes but the last one write, in two buffers that take turns.
int64_t ResampleScratchFloats(const std::vector<ResamplePass>& passes);

/// f32, at least one pass, each reading what the one before wrote. `scratch` of a run: ResampleScratchFloats floats.
std::unique_ptr<Kernel> MakeResampleKernel(const std::vector<ResamplePass>& passes, double extrapolation, Place from, Place to);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_RESAMPLE_H_
