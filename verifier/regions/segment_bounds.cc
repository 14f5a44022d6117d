// The bounds of segments.

#include <algorithm>
#include <unordered_map>

#include "base/status.h"
#include "verifier/regions/element_cone.h"
#include "verifier/regions/segments.h"

namespace mendel {
namespace {

/// Bounds of all numbers that some segment computes, and the known integers among them.
class BoundTable {
 public:
  BoundTable(const Numbering& numbering, const Partition& partition, WeightMode weights)
      : numbering_(numbering),
        partition_(partition),
        weights_(weights),
        evaluator_({65537, {}}, weights) {}

  absl::Status Compute(int32_t number) {
    if (bounds_.contains(number)) return absl::OkStatus();
    const NumberedNode& node = numbering_.NodeOf(number);
    if (IsInput(*node.node)) {
      bounds_[number].element = Bound::Symbol();
      return absl::OkStatus();
    }
    if (IsConstant(*node.node)) {
      bounds_[number] = BoundOfConstant(*node.node, weights_);
      if (IsIntegral(numbering_.TypeOf(number).dtype))
        known_[number] = evaluator_.Constant(*node.node);
      return absl::OkStatus();
    }
    std::vector<Bound> inputs;
    std::vector<const FieldValue*> known;
    std::vector<bool> concrete;
    for (int32_t input : node.inputs) {
      inputs.push_back(Of(input));
      const auto it = known_.find(input);
      known.push_back(it == known_.end() ? nullptr : &it->second);
      concrete.push_back(it != known_.end());
    }
    const int32_t output = numbering_.values[static_cast<size_t>(number)].output;
    if (IsConcrete(View(node), concrete)) {
      const FieldValue& value = known_[number] =
          evaluator_.Apply(*node.node->op, View(node), known, output);
      bounds_[number] = BoundOfIntegers(value.integers);
      return absl::OkStatus();
    }
    MENDEL_ASSIGN_OR_RETURN(bounds_[number],
                            BoundOfNode(*node.node->op, View(node), inputs, known, output));
    return absl::OkStatus();
  }

  Bound Of(int32_t number) const {
    return partition_.free[static_cast<size_t>(number)] ? Bound::Symbol()
                                                        : bounds_.at(number).element;
  }
  const ValueBound& Computed(int32_t number) const { return bounds_.at(number); }

 private:
  const Numbering& numbering_;
  const Partition& partition_;
  WeightMode weights_;
  FieldEvaluator evaluator_;  // for integers only, whose values do not depend on the draw
  std::unordered_map<int32_t, ValueBound> bounds_;
  std::unordered_map<int32_t, FieldValue> known_;
};

}  // namespace

absl::StatusOr<std::vector<SegmentBound>> BoundSegments(const Numbering& numbering,
                                                        Partition& partition, WeightMode weights) {
  // A combination may make a test worse by this factor (log2), or be as good as two tests for the
  // default target need.
  constexpr double kNoWorse = 2;
  constexpr double kGood = -41;
  constexpr uint64_t kSmallestPrime = uint64_t{1} << 59;
  BoundTable table(numbering, partition, weights);
  std::vector<SegmentBound> bounds;
  // Oracles of data-dependent operators, and those that elements share, are followed no further.
  ElementCone cone(numbering, partition.free, [&](int32_t number) {
    const ValueBound& value = table.Computed(number);
    return value.operands > 0 && value.operands_of_element == 0;
  });
  for (Segment& segment : partition.segments) {
    for (int32_t number : segment.cone) MENDEL_RETURN_IF_ERROR(table.Compute(number));
    const Claim& claim = numbering.claims[segment.claim];
    std::vector<int32_t> roots = {claim.member};
    if (!segment.representative_is_free) roots.push_back(claim.representative);
    const auto of_cone = [&](int axis) {
      SegmentBound bound;
      for (const auto& [number, elements] : cone.Needed(segment.cone, roots, axis))
        bound.AddToCone(table.Computed(number), elements);
      return bound;
    };
    SegmentBound bound = of_cone(-1);
    const Bound& found = table.Computed(claim.member).element;
    bound.Compare(segment.representative_is_free ? Bound::Symbol()
                                                 : table.Computed(claim.representative).element,
                  found);
    if (segment.combined_axis >= 0) {
      const auto slices = static_cast<double>(
          numbering.TypeOf(claim.member).shape[static_cast<size_t>(segment.combined_axis)]);
      SegmentBound combined = of_cone(segment.combined_axis);
      combined.Compare(
          SumOf(slices, table.Computed(claim.representative).element * Bound::Symbol()),
          SumOf(slices, found * Bound::Symbol()));
      if (combined.Log2Miss(kSmallestPrime) >
          std::max(kGood, bound.Log2Miss(kSmallestPrime) + kNoWorse))
        segment.combined_axis = -1;
      else
        bound = combined;
    }
    bounds.push_back(bound);
  }
  return bounds;
}

}  // namespace mendel
