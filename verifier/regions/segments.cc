#include "verifier/regions/segments.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "base/status.h"
#include "verifier/certify/contraction.h"

namespace mendel {
namespace {

bool IsTerminalNumber(const Numbering& numbering, int32_t number) {
  const Node& node = *numbering.NodeOf(number).node;
  return IsInput(node) || IsConstant(node);
}

/// The nodes that one side of a claim computes and reads.
struct Cone {
  std::vector<int32_t> computed;
  std::vector<int32_t> cuts;
};

Cone ConeOf(const Numbering& numbering, const std::vector<bool>& free, int32_t root) {
  std::set<int32_t> computed = {root};
  std::set<int32_t> cuts;
  std::vector<int32_t> open = {root};
  while (!open.empty()) {
    const int32_t number = open.back();
    open.pop_back();
    for (int32_t input : numbering.NodeOf(number).inputs) {
      if (free[static_cast<size_t>(input)]) {
        cuts.insert(input);
      } else if (computed.insert(input).second) {
        open.push_back(input);
      }
    }
  }
  return {{computed.begin(), computed.end()}, {cuts.begin(), cuts.end()}};
}

std::vector<int32_t> Union(const std::vector<int32_t>& a, const std::vector<int32_t>& b) {
  std::vector<int32_t> all;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(all));
  return all;
}

/// The segment of a claim; cuts that only one side reads are added to `one_sided`.
Segment SegmentOf(const Numbering& numbering, const std::vector<bool>& free, size_t claim,
                  std::vector<int32_t>& one_sided) {
  const int32_t representative = numbering.claims[claim].representative;
  const Cone member = ConeOf(numbering, free, numbering.claims[claim].member);
  Segment segment;
  segment.claim = claim;
  // A pair of inverse views gives back the free number it started from; otherwise the
  // representative is computed as well.
  segment.representative_is_free =
      std::binary_search(member.cuts.begin(), member.cuts.end(), representative);
  const Cone wanted = segment.representative_is_free ? Cone{{}, {representative}}
                                                     : ConeOf(numbering, free, representative);
  segment.cone = Union(wanted.computed, member.computed);
  segment.cuts = Union(wanted.cuts, member.cuts);
  std::set_symmetric_difference(wanted.cuts.begin(), wanted.cuts.end(), member.cuts.begin(),
                                member.cuts.end(), std::back_inserter(one_sided));
  return segment;
}

/// Numbers that a segment computes in full.
std::vector<int32_t> ComputedOf(const Numbering& numbering, const std::vector<bool>& free,
                                const Segment& segment, const std::vector<int32_t>& read) {
  if (segment.combined_axis < 0) return segment.cone;
  std::vector<int32_t> computed;
  for (int32_t number : read) {
    if (!free[static_cast<size_t>(number)])
      computed = Union(computed, ConeOf(numbering, free, number).computed);
  }
  return computed;
}

/// Numbers whose elements a combined segment reads, as often as it does.
std::vector<int32_t> ReadByCombination(const Numbering& numbering, const Contraction& contraction,
                                       const Segment& segment) {
  std::vector<int32_t> read;
  if (segment.combined_axis < 0) return read;
  const Claim& claim = numbering.claims[segment.claim];
  for (int32_t number : {claim.representative, claim.member}) {
    const auto plan = contraction.Prepare(number, static_cast<size_t>(segment.combined_axis));
    MENDEL_CHECK(plan.has_value());
    read.insert(read.end(), plan->whole.begin(), plan->whole.end());
  }
  return read;
}

/// Values of one draw while the segments are walked, with the number of reads still to come.
class Walk {
 public:
  Walk(const Numbering& numbering, const Partition& partition, const Draw& draw, WeightMode weights,
       const std::function<void(int32_t, const FieldValue&)>& visit)
      : numbering_(numbering),
        partition_(partition),
        contraction_(numbering, partition.free),
        evaluator_(draw, weights),
        visit_(visit),
        computed_(numbering.values.size()),
        free_(numbering.values.size()) {
    std::vector<bool> counted(numbering.values.size(), false);
    for (const Segment& segment : partition.segments) {
      read_.push_back(ReadByCombination(numbering, contraction_, segment));
      wanted_.push_back(ComputedOf(numbering, partition.free, segment, read_.back()));
      for (int32_t number : wanted_.back()) {
        if (counted[static_cast<size_t>(number)]) continue;
        counted[static_cast<size_t>(number)] = true;
        for (int32_t input : numbering.NodeOf(number).inputs) ++SlotOf(input).reads;
      }
      for (int32_t number : read_.back()) ++SlotOf(number).reads;
      if (segment.combined_axis >= 0) continue;
      const Claim& claim = numbering.claims[segment.claim];
      ++(segment.representative_is_free ? free_
                                        : computed_)[static_cast<size_t>(claim.representative)]
            .reads;
      ++computed_[static_cast<size_t>(claim.member)].reads;
    }
  }

