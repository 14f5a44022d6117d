// A check for constants that have no finite counterpart in a format of fewer bits.
#ifndef MENDEL_KERNELS_CUDA_BACKEND_FORMAT_RANGE_H_
#define MENDEL_KERNELS_CUDA_BACKEND_FORMAT_RANGE_H_

#include "graph/graph.h"

namespace mendel::cuda {

/// True where a finite f32 or f64 constant beyond the largest number of `format` (f16 or bf16)
/// reaches `value`: directly, or through elementwise operators and views, as the -3.4e38 of a mask
/// does. Rounded to the format, it would be infinite. Inputs, tables and sums are not analyzed. The
/// tensors of the latest queries (64 MiB) are kept, so that their numbers are read once.
/// Thread-safe.
bool ExceedsByConstants(const Graph& graph, ValueId value, DType format);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_BACKEND_FORMAT_RANGE_H_
