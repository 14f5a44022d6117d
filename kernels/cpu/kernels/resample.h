// Resize as passes, one a dimension: every output row is a weighted sum of a few input rows.
#ifndef MENDEL_KERNELS_CPU_KERNELS_RESAMPLE_H_
#define MENDEL_KERNELS_CPU_KERNELS_RESAMPLE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "graph/resampling.h"
#include "kernels/cpu/kernels/kernel.h"

namespace mendel::cpu {

/// One dimension of a dense tensor [outer, in, inner] becomes `out` positions. `taps`: one list an
/// output position; an empty one gives the extrapolation value.
struct ResamplePass {
  int64_t outer = 1;
  int64_t in = 1;
  int64_t inner = 1;
  std::vector<ResampleTaps> taps;

  int64_t out() const { return static_cast<int64_t>(taps.size()); }
  int64_t OutputFloats() const { return outer * out() * inner; }
};

/// True when the last two passes are made row by row. The last but one makes a row of `inner`
/// floats in a cache, and the last one turns it into the output's row. The dimension of the last
/// one then lies within the other's rows, and these are short.
bool LastPassesTogether(const std::vector<ResamplePass>& passes);

/// Number of floats that the passes but the last one write: two buffers that take turns, and a row
/// a thread.
int64_t ResampleScratchFloats(const std::vector<ResamplePass>& passes, int threads);

/// f32, at least one pass; each reads the result of the one before. Sums follow the order of the
/// taps, each addition and multiplication rounded or fused. Vectors have the widest instruction set
/// here. They run along rows longer than one element. Otherwise permutations are used where a
/// vector of outputs needs no more than one vector of inputs. A run needs ResampleScratchFloats
/// floats of `scratch`.
std::unique_ptr<Kernel> MakeResampleKernel(const std::vector<ResamplePass>& passes,
                                           double extrapolation, int threads, Place from, Place to);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_KERNELS_RESAMPLE_H_