  /// The first differing element of segment `k` (of its combination), -1 when there is none.
  absl::StatusOr<int64_t> Test(size_t k, const Deadline& deadline) {
    const Segment& segment = partition_.segments[k];
    // Inputs and Constants wait for their first reader: weights of all segments at once would not
    // fit.
    for (int32_t number : wanted_[k]) {
      if (deadline.Passed()) return absl::DeadlineExceededError("certification ran out of time");
      if (!IsTerminalNumber(numbering_, number)) MENDEL_RETURN_IF_ERROR(Compute(number));
    }
    const Claim& claim = numbering_.claims[segment.claim];
    if (segment.combined_axis >= 0)
      return TestCombined(claim, static_cast<size_t>(segment.combined_axis), read_[k]);
    if (!segment.representative_is_free) MENDEL_RETURN_IF_ERROR(Compute(claim.representative));
    MENDEL_RETURN_IF_ERROR(Compute(claim.member));
    Slot& wanted =
        (segment.representative_is_free ? free_
                                        : computed_)[static_cast<size_t>(claim.representative)];
    Slot& found = computed_[static_cast<size_t>(claim.member)];
    if (segment.representative_is_free) DrawFree(claim.representative);
    const int64_t element = FirstDifference(wanted.value, found.value);
    Release(wanted);
    Release(found);
    Forget(claim.representative);
    Forget(claim.member);
    return element;
  }

 private:
  struct Slot {
    FieldValue value;
    int64_t reads = 0;
    bool known = false;
    bool visited = false;
  };

  Slot& SlotOf(int32_t number) {
    return (partition_.free[static_cast<size_t>(number)] ? free_
                                                         : computed_)[static_cast<size_t>(number)];
  }

  static void Release(Slot& slot) {
    MENDEL_CHECK(slot.reads > 0);
    if (--slot.reads == 0) slot.value = FieldValue();
  }

  /// A large weight is drawn again for its next reader, which may come long after: all weights at
  /// once would not fit.
  void Forget(int32_t number) {
    constexpr int64_t kLarge = 1 << 16;
    Slot& slot = SlotOf(number);
    if (!slot.known || !IsConstant(*numbering_.NodeOf(number).node) || slot.value.size() < kLarge)
      return;
    slot.value = FieldValue();
    slot.known = false;
  }

  void Keep(int32_t number, Slot& slot, FieldValue value) {
    slot.value = std::move(value);
    slot.known = true;
    if (visit_ && !slot.visited) visit_(number, slot.value);
    slot.visited = true;
  }

  void DrawFree(int32_t number) {
    Slot& slot = free_[static_cast<size_t>(number)];
    if (!slot.known)
      Keep(number, slot,
           evaluator_.Symbol("cut", Cat(number), NumElements(numbering_.TypeOf(number))));
  }

  absl::StatusOr<int64_t> TestCombined(const Claim& claim, size_t axis,
                                       const std::vector<int32_t>& read) {
    for (int32_t number : read) {
      if (partition_.free[static_cast<size_t>(number)]) {
        DrawFree(number);
      } else if (IsTerminalNumber(numbering_, number)) {
        MENDEL_RETURN_IF_ERROR(Compute(number));
      }
      MENDEL_CHECK(SlotOf(number).known);
    }
    const int64_t slices = numbering_.TypeOf(claim.member).shape[axis];
    const FieldValue factors = evaluator_.Symbol("slice", Cat(claim.member), slices);
    const auto elements = [&](int32_t number) -> const FieldValue& { return SlotOf(number).value; };
    const FieldValue wanted =
        contraction_.Evaluate(evaluator_, claim.representative, axis, factors.scalars, elements);
    const FieldValue found =
        contraction_.Evaluate(evaluator_, claim.member, axis, factors.scalars, elements);
    for (int32_t number : read) Release(SlotOf(number));
    for (int32_t number : read) Forget(number);
    if (evaluator_.zero_denominator()) return absl::AbortedError("a denominator is zero");
    return FirstDifference(wanted, found);
  }

