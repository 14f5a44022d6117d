// Bounds of a certificate: degrees, coefficient norms and oracle operands of the values of one
// segment (docs/verifier.md, "The bound").
#ifndef MENDEL_VERIFIER_BOUNDS_H_
#define MENDEL_VERIFIER_BOUNDS_H_

#include <cstdint>
#include <limits>
#include <span>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "verifier/field_evaluator.h"
#include "verifier/verifier.h"

namespace mendel {

/// Bound of one value, and the share of its node in the bound of the segment.
struct ValueBound {
  Bound element;        ///< of every element
  double operands = 0;  ///< scalar operands of all oracle calls of the node, all elements together
  /// Oracle operands that belong to one element alone; 0 where elements share operands.
  double operands_of_element = 0;
  Bound operand;            ///< of each oracle operand
  double denominators = 0;  ///< degrees of the denominators of all elements and operands, added up
  /// Elements may be the square root of 2 (root_of_two.h). Norms then are sums of |a| + sqrt(2) |b|
  /// over coefficients a + b sqrt(2).
  bool has_root_of_two = false;
};

/// The bound of a float constant: a symbol, or the worst of its dyadic elements; of an integral
/// one, its largest magnitude.
ValueBound BoundOfConstant(const Node& node, WeightMode weights);
ValueBound BoundOfIntegers(std::span<const int64_t> values);

/// The bound of output `output` of a node. `known[k]` are the elements of input k when they are
/// known integers, else null. Unimplemented when the operator states no bound.
absl::StatusOr<ValueBound> BoundOfNode(const OpDefinition& op, const NodeView& node,
                                       std::span<const Bound> inputs,
                                       std::span<const FieldValue* const> known, int output);

/// Everything that decides how likely one test is to miss a difference between two values.
struct SegmentBound {
  double degree = 0;        ///< of the cleared difference of the values, or of two oracle operands
  double log2_norm = 0;     ///< of its L1 norm
  double operands = 0;      ///< oracle operands in both cones of one element
  double denominators = 0;  ///< degree of all denominators
  bool has_root_of_two = false;

  /// Adds a value of one of the cones, of which one element of the claim needs `needed` elements,
  /// or all.
  void AddToCone(const ValueBound& value, double needed = std::numeric_limits<double>::infinity());
  /// To be called last: the difference of the two values themselves.
  void Compare(const Bound& a, const Bound& b);
  /// log2 of the probability that one test with a random prime of at least 2^59 (or with this one,
  /// when it is smaller) finds equal what is not; positive when nothing can be said.
  double Log2Miss(uint64_t prime) const;

 private:
  void Cover(const Bound& a, const Bound& b);
  Bound worst_operand_;
};

}  // namespace mendel

#endif  // MENDEL_VERIFIER_BOUNDS_H_
