// Copies between strided boxes: transposition, slicing, concatenation, padding, expansion, patches.
#ifndef MENDEL_KERNELS_CPU_KERNELS_COPY_H_
#define MENDEL_KERNELS_CPU_KERNELS_COPY_H_

#include <memory>
#include <optional>
#include <vector>

#include "kernels/cpu/kernels/kernel.h"

namespace mendel::cpu {

/// One box of `extents`; the element at index i lies at from.offset + sum from_strides[d] * i_d
/// elements (zero and negative strides are fine) and goes to `to` likewise. Layout fields of the
/// places are not used.
struct StridedCopy {
  Place from;
  Place to;
  Shape extents;
  Shape from_strides;
  Shape to_strides;
};

/// All elements of a value of this shape; both places in equal blocks of channels without padding.
StridedCopy BlockedCopy(const Place& from, const Place& to, const Shape& shape);

/// Elements of `element_bytes` (1, 2, 4 or 8).
std::unique_ptr<Kernel> MakeCopyKernel(std::vector<StridedCopy> copies, int64_t element_bytes);

/// Fills `bytes` bytes at `place` with an element, then runs the copies (padding).
struct Fill {
  Place place;
  int64_t elements = 0;
  uint64_t bits = 0;  ///< the element in its low bytes
};
std::unique_ptr<Kernel> MakeFillAndCopyKernel(Fill fill, std::vector<StridedCopy> copies,
                                              int64_t element_bytes);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_KERNELS_COPY_H_