  absl::Status Compute(int32_t number) {
    Slot& slot = computed_[static_cast<size_t>(number)];
    if (slot.known) return absl::OkStatus();
    const NumberedNode& node = numbering_.NodeOf(number);
    if (IsInput(*node.node)) {
      Keep(number, slot, evaluator_.Input(*node.node));
    } else if (IsConstant(*node.node)) {
      Keep(number, slot, evaluator_.Constant(*node.node));
    } else {
      std::vector<const FieldValue*> operands;
      for (int32_t input : node.inputs) {
        if (partition_.free[static_cast<size_t>(input)]) DrawFree(input);
        if (!SlotOf(input).known && IsTerminalNumber(numbering_, input))
          MENDEL_RETURN_IF_ERROR(Compute(input));
        MENDEL_CHECK(SlotOf(input).known);
        operands.push_back(&SlotOf(input).value);
      }
      const int32_t output = numbering_.values[static_cast<size_t>(number)].output;
      Keep(number, slot, evaluator_.Apply(*node.node->op, View(node), operands, output));
    }
    for (int32_t input : node.inputs) Release(SlotOf(input));
    for (int32_t input : node.inputs) Forget(input);
    if (!evaluator_.zero_denominator()) return absl::OkStatus();
    return absl::AbortedError(Cat("a denominator is zero in operator ", node.node->op->name));
  }

  int64_t FirstDifference(const FieldValue& a, const FieldValue& b) const {
    MENDEL_CHECK(a.size() == b.size());
    const FieldScope scope(evaluator_.field());
    for (int64_t i = 0; i < a.size(); ++i) {
      if (a.At(i) != b.At(i)) return i;
    }
    return -1;
  }

  const Numbering& numbering_;
  const Partition& partition_;
  const Contraction contraction_;
  const FieldEvaluator evaluator_;
  const std::function<void(int32_t, const FieldValue&)>& visit_;
  std::vector<Slot> computed_;
  std::vector<Slot> free_;
  std::vector<std::vector<int32_t>> wanted_;  // by segment: ComputedOf, ReadByCombination
  std::vector<std::vector<int32_t>> read_;
};

}  // namespace

Partition MakePartition(const Numbering& numbering, const std::set<Origin>& whole, bool no_cuts) {
  Partition partition;
  partition.free.assign(numbering.values.size(), false);
  const auto consider = [&](int32_t number) {
    if (no_cuts || IsTerminalNumber(numbering, number) || !IsFloat(numbering.TypeOf(number).dtype))
      return;
    if (!whole.contains(numbering.values[static_cast<size_t>(number)].origin))
      partition.free[static_cast<size_t>(number)] = true;
  };
  for (int32_t number = 0; number < static_cast<int32_t>(numbering.values.size()); ++number) {
    if (numbering.IsShared(number)) consider(number);
  }
  for (const Claim& claim : numbering.claims) {
    if (claim.output.empty()) consider(claim.representative);
  }
  while (true) {
    std::vector<int32_t> one_sided;
    partition.segments.clear();
    for (size_t k = 0; k < numbering.claims.size(); ++k) {
      partition.segments.push_back(SegmentOf(numbering, partition.free, k, one_sided));
    }
    if (one_sided.empty()) return partition;
    for (int32_t number : one_sided) partition.free[static_cast<size_t>(number)] = false;
  }
}

void CombineSegments(const Numbering& numbering, Partition& partition) {
  constexpr int64_t kLeastSlices = 4;
  const Contraction contraction(numbering, partition.free);
  for (Segment& segment : partition.segments) {
    const Claim& claim = numbering.claims[segment.claim];
    const Shape& shape = numbering.TypeOf(claim.representative).shape;
    if (segment.representative_is_free || numbering.TypeOf(claim.member).shape != shape) continue;
    double most = 0;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (shape[axis] < kLeastSlices) continue;
      const auto wanted = contraction.Prepare(claim.representative, axis);
      const auto found = contraction.Prepare(claim.member, axis);
      if (!wanted.has_value() || !found.has_value() || wanted->saved + found->saved <= most)
        continue;
      most = wanted->saved + found->saved;
      segment.combined_axis = static_cast<int>(axis);
    }
  }
}

absl::StatusOr<std::vector<Mismatch>> TestSegments(
    const Numbering& numbering, const Partition& partition, const Draw& draw, WeightMode weights,
    const Deadline& deadline, const std::function<void(int32_t, const FieldValue&)>& visit) {
  Walk walk(numbering, partition, draw, weights, visit);
  std::vector<Mismatch> mismatches;
  for (size_t k = 0; k < partition.segments.size(); ++k) {
    MENDEL_ASSIGN_OR_RETURN(int64_t element, walk.Test(k, deadline));
    if (element < 0) continue;
    if (partition.segments[k].combined_axis >= 0) {
      Partition alone{partition.free, {partition.segments[k]}};
      alone.segments[0].combined_axis = -1;
      MENDEL_ASSIGN_OR_RETURN(element,
                              Walk(numbering, alone, draw, weights, nullptr).Test(0, deadline));
      MENDEL_CHECK(element >= 0);  // equal elements have equal combinations
    }
    mismatches.push_back({k, element});
  }
  return mismatches;
}

}  // namespace mendel
