// Scattered updates: a copy of `data` in which elements at run-time indices are replaced or
// combined, in the order of the updates. Row-major. An update outside the tensor is dropped.
#ifndef MENDEL_KERNELS_CPU_KERNELS_SCATTER_H_
#define MENDEL_KERNELS_CPU_KERNELS_SCATTER_H_

#include <memory>
#include <optional>
#include <string_view>

#include "graph/types.h"
#include "kernels/cpu/kernels/index.h"
#include "kernels/cpu/kernels/kernel.h"

namespace mendel::cpu {

enum class Combination { kReplace, kAdd, kMultiply, kMax, kMin };
/// Returns the combination for the attribute `reduction`; nullopt when kernels cannot combine
/// elements of this type.
std::optional<Combination> CombinationOf(std::string_view reduction, DType dtype);

struct ScatterProblem {
  Combination combination = Combination::kReplace;
  DType dtype = DType::kF32;
  Place data;
  IndexPlace indices;
  Place updates;
  Place to;  ///< may be where the data lie
  Shape shape;
};

/// ScatterElements: `updates` is the shape of updates and indices.
std::unique_ptr<Kernel> MakeScatterElementsKernel(const ScatterProblem& problem,
                                                  const Shape& updates, size_t axis);
/// ScatterND: `tuples` tuples of `tuple` indices, which address the outermost dimensions.
std::unique_ptr<Kernel> MakeScatterTuplesKernel(const ScatterProblem& problem, int64_t tuples,
                                                int64_t tuple);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_KERNELS_SCATTER_H_
