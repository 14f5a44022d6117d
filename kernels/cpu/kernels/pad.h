// Padding by elements of the tensor itself (edge, reflect, wrap), and triangles of matrices. Any
// dtype.
#ifndef MENDEL_KERNELS_CPU_KERNELS_PAD_H_
#define MENDEL_KERNELS_CPU_KERNELS_PAD_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/cpu/kernels/kernel.h"

namespace mendel::cpu {

/// out[i] = from[sum over d of sources[d][i_d]], offsets in elements; the result is row-major.
/// Elements of 1, 2, 4 or 8 bytes.
std::unique_ptr<Kernel> MakeSelectKernel(Place from, Place to,
                                         std::vector<std::vector<int64_t>> sources,
                                         int64_t element_bytes);

/// Matrices [rows, columns], row-major, with zeros below (`upper`) or above the k-th diagonal. In
/// place or not.
std::unique_ptr<Kernel> MakeTriluKernel(Place from, Place to, int64_t matrices, int64_t rows,
                                        int64_t columns, bool upper, int64_t k,
                                        int64_t element_bytes);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_KERNELS_PAD_H_
