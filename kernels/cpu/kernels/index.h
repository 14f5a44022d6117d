// Operators whose run-time indices say which elements to read. Operands and results are row-major.
// An index outside its extent reads NaN in floats and 0 in integers (graph/movement.h).
#ifndef MENDEL_KERNELS_CPU_KERNELS_INDEX_H_
#define MENDEL_KERNELS_CPU_KERNELS_INDEX_H_

#include <cstdint>
#include <memory>

#include "kernels/cpu/kernels/kernel.h"

namespace mendel::cpu {

/// A tensor of i64 (`wide`) or i32.
struct IndexPlace {
  Place place;
  bool wide = true;
};

/// The indices' values during a run.
class IndexValues {
 public:
  IndexValues(const Bindings& bindings, const IndexPlace& indices)
      : wide_(indices.wide ? bindings.At<int64_t>(indices.place) : nullptr),
        narrow_(indices.wide ? nullptr : bindings.At<int32_t>(indices.place)) {}
  int64_t operator[](int64_t i) const { return wide_ != nullptr ? wide_[i] : narrow_[i]; }

 private:
  const int64_t* wide_;
  const int32_t* narrow_;
};

/// IndexedRead contains the fields that all of these operators have.
struct IndexedRead {
  Place data;
  IndexPlace indices;
  Place to;
  int64_t element_bytes = 4;
  uint64_t invalid = 0;  ///< the element read outside, in its low bytes
};

/// Gather: data [outer, extent, slice], `count` indices, the result [outer, count, slice].
std::unique_ptr<Kernel> MakeGatherKernel(const IndexedRead& read, int64_t outer, int64_t extent,
                                         int64_t count, int64_t slice);

/// GatherElements: the result has the shape of the indices.
std::unique_ptr<Kernel> MakeGatherElementsKernel(const IndexedRead& read, const Shape& data,
                                                 const Shape& indices, size_t axis);

/// GatherND: `batches` times `tuples` tuples address the dimensions `addressed` of slices of
/// `slice` elements.
struct TupleGather {
  int64_t batches = 1;
  int64_t tuples = 1;
  Shape addressed;
  int64_t slice = 1;
};
std::unique_ptr<Kernel> MakeGatherTuplesKernel(const IndexedRead& read, TupleGather gather);

/// OneHot: data = {off, on}; the result is [outer, depth, inner], the indices [outer, inner].
std::unique_ptr<Kernel> MakeOneHotKernel(const IndexedRead& read, int64_t outer, int64_t depth,
                                         int64_t inner);

/// ReverseSequence: indices = lengths.
std::unique_ptr<Kernel> MakeReverseSequenceKernel(const IndexedRead& read, const Shape& shape,
                                                  size_t batch_axis, size_t time_axis);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_KERNELS_INDEX_H_
