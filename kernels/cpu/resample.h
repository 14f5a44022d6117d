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

/// Whether the last two passes are made row by row: the last but one makes a row of `inner` floats in a cache, the last one turns
/// it into the output's. Then the dimension of the last one lies within the other's rows, and these are short.
bool LastPassesTogether(const std::vector<ResamplePass>& passes);

/// Floats that the passes but the last one write: in two buffers that take turns, and a row a thread.
int64_t ResampleScratchFloats(const std::vector<ResamplePass>& passes, int threads);

/// f32, at least one pass, each reading what the one before wrote; sums in the order of the taps, each addition and multiplication
/// rounded or fused. By vectors of the widest instruction set here, along rows where they are longer than one element, else by
/// permutations where a vector of outputs needs no more than one of inputs. `scratch` of a run: ResampleScratchFloats floats.
std::unique_ptr<Kernel> MakeResampleKernel(const std::vector<ResamplePass>& passes, double extrapolation, int threads, Place from,
                                           Place to);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_RESAMPLE_H_
