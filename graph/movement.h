// Common parts of the operators that move elements: run-time indices, checks of axes, samples.
//
// A run-time index may be negative (it counts from the end). An index outside the extent is the
// caller's mistake, and no check before running can find it. The element read is then NaN in floats
// and 0 in integers, never memory outside the tensor. A scattered update at such an index is
// dropped.
#ifndef MENDEL_GRAPH_MOVEMENT_H_
#define MENDEL_GRAPH_MOVEMENT_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>

#include "absl/status/status.h"
#include "graph/meaning.h"
#include "graph/op_helpers.h"

namespace mendel {

/// `index` in [0, extent) after counting negatives from the end, or nullopt.
inline std::optional<int64_t> ResolveIndex(int64_t index, int64_t extent) {
  if (index < -extent || index >= extent) return std::nullopt;
  return index < 0 ? index + extent : index;
}

/// The element read at an index that does not exist.
template <class S>
S InvalidElement() {
  if constexpr (std::is_same_v<S, double>) {
    return std::numeric_limits<double>::quiet_NaN();
  } else if constexpr (std::is_same_v<S, Ball>) {
    return Ball::Indeterminate();
  } else {
    return S{};
  }
}

/// InvalidArgument unless 0 <= axis < rank.
absl::Status CheckAxis(int64_t axis, size_t rank);
/// InvalidArgument unless `type` holds indices (i32 or i64).
absl::Status CheckIndexType(const TensorType& type);
/// InvalidArgument unless the extents are non-negative and their product is at most kMaxElements.
absl::Status CheckExtents(const Shape& shape);

/// Any dtype for operators that only move elements: mostly f32.
DType SampleAnyDType(Rng& rng);
/// Indices: i64 or i32.
TensorType SampleIndexType(Rng& rng, Shape shape);

/// Input dimension d reads output coordinate `out_dim[d]` times `coefficient` plus `offset`.
DimAccess LinearAccess(size_t rank, size_t out_dim, int64_t coefficient = 1, int64_t offset = 0);

/// The reduction of ScatterND and ScatterElements combines an update with the element it meets:
/// "none" (the last one wins), "add", "mul", "max" or "min".
absl::Status CheckReduction(const std::string& reduction);
template <class S>
S Scattered(const Reader<S>& in, const std::string& reduction, const S& old, const S& update);
extern template double Scattered(const Reader<double>&, const std::string&, const double&,
                                 const double&);
extern template int64_t Scattered(const Reader<int64_t>&, const std::string&, const int64_t&,
                                  const int64_t&);
extern template Fp Scattered(const Reader<Fp>&, const std::string&, const Fp&, const Fp&);
extern template Ball Scattered(const Reader<Ball>&, const std::string&, const Ball&, const Ball&);
extern template Extended Scattered(const Reader<Extended>&, const std::string&, const Extended&,
                                   const Extended&);
/// Bound of an element of `data` that receives at most `count` updates.
Bound BoundOfScatter(const std::string& reduction, double count, const Bound& data,
                     const Bound& update, const Arithmetic<Bound>& arithmetic);

}  // namespace mendel

#endif  // MENDEL_GRAPH_MOVEMENT_H_
