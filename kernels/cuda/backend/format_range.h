// Which values a format of fewer bits has no finite numbers for.
#ifndef MENDEL_KERNELS_CUDA_BACKEND_FORMAT_RANGE_H_
#define MENDEL_KERNELS_CUDA_BACKEND_FORMAT_RANGE_H_

#include "graph/graph.h"

namespace mendel::cuda {

/// True where a finite number of f32 or f64 beyond the largest of `format` (f16 or bf16) is stored in `value` or reaches it through
/// elementwise operators and views, as the -3.4e38 of a mask does: rounded to the format, it would be infinite. What inputs, tables
/// and sums make of a value is not known here. Tensors that were asked about lately (64 MiB) are kept, so that their
/// numbers are read once. Thread-safe.
bool ExceedsByConstants(const Graph& graph, ValueId value, DType format);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_BACKEND_FORMAT_RANGE_H_
