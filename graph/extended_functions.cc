// The table of all scalar functions on abstract elements, from names to classes.
//
// A name has one meaning in the whole graph language (graph/functions.h), so the table needs no
// operator. A function that is not in the table may be undefined anywhere: it is an event.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/arithmetic.h"
#include "graph/extended.h"

namespace mendel {
namespace {

using Arguments = std::span<const Extended>;
using CallParameters = std::span<const double>;

/// Finite arguments that make a function undefined. kFar: some that no class distinguishes.
enum class Undefined : uint8_t { kNowhere, kBelowZero, kZeroAndBelow, kZero, kFar };

struct AbstractFunction {
  Kinds range = kFiniteKinds;  ///< classes of its values where it is defined and finite
  Undefined undefined = Undefined::kNowhere;
  size_t argument = 0;  ///< the one that makes it so
  /// Classes for classes of the arguments. Null: `range` for finite arguments, and the function's
  /// values at infinities and NaN (one argument).
  Kinds (*kinds)(std::span<const Kinds> arguments) = nullptr;
};

constexpr double kLimit = std::numeric_limits<double>::infinity();

/// Classes of f(a, b) over all members of two sets.
template <Kinds (*Of)(Kinds, Kinds)>
Kinds OfPairs(std::span<const Kinds> sets) {
  Kinds result = sets[0];
  for (size_t k = 1; k < sets.size(); ++k) {
    Kinds next = 0;
    for (int i = 0; i < kKindClasses; ++i) {
      for (int j = 0; j < kKindClasses; ++j) {
        if ((result >> i & 1) != 0 && (sets[k] >> j & 1) != 0)
          next |= Of(static_cast<Kinds>(1 << i), static_cast<Kinds>(1 << j));
      }
    }
    result = next;
  }
  return result;
}

/// Position of a class on the line; NaN has none.
constexpr int Rank(Kinds kind) {
  constexpr std::array<Kinds, 5> kLine = {kMinusInfinityKind, kNegativeKind, kZeroKind,
                                          kPositiveKind, kPlusInfinityKind};
  for (int rank = 0; rank < 5; ++rank) {
    if (kLine[static_cast<size_t>(rank)] == kind) return rank;
  }
  return -1;
}

template <bool kLargest>
Kinds ExtremeOf(Kinds a, Kinds b) {
  if (a == kNaNKind || b == kNaNKind) return kNaNKind;
  return (Rank(a) > Rank(b)) == kLargest ? a : b;
}

template <bool kOrEqual>
Kinds LessOf(Kinds a, Kinds b) {
  if (a == kNaNKind || b == kNaNKind) return kZeroKind;
  if (Rank(a) != Rank(b)) return Rank(a) < Rank(b) ? kPositiveKind : kZeroKind;
  const bool several = a == kNegativeKind || a == kPositiveKind;
  return several ? kNotNegativeKinds : (kOrEqual ? kPositiveKind : kZeroKind);
}

Kinds EqualOf(Kinds a, Kinds b) {
  if (a == kNaNKind || b == kNaNKind || a != b) return kZeroKind;
  return a == kNegativeKind || a == kPositiveKind ? kNotNegativeKinds : kPositiveKind;
}

/// 1 for members of `wanted`.
template <Kinds kWanted>
Kinds IsIn(std::span<const Kinds> sets) {
  return static_cast<Kinds>(((sets[0] & kWanted) != 0 ? kPositiveKind : 0) |
                            ((sets[0] & ~kWanted) != 0 ? kZeroKind : 0));
}

const std::unordered_map<std::string_view, AbstractFunction>& AbstractFunctions() {
  constexpr AbstractFunction kTotal;
  constexpr AbstractFunction kPositive{.range = kPositiveKind};
  constexpr AbstractFunction kNotNegative{.range = kNotNegativeKinds};
  constexpr AbstractFunction kFar{.undefined = Undefined::kFar};
  static const std::unordered_map<std::string_view, AbstractFunction> table = {
      {"Abs", kNotNegative},
      {"Acos", kFar},
      {"Acosh", kFar},
      {"Asin", kFar},
      {"Asinh", kTotal},
      {"Atan", kTotal},
      {"Atanh", kFar},
      {"BitShiftLeft", kTotal},
      {"BitShiftRight", kTotal},
      {"BitShiftRightU64", kTotal},
      {"BitwiseAnd", kTotal},
      {"BitwiseOr", kTotal},
      {"BitwiseXor", kTotal},
      {"Cast", kTotal},
      {"Ceil", kTotal},
      {"Celu", kTotal},
      {"Clip", kTotal},
      {"Cos", kTotal},
      {"Cosh", kPositive},
      {"DivInteger", kTotal},
      {"Elu", kTotal},
      {"Equal", {.range = kNotNegativeKinds, .kinds = &OfPairs<&EqualOf>}},
      {"Erf", kTotal},
      {"Exp", kPositive},
      {"Floor", kTotal},
      {"Gelu", kTotal},
      {"HardSigmoid", kNotNegative},
      {"HardSwish", kTotal},
      {"IsInf", {.kinds = &IsIn<kMinusInfinityKind | kPlusInfinityKind>}},
      {"IsNaN", {.kinds = &IsIn<kNaNKind>}},
      {"LeakyRelu", kTotal},
      {"Less", {.range = kNotNegativeKinds, .kinds = &OfPairs<&LessOf<false>>}},
      {"LessOrEqual", {.range = kNotNegativeKinds, .kinds = &OfPairs<&LessOf<true>>}},
      {"Log", {.undefined = Undefined::kZeroAndBelow}},
      {"Max", {.kinds = &OfPairs<&ExtremeOf<true>>}},
      {"Min", {.kinds = &OfPairs<&ExtremeOf<false>>}},
      {"Mish", kTotal},
      {"Mod", {.undefined = Undefined::kZero, .argument = 1}},
      {"Pow", kFar},
      {"PowInteger", kTotal},
      {"Relu", kNotNegative},
      {"Round", kTotal},
      {"Rsqrt", {.range = kPositiveKind, .undefined = Undefined::kZeroAndBelow}},
      {"Selu", kTotal},
      {"Sigmoid", kPositive},
      {"Sign", kTotal},
      {"Sin", kTotal},
      {"Sinh", kTotal},
      {"Softplus", kPositive},
      {"Softsign", kTotal},
      {"Sqrt", {.range = kNotNegativeKinds, .undefined = Undefined::kBelowZero}},
      {"Tan", kFar},
      {"Tanh", kTotal},
      {"ThresholdedRelu", kTotal},
  };
  return table;
}

uint64_t CallId(std::string_view name, bool symmetric, Arguments x, CallParameters parameters) {
  std::vector<uint64_t> words;
  for (const Extended& v : x) words.push_back(Token(v));
  if (symmetric) {
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
  }
  for (const double parameter : parameters) words.push_back(std::bit_cast<uint64_t>(parameter));
  return ExtendedId(name, words);
}

/// The whole number that an exponent is known to be.
std::optional<int> WholeExponent(const Extended& x) {
  constexpr double kLargest = 64;
  if (x.events != 0) return std::nullopt;
  if (x == Extended{}) return 0;
  const bool whole = x == ExtendedLiteral(x.scale) && std::abs(x.scale) <= kLargest &&
                     x.scale == std::floor(x.scale);
  return whole ? std::optional(static_cast<int>(x.scale)) : std::nullopt;
}

int32_t EventOf(std::string_view what, uint64_t id) {
  return ExtendedScope::Current().Event(ExtendedId(what, {&id, 1}));
}

/// Events of a finite argument outside the function's domain.
int32_t DomainEvents(const AbstractFunction& f, const Extended& x, uint64_t call) {
  EventTable& table = ExtendedScope::Current();
  int32_t events = 0;
  if (f.undefined == Undefined::kFar) return EventOf("domain", call);
  const bool below =
      f.undefined == Undefined::kBelowZero || f.undefined == Undefined::kZeroAndBelow;
  if (below && (x.kinds & kNegativeKind) != 0)
    events = EventOf("negative", x.scale < 0 ? ~x.id : x.id);
  const bool zero = f.undefined == Undefined::kZeroAndBelow || f.undefined == Undefined::kZero;
  if (zero && (x.kinds & kZeroKind) != 0)
    events = table.Union(events, EventOf("zero", table.ZeroAlias(x.id)));
  return events;
}

/// x^y. Its events occur exactly where it is no finite number: the other program may share them.
std::optional<AbstractFunction> PowerOf(const Extended& x, const Extended& y) {
  if (const std::optional<int> whole = WholeExponent(y); whole.has_value()) {
    const Kinds range =
        *whole % 2 != 0 ? kFiniteKinds : (*whole < 0 ? kPositiveKind : kNotNegativeKinds);
    return AbstractFunction{.range = range,
                            .undefined = *whole < 0 ? Undefined::kZero : Undefined::kNowhere};
  }
  if ((y.kinds & kNonFiniteKinds) != 0) return std::nullopt;
  const bool positive = (x.kinds & ~kPositiveKind) == 0;
  if (positive) return AbstractFunction{.range = kPositiveKind};
  const bool broken =
      y.events == 0 && y == ExtendedLiteral(y.scale) && y.scale != std::floor(y.scale);
  if (!broken) return AbstractFunction{.undefined = Undefined::kFar};
  if (y.scale > 0)
    return AbstractFunction{.range = kNotNegativeKinds, .undefined = Undefined::kBelowZero};
  return AbstractFunction{.range = kPositiveKind, .undefined = Undefined::kZeroAndBelow};
}

bool AreFinite(CallParameters parameters) {
  return std::all_of(parameters.begin(), parameters.end(),
                     [](double v) { return std::isfinite(v); });
}

/// f(x) is not -0 anywhere.
bool IsNeverMinusZero(const AbstractFunction& of, std::string_view name) {
  if (of.range == kPositiveKind || name == "Abs") return true;
  return false;
}

/// Identifies the signs of the arguments, in any order where the function is symmetric.
uint64_t SignsOf(bool symmetric, Arguments x, uint64_t (*sign)(const Extended&)) {
  uint64_t signs = 0;
  for (size_t k = 0; k < x.size(); ++k) {
    const std::array<uint64_t, 3> words = {symmetric ? 0 : k, Token(x[k]), sign(x[k])};
    signs += ExtendedId("sign of argument", words);
  }
  return signs;
}

uint64_t InfinitySign(const Extended& a) { return a.infinity_sign; }

/// f(x) may be a finite number where x, which is undefined, is none.
bool MayAbsorb(std::string_view name, Arguments x) {
  constexpr std::array<std::string_view, 3> kStrict = {"Abs", "Log", "Sqrt"};
  constexpr std::array<std::string_view, 6> kOfNaN = {"Cast",  "Equal", "IsInf",
                                                      "IsNaN", "Less",  "LessOrEqual"};
  if (std::find(kOfNaN.begin(), kOfNaN.end(), name) != kOfNaN.end()) return true;
  if (std::find(kStrict.begin(), kStrict.end(), name) != kStrict.end()) return false;
  return std::any_of(x.begin(), x.end(), [](const Extended& v) { return v.to_infinity; });
}

/// f is a number although argument `k` is NaN.
bool AbsorbsNaN(const ScalarFunction& f, size_t k, Arguments x, CallParameters parameters) {
  const auto known = AbstractFunctions().find(f.name);
  if (known == AbstractFunctions().end()) return true;
  if (known->second.kinds != nullptr) {
    std::vector<Kinds> sets(x.size(), kFiniteKinds | kNonFiniteKinds);
    sets[k] = kNaNKind;
    return known->second.kinds(sets) != kNaNKind;
  }
  if (x.size() != 1) return true;
  const double nan = std::nan("");
  return !std::isnan(f.real({&nan, 1}, parameters));
}

bool AbsorbsSomeNaN(const ScalarFunction& f, Arguments x, CallParameters parameters) {
  for (size_t k = 0; k < x.size(); ++k) {
    if ((x[k].kinds & kNaNKind) != 0 && AbsorbsNaN(f, k, x, parameters)) return true;
  }
  return false;
}

/// The function may be an infinity where it is undefined.
bool HasPoles(const AbstractFunction& of, std::string_view name) {
  if (of.undefined == Undefined::kFar) return name != "Acos" && name != "Acosh" && name != "Asin";
  return of.undefined != Undefined::kNowhere && of.undefined != Undefined::kBelowZero;
}

/// A result of which no more is known than that equal arguments give equal ones.
Extended UnknownResult(std::string_view event, uint64_t id, const ScalarFunction& f, Arguments x) {
  const std::array<uint64_t, 2> words = {id, SignsOf(f.symmetric, x, &SignId)};
  Extended result{id, 1, EventOf(event, id), kFiniteKinds, ExtendedId("sign of zero", words)};
  result.to_infinity = true;
  return result;
}

uint64_t ZeroSignOfCall(const AbstractFunction& of, const ScalarFunction& f, Arguments x,
                        uint64_t id) {
  if (IsNeverMinusZero(of, f.name)) return Extended::kPlus;
  if (f.name == "Sqrt") return x[0].zero_sign;
  const std::array<uint64_t, 2> words = {id, SignsOf(f.symmetric, x, &SignId)};
  return ExtendedId("sign of zero", words);
}

/// A zero argument gives an infinity of its sign.
uint64_t InfinitySignOfCall(std::string_view name, Arguments x) {
  const bool inverts = (name == "Pow" || name == "Rsqrt") && (x[0].kinds & kZeroKind) != 0;
  if (!inverts) return Extended::kPlus;
  return x[0].zero_sign ^ (x[0].scale < 0 ? Extended::kMinus : Extended::kPlus);
}

/// An element whose formal value is that of both.
Extended WithSignOfEither(Extended a, const Extended& b, uint64_t choice) {
  if (a.zero_sign != b.zero_sign) {
    const std::array<uint64_t, 3> words = {choice, a.zero_sign, b.zero_sign};
    a.zero_sign = ExtendedId("sign of choice", words);
  }
  if (a.infinity_sign != b.infinity_sign) {
    const std::array<uint64_t, 3> words = {choice, a.infinity_sign, b.infinity_sign};
    a.infinity_sign = ExtendedId("sign of choice", words);
  }
  a.to_infinity = a.to_infinity || b.to_infinity;
  return a;
}

/// The first argument is negative for every input, where the function is not defined.
bool IsOutside(const AbstractFunction& of, const Extended& x) {
  const bool below =
      of.undefined == Undefined::kBelowZero || of.undefined == Undefined::kZeroAndBelow;
  return below && x.kinds == kNegativeKind;
}

Kinds KindsOf(const ScalarFunction& f, const AbstractFunction& of, Arguments x,
              CallParameters parameters) {
  std::vector<Kinds> sets;
  bool finite = true;
  for (const Extended& v : x) {
    sets.push_back(v.kinds);
    finite = finite && (v.kinds & kNonFiniteKinds) == 0;
  }
  if (x.empty()) return KindOf(f.real({}, parameters));
  if (of.kinds != nullptr) return of.kinds(sets);
  if (x.size() == 1 && x[0].kinds == kZeroKind) {
    const double zero = 0;
    return KindOf(f.real({&zero, 1}, parameters));
  }
  if (IsOutside(of, x[0])) return kNaNKind;
  if (finite) return of.range;
  if (x.size() != 1) return kFiniteKinds | kNonFiniteKinds;
  Kinds kinds = (x[0].kinds & kFiniteKinds) != 0 ? of.range : Kinds{0};
  const auto at = [&](double value) { kinds |= KindOf(f.real({&value, 1}, parameters)); };
  if ((x[0].kinds & kMinusInfinityKind) != 0) at(-kLimit);
  if ((x[0].kinds & kPlusInfinityKind) != 0) at(kLimit);
  if ((x[0].kinds & kNaNKind) != 0) at(std::nan(""));
  return kinds;
}

}  // namespace

Extended Arithmetic<Extended>::Call(const ScalarFunction& f, std::span<const Extended> x,
                                    std::span<const double> parameters) const {
  if (f.symmetric &&
      std::all_of(x.begin(), x.end(),
                  [&](const Extended& v) {
                    return v == x[0] && v.events == x[0].events && v.kinds == x[0].kinds;
                  }) &&
      !x.empty()) {
    Extended result = x[0];
    for (const Extended& v : x) result = WithSignOfEither(result, v, 0);
    return result;
  }
  uint64_t id = CallId(f.name, f.symmetric, x, parameters);
  if (std::any_of(x.begin(), x.end(),
                  [](const Extended& v) { return v.infinity_sign != Extended::kPlus; })) {
    const std::array<uint64_t, 2> words = {id, SignsOf(f.symmetric, x, &InfinitySign)};
    id = ExtendedId("by sign of zero", words);
    ExtendedScope::Current().NoteSignOfZero();
    EventTable& table = ExtendedScope::Current();
    table.NoteAbsorbed();
    if (AbsorbsSomeNaN(f, x, parameters)) table.NoteAbsorbedNaN();
    return UnknownResult("of undefined", id, f, x);
  }
  if (!ExtendedScope::Current().classes_only() && AbsorbsSomeNaN(f, x, parameters)) {
    ExtendedScope::Current().NoteAbsorbedNaN();
    return UnknownResult("of NaN", id, f, x);
  }
  // A function may absorb an undefined argument: relu(-inf) is 0. One event represents that.
  if (std::any_of(x.begin(), x.end(), [](const Extended& v) { return v.events != 0; })) {
    if (MayAbsorb(f.name, x)) ExtendedScope::Current().NoteAbsorbed();
    Extended result = UnknownResult("of undefined", id, f, x);
    // It is NaN at NaN; a defined argument may be a pole.
    const auto known = AbstractFunctions().find(f.name);
    const bool poles = known == AbstractFunctions().end() || HasPoles(known->second, f.name);
    result.to_infinity =
        poles || std::any_of(x.begin(), x.end(), [](const Extended& v) { return v.to_infinity; });
    return result;
  }
  // A function may absorb what is infinite for every input, too: log(0).
  if (std::any_of(x.begin(), x.end(), [](const Extended& v) { return !v.IsFinite(); }))
    ExtendedScope::Current().NoteAbsorbed();
  const auto known = AbstractFunctions().find(f.name);
  if (known == AbstractFunctions().end()) return UnknownResult("domain", id, f, x);
  std::optional<AbstractFunction> of = known->second;
  if (!x.empty() && f.name != "Clip" && !AreFinite(parameters))
    return UnknownResult("domain", id, f, x);
  if (f.name == "Pow") of = PowerOf(x[0], x[1]);
  if (!of.has_value()) return UnknownResult("domain", id, f, x);
  Extended result{id, 1, 0, KindsOf(f, *of, x, parameters)};
  if ((result.kinds & kFiniteKinds) != 0 && !x.empty() &&
      (x[of->argument].kinds & kFiniteKinds) != 0)
    result.events = DomainEvents(*of, x[of->argument], id);
  result.to_infinity = result.events != 0 && HasPoles(*of, f.name);
  result.zero_sign = ZeroSignOfCall(*of, f, x, id);
  result.infinity_sign = InfinitySignOfCall(f.name, x);
  if (f.name == "Sqrt") ExtendedScope::Current().SetZeroAlias(id, x[0].id);
  return WithEventWhereUndefined(result);
}

Extended Arithmetic<Extended>::Select(const Extended& condition, const Extended& yes,
                                      const Extended& no) const {
  if (condition.kinds == kPositiveKind && condition.events == 0) return yes;
  if (condition.kinds == kZeroKind && condition.events == 0) return no;
  if (Token(yes) == Token(no) && condition.events == 0)
    return WithSignOfEither(yes, no, Token(condition));
  const std::array<uint64_t, 3> words = {Token(condition), Token(yes), Token(no)};
  const uint64_t id = ExtendedId("Where", words);
  Extended result = WithSignOfEither(yes, no, Token(condition));
  result = {id, 1, 0, kFiniteKinds, result.zero_sign, result.infinity_sign};
  result.to_infinity = true;
  if (condition.events != 0) {
    ExtendedScope::Current().NoteAbsorbed();
    result.events = EventOf("of undefined", id);
    return result;
  }
  EventTable& table = ExtendedScope::Current();
  const auto side = [&](const Extended& value, bool holds) {
    int32_t events = value.events;
    // A side that is never finite makes the choice itself an event.
    if (value.IsNeverFinite()) events = EventOf("never finite", Token(value));
    return table.Guarded(events, words[0], holds);
  };
  result.kinds = yes.kinds | no.kinds;
  if (result.IsNeverFinite()) return result;
  result.kinds &= kFiniteKinds;
  result.events = table.Union(side(yes, true), side(no, false));
  return result;
}

}  // namespace mendel
