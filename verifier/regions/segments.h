// Turns claims into obligations between cut points, and evaluates them (docs/verifier.md, "Cut
// points").
// A segment here is the part of a program between cut points, not a piece of a dimension.
//
// Why all obligations together prove the graphs equal: Give every number its value in the original.
// Walk through the plan in topological order. All operands of a node then have the original's
// values. A shared node has the original's value by congruence. A claimed node has it by its claim,
// which holds for all values of the free numbers that it reads. No order between the two
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

/// Cuts at float values that are shared or representatives. It does not cut values whose origin is
/// in `whole`. Nor does it cut values that only one side of a claim reads: that claim could not
/// hold. `no_cuts`: no cuts at all.
Partition MakePartition(const Numbering& numbering, const std::set<Origin>& whole, bool no_cuts);

/// Chooses the axis along which each segment is combined, where that saves work.
void CombineSegments(const Numbering& numbering, Partition& partition);

/// The bound of each segment, in order. If the combination of a segment needs more tests than its
/// elements, the axis is dropped and its elements are compared.
absl::StatusOr<std::vector<SegmentBound>> BoundSegments(const Numbering& numbering,
                                                        Partition& partition, WeightMode weights);

/// The first element in which a segment's two values differ.
struct Mismatch {
  size_t segment = 0;
  int64_t element = 0;
};

/// Evaluates every segment under one draw and compares every element. Calls `visit` (may be null)
/// once for each number that is read or computed. Values are freed after their last use. Aborted: a
/// zero denominator. DeadlineExceeded.
absl::StatusOr<std::vector<Mismatch>> TestSegments(
    const Numbering& numbering, const Partition& partition, const Draw& draw, WeightMode weights,
    const Deadline& deadline, const std::function<void(int32_t, const FieldValue&)>& visit);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_REGIONS_SEGMENTS_H_
