// Reductions of f32 along any dimensions, in any dense layout.
#ifndef MENDEL_KERNELS_CPU_KERNELS_REDUCE_H_
#define MENDEL_KERNELS_CPU_KERNELS_REDUCE_H_

#include <memory>

#include "kernels/cpu/kernels/kernel.h"

namespace mendel::cpu {

enum class Reducer {
  kSum,
  kSumOfMagnitudes,
  kSumOfSquares,
  kMax,
  kMin,
  kProduct,
  kRootOfSquares,
  kLogOfSum,
  kLogOfExpSum
};

struct ReduceProblem {
  Reducer reducer = Reducer::kSum;
  double factor = 1;  ///< the result is multiplied by it (means)
  Place from;
  Place to;
  Shape kept, kept_from,
      kept_to;  ///< extents of loops over results, and strides in elements of operand and result
  Shape reduced, reduced_from;  ///< extents and strides of the loops that are summed over
};

/// Sums go over runs of f32 no longer than 256 and then in double. Sums under a root or logarithm,
/// and products, are wholly in double: they may leave the range of f32 where the result does not.
/// Terms go to 16 or more runs by turns, whose values are then combined in order. A NaN among the
/// terms is the result of a maximum or minimum.
std::unique_ptr<Kernel> MakeReduceKernel(ReduceProblem problem);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_KERNELS_REDUCE_H_
