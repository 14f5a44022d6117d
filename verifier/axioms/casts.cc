// Casts that keep every number.

#include <array>
#include <optional>
#include <string>

#include "verifier/axioms/limits.h"
#include "verifier/axioms/rules.h"

namespace mendel {
namespace {

constexpr std::array<AxiomDescription, 2> kCastAxioms = {{
    {"cast round trip", "Cast(Cast(x, wide), narrow) = x; Cast(x, own dtype) = x",
     "The wide dtype contains every number of the narrow one; x, stored, cast or moved, is a "
     "number of its dtype."},
    {"index of another dtype", "Gather(x, Cast(i, i64)) = Gather(x, i), i of i32",
     "The cast keeps every number; an index counts as a number."},
}};

/// Bits of the integers that a dtype holds without gaps, without the sign.
int IntegerBits(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return 1;
    case DType::kI8:
      return 7;
    case DType::kU8:
    case DType::kBF16:
      return 8;
    case DType::kF8E4M3FN:
    case DType::kF8E4M3FNUZ:
      return 4;
    case DType::kF8E5M2:
    case DType::kF8E5M2FNUZ:
      return 3;
    case DType::kI16:
      return 15;
    case DType::kU16:
      return 16;
    case DType::kU32:
      return 32;
    case DType::kU64:
      return 64;
    case DType::kF16:
      return 11;
    case DType::kF32:
      return 24;
    case DType::kI32:
      return 31;
    case DType::kF64:
      return 53;
    case DType::kI64:
      return 63;
  }
  return 0;
}

bool Holds(DType wide, DType narrow) {
  if (wide == narrow) return true;
  if (IsFloat(narrow)) {
    if (!IsFloat(wide)) return false;
    return wide == DType::kF64 || (wide == DType::kF32 && narrow != DType::kF64);
  }
  if (wide == DType::kBool) return false;
  // Signed numbers need a signed type; -2^n is a number of every float that holds n bits and of
  // wider integers.
  const bool negative = narrow != DType::kBool && !IsUnsigned(narrow);
  if (negative && IsUnsigned(wide)) return false;
  return IntegerBits(narrow) <= IntegerBits(wide);
}

std::optional<ValueId> CastRoundTrip(Terms& t, ValueId v) {
  const ValueId inner = t.in(v, 0);
  if (t.dtype(inner) == t.dtype(v)) return inner;
  if (!t.Is(inner, "Cast")) return std::nullopt;
  const ValueId x = t.in(inner, 0);
  if (t.dtype(x) != t.dtype(v) || !Holds(t.dtype(inner), t.dtype(x)) || !HoldsItsDType(t, x))
    return std::nullopt;
  return x;
}

/// Gather and its kin take indices of both dtypes.
std::optional<ValueId> IndexOfAnotherDType(Terms& t, ValueId v) {
  const ValueId cast = t.in(v, 1);
  if (!t.Is(cast, "Cast") || t.dtype(cast) != DType::kI64) return std::nullopt;
  const ValueId x = t.in(v, 0), index = t.in(cast, 0);
  if (t.dtype(index) != DType::kI32) return std::nullopt;
  const Attributes attrs = t.node(v).attrs;
  return t.Op(std::string(t.node(v).op->name), {x, index}, attrs);
}

constexpr std::array<AxiomRule, 4> kCastRules = {{
    {"cast round trip", "Cast", &CastRoundTrip, Elements::kAny},
    {"index of another dtype", "Gather", &IndexOfAnotherDType, Elements::kAny, Domain::kAll},
    {"index of another dtype", "GatherElements", &IndexOfAnotherDType, Elements::kAny,
     Domain::kAll},
    {"index of another dtype", "GatherND", &IndexOfAnotherDType, Elements::kAny, Domain::kAll},
}};

}  // namespace

AxiomGroup CastAxioms() { return {kCastAxioms, kCastRules}; }

}  // namespace mendel
