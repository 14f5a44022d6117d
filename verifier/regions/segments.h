// Claims as obligations over cut points, and their evaluation (docs/verifier.md,
// "Cut points").
// A segment here is the part of a program between cut points, not a piece of a dimension.
//
// Why all obligations together prove the graphs equal: give every number the value it has in the
// original. A reader of a merged or cut number reads the representative. Going through the plan in
// topological order, the operands of each value are equal to the values given to what it reads, so
// a shared node yields the original's value by congruence and a claimed one by its claim, which
// holds for all values of the free numbers it reads, hence for these. No order between the two
// graphs is needed.
#ifndef MENDEL_VERIFIER_REGIONS_SEGMENTS_H_
#define MENDEL_VERIFIER_REGIONS_SEGMENTS_H_

#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "verifier/bounds.h"
#include "verifier/certify/numbering.h"
#include "verifier/field_evaluator.h"

namespace mendel {

/// One obligation: claim number `claim` holds for all values of the free numbers that its two cones
/// read.
struct Segment {
  size_t claim = 0;
  /// The representative is read as a free number rather than computed.
  bool representative_is_free = false;
  std::vector<int32_t> cone;  ///< numbers computed, ascending, Inputs and Constants included
  std::vector<int32_t> cuts;  ///< free numbers read, ascending
  /// Not -1: what is compared is one combination of the slices along this axis, with a random
  /// factor each (contraction.h).
  int combined_axis = -1;
};

struct Partition {
  std::vector<bool> free;  ///< by number: readers see a fresh random tensor
  std::vector<Segment> segments;
};

/// Cuts at float values that are shared or representatives, but for those whose origin is in
/// `whole` and those that only one side of some claim reads (such a claim could not hold).
/// `no_cuts`: every value is computed.
Partition MakePartition(const Numbering& numbering, const std::set<Origin>& whole, bool no_cuts);

/// Chooses the axis along which each segment is combined, where that saves work.
void CombineSegments(const Numbering& numbering, Partition& partition);

/// The bound of each segment, in order. A segment whose combination would need more tests than its
/// elements do is compared element by element: its axis is dropped.
absl::StatusOr<std::vector<SegmentBound>> BoundSegments(const Numbering& numbering,
                                                        Partition& partition, WeightMode weights);

/// The first element in which a segment's two values differ.
struct Mismatch {
  size_t segment = 0;
  int64_t element = 0;
};

/// Evaluates every segment under one draw and compares every element. `visit` (may be null) sees
/// each number that is read or computed once. Values are freed after their last use. Aborted: a
/// zero denominator. DeadlineExceeded.
absl::StatusOr<std::vector<Mismatch>> TestSegments(
    const Numbering& numbering, const Partition& partition, const Draw& draw, WeightMode weights,
    const Deadline& deadline, const std::function<void(int32_t, const FieldValue&)>& visit);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_REGIONS_SEGMENTS_H_
