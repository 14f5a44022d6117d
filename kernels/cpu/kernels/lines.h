// Operators on lines along one axis of a row-major tensor: CumSum, ArgMax, ArgMin, Hardmax, TopK in
// f32, f64, i32 and i64; Softmax and LogSoftmax in f32.
#ifndef MENDEL_KERNELS_CPU_KERNELS_LINES_H_
#define MENDEL_KERNELS_CPU_KERNELS_LINES_H_

#include <memory>

#include "graph/types.h"
#include "kernels/cpu/kernels/kernel.h"

namespace mendel::cpu {

/// The tensor as [outer, length, inner]; lines run along the middle and are shorter than 2^31.
struct Lines {
  DType dtype = DType::kF32;
  int64_t outer = 1;
  int64_t length = 1;
  int64_t inner = 1;
};

/// Floats are added in double, integers wrap around. In place or not.
std::unique_ptr<Kernel> MakeCumSumKernel(const Lines& lines, Place from, Place to, bool exclusive,
                                         bool reverse);

/// Position of the largest element, or the smallest, as i64: the first of equals or the last. A NaN
/// wins only when it comes first.
std::unique_ptr<Kernel> MakeArgExtremeKernel(const Lines& lines, Place from, Place to, bool largest,
                                             bool last);

/// 1 at the first of the largest elements of a line, 0 elsewhere. In place or not.
std::unique_ptr<Kernel> MakeHardmaxKernel(const Lines& lines, Place from, Place to);

/// exp(x - largest of the line) over the sum of its line, or the logarithm of that; f32. Made for
/// lines side by side (inner > 1). In place or not.
std::unique_ptr<Kernel> MakeSoftmaxKernel(const Lines& lines, Place from, Place to, bool logarithm);

/// The `k` largest or smallest elements, in order, and their positions as i64; of equals the first
/// ones, NaN being the largest value. Scratch memory of TopKScratch bytes for `threads` threads.
std::unique_ptr<Kernel> MakeTopKKernel(const Lines& lines, Place from, Place values,
                                       Place positions, int64_t k, bool largest, int threads);
int64_t TopKScratch(const Lines& lines, int threads);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_KERNELS_LINES_H_
