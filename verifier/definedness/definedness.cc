#include "verifier/definedness/definedness.h"

#include <string>
#include <vector>

#include "base/status.h"
#include "graph/text.h"
#include "verifier/definedness/element_states.h"
#include "verifier/definedness/zero_signs.h"

namespace mendel {
namespace {

/// Readers of one may read the other: both are finite, or the same infinity or NaN, or undefined
/// for the same reason.
bool AreInterchangeable(const Extended& a, const Extended& b) {
  if (a.IsFinite() && b.IsFinite()) return true;
  if (a.infinity_sign != b.infinity_sign) return false;
  if (a.events == 0 && b.events == 0 && a.kinds == b.kinds)
    return (a.kinds & (a.kinds - 1)) == 0;  // one class
  return Token(a) == Token(b);
}

/// Wherever `known` is finite, `other` is.
bool IsDefinedWhere(const Extended& known, const Extended& other, EventTable& events) {
  if (known.IsNeverFinite() || other.IsNeverFinite()) return AreInterchangeable(known, other);
  return events.Covers(known.events, other.events);
}

/// The same expression of the same elements. Nothing else is known to be equal behind a function
/// that absorbs a NaN: formal values may have lost the NaN (inf - inf is 0 there).
bool IsSameExpression(const Extended& x, const Extended& y) {
  return (x.events == 0 && y.events == 0) || Token(x) == Token(y);
}

class Check {
 public:
  explicit Check(DefinednessQuery& query) : query_(query) {}

  absl::Status Run() {
    if (query_.absorbs != nullptr) *query_.absorbs = true;
    while (true) {
      const Numbering numbering =
          NumberValues(query_.original, query_.plan, query_.merges, query_.constants);
      if (numbering.claims.empty()) return absl::OkStatus();
      if (DropMergesOfZeros(numbering)) continue;
      ElementStates states(numbering);
      std::vector<int32_t> numbers;
      for (const Claim& claim : numbering.claims) {
        numbers.push_back(claim.representative);
        numbers.push_back(claim.member);
      }
      MENDEL_RETURN_IF_ERROR(states.Compute(numbers));
      if (DropMerges(numbering, states)) continue;
      if (query_.absorbs != nullptr) *query_.absorbs = states.events().absorbs();
      return CheckOutputs(numbering, states);
    }
  }

 private:
  /// Drops merges of values that are not interchangeable; false where there are none.
  bool DropMerges(const Numbering& numbering, const ElementStates& states) {
    bool dropped = false;
    for (const Claim& claim : numbering.claims) {
      if (!claim.output.empty()) continue;
      const ElementState& a = states.Of(claim.representative);
      const ElementState& b = states.Of(claim.member);
      if (a.plain && b.plain) continue;
      const int64_t element = FirstOther(numbering, claim, a, b, &AreInterchangeable);
      dropped = (element >= 0 && query_.merges.erase(claim.merge) > 0) || dropped;
    }
    return dropped;
  }

  /// Drops merges of values whose zeros may differ in sign, where that counts.
  bool DropMergesOfZeros(const Numbering& numbering) {
    bool dropped = false;
    for (const Origin& merge : MergesOfZeros(numbering))
      dropped = query_.merges.erase(merge) > 0 || dropped;
    return dropped;
  }

  absl::Status CheckOutputs(const Numbering& numbering, ElementStates& states) const {
    for (const Claim& claim : numbering.claims) {
      if (claim.output.empty()) continue;
      const ElementState& a = states.Of(claim.representative);
      const ElementState& b = states.Of(claim.member);
      if (a.plain && b.plain) continue;
      const auto holds = [&](const Extended& x, const Extended& y) {
        if (states.events().absorbs_nan() && !IsSameExpression(x, y)) return false;
        return IsDefinedWhere(x, y, states.events()) &&
               (!query_.both_directions || IsDefinedWhere(y, x, states.events()));
      };
      const int64_t element = FirstOther(numbering, claim, a, b, holds);
      if (element < 0) continue;
      return Unsupported("unproven: output '", claim.output, "' at ",
                         ElementString(numbering.TypeOf(claim.representative).shape, element),
                         " is not known to be defined for the same inputs in both programs",
                         states.events().reads_sign_of_zero() ? " and signs of zeros" : "");
    }
    return absl::OkStatus();
  }

  /// The first element for which `holds` is false, or -1.
  template <class Holds>
  static int64_t FirstOther(const Numbering& numbering, const Claim& claim, const ElementState& a,
                            const ElementState& b, const Holds& holds) {
    const Extended finite{1, 1, 0, kFiniteKinds};
    const Shape& shape = numbering.TypeOf(claim.representative).shape;
    const Shape& member_shape = numbering.TypeOf(claim.member).shape;
    for (int64_t i = 0; i < NumElements(shape); ++i) {
      const Extended& x = a.plain ? finite : ElementStates::At(a, shape, i);
      const Extended& y = b.plain ? finite : ElementStates::At(b, member_shape, i);
      if (!holds(x, y)) return i;
    }
    return -1;
  }

  DefinednessQuery& query_;
};

}  // namespace

absl::Status CheckDefinedness(DefinednessQuery query) { return Check(query).Run(); }

}  // namespace mendel
