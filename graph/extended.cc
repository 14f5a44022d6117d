#include "graph/extended.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "graph/arithmetic.h"

namespace mendel {
namespace {

/// The id of every number but zero: numbers are its multiples.
constexpr uint64_t kOne = 0x9e3779b97f4a7c15;

constexpr bool IsInfinity(Kinds kind) {
  return kind == kMinusInfinityKind || kind == kPlusInfinityKind;
}
constexpr bool IsBelowZero(Kinds kind) {
  return kind == kNegativeKind || kind == kMinusInfinityKind;
}

constexpr Kinds SumOfClasses(Kinds a, Kinds b) {
  if (a == kNaNKind || b == kNaNKind) return kNaNKind;
  if (IsInfinity(a)) return IsInfinity(b) && a != b ? kNaNKind : a;
  if (IsInfinity(b) || a == kZeroKind) return b;
  if (b == kZeroKind || a == b) return a;
  return kFiniteKinds;
}

constexpr Kinds ProductOfClasses(Kinds a, Kinds b) {
  if (a == kNaNKind || b == kNaNKind) return kNaNKind;
  const bool infinite = IsInfinity(a) || IsInfinity(b);
  if (a == kZeroKind || b == kZeroKind) return infinite ? kNaNKind : kZeroKind;
  const bool negative = IsBelowZero(a) != IsBelowZero(b);
  if (infinite) return negative ? kMinusInfinityKind : kPlusInfinityKind;
  return negative ? kNegativeKind : kPositiveKind;
}

constexpr Kinds QuotientOfClasses(Kinds a, Kinds b) {
  if (a == kNaNKind || b == kNaNKind) return kNaNKind;
  if (IsInfinity(b)) return IsInfinity(a) ? kNaNKind : kZeroKind;
  if (b != kZeroKind) return ProductOfClasses(a, b);
  return a == kZeroKind ? kNaNKind : Kinds{kMinusInfinityKind | kPlusInfinityKind};
}

using KindTable = std::array<std::array<Kinds, 1 << kKindClasses>, 1 << kKindClasses>;

/// All results of `Of` on members of two sets. A function of its own, since g++ would evaluate a
/// lambda here at compile time.
template <Kinds (*Of)(Kinds, Kinds)>
KindTable MakeTable() {
  KindTable all{};
  for (size_t a = 0; a < all.size(); ++a) {
    for (size_t b = 0; b < all.size(); ++b) {
      for (int i = 0; i < kKindClasses; ++i) {
        for (int j = 0; j < kKindClasses; ++j) {
          if ((a >> i & 1) != 0 && (b >> j & 1) != 0)
            all[a][b] |= Of(static_cast<Kinds>(1 << i), static_cast<Kinds>(1 << j));
        }
      }
    }
  }
  return all;
}

template <Kinds (*Of)(Kinds, Kinds)>
const KindTable& TableOf() {
  static const auto* const table = new KindTable(MakeTable<Of>());
  return *table;
}

uint64_t Mixed(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9;
  x ^= x >> 27;
  x *= 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

int32_t UnionOf(int32_t a, int32_t b) {
  if (a == b || b == 0) return a;
  return a == 0 ? b : ExtendedScope::Current().Union(a, b);
}

/// Zero times t is NaN where t is infinite, so that t + 0 t is not the value t.
uint64_t SummandId(const Extended& a) {
  if (a.id != 0 || a.events == 0) return ScaledId(a);
  const auto events = static_cast<uint64_t>(a.events);
  return ExtendedId("zero where defined", {&events, 1});
}

bool IsNumber(const Extended& a) { return a.id == kOne && a.events == 0; }

/// The result is a number that a double holds, and not far from the others.
bool IsExact(double result, double residue) {
  return std::isfinite(result) && std::abs(result) > 0x1p-900 && residue == 0;
}

/// `a` times a number, the classes apart.
Extended Rescaled(const Extended& a, double scale) {
  return {a.id, a.id == 0 ? 1 : scale, a.events, a.kinds};
}

bool IsNeverZero(const Extended& a) { return a.events == 0 && (a.kinds & kZeroKind) == 0; }

/// The sign of a finite number that is never zero is known.
bool HasKnownSign(const Extended& a) {
  return a.IsFinite() && (a.kinds == kPositiveKind || a.kinds == kNegativeKind);
}

/// Numbers that cancel leave +0, so a sum is -0 where both terms are.
uint64_t ZeroSignOfSum(const Extended& a, const Extended& b) {
  const auto is_neutral = [](const Extended& x) {
    return x.id == 0 && (x.zero_sign == Extended::kSignOfId || x.zero_sign == Extended::kMinus);
  };
  if (is_neutral(a)) return b.zero_sign;
  if (is_neutral(b)) return a.zero_sign;
  if (IsNeverZero(a) || IsNeverZero(b)) return Extended::kPlus;
  if (a.zero_sign == Extended::kPlus || b.zero_sign == Extended::kPlus) return Extended::kPlus;
  return a.zero_sign == b.zero_sign ? a.zero_sign : a.zero_sign + b.zero_sign;
}

uint64_t ZeroSignOfProduct(const Extended& a, const Extended& b) {
  if (HasKnownSign(a)) return b.zero_sign ^ SignId(a);
  if (HasKnownSign(b)) return a.zero_sign ^ SignId(b);
  return SignId(a) ^ SignId(b);
}

/// The sign of an infinity is the formal value's, zeros being +0, but for ids that add to it. A
/// finite factor has the sign of its formal value.
uint64_t InfinitySignOfProduct(const Extended& a, const Extended& b) {
  const bool square = a.id == b.id && a.infinity_sign == b.infinity_sign;
  return square ? Extended::kPlus : SignOfEither(a.infinity_sign, b.infinity_sign);
}

uint64_t InfinitySignOfQuotient(const Extended& a, const Extended& b) {
  if (IsNeverZero(b)) return a.infinity_sign;
  const uint64_t zero = b.zero_sign ^ (b.scale < 0 ? Extended::kMinus : Extended::kPlus);
  return SignOfEither(a.infinity_sign, zero);
}

/// The formal value of a product, without events and classes.
Extended ProductValue(const Extended& a, const Extended& b) {
  if (a.id == 0 || b.id == 0) return {};
  const double scale = a.scale * b.scale;
  const bool exact = IsExact(scale, std::fma(a.scale, b.scale, -scale));
  if (exact && IsNumber(a)) return Rescaled(b, scale);
  if (exact && IsNumber(b)) return Rescaled(a, scale);
  const uint64_t x = exact ? a.id : ScaledId(a), y = exact ? b.id : ScaledId(b);
  const std::array<uint64_t, 2> words = {std::min(x, y), std::max(x, y)};
  return {ExtendedId(exact ? "*" : "inexact *", words), exact ? scale : 1};
}

Extended QuotientValue(const Extended& a, const Extended& b) {
  if (a.id == 0) return {};
  const double scale = a.scale / b.scale;
  // The residue of a tiny dividend may vanish although the quotient is rounded.
  const bool exact = b.id != 0 && std::abs(a.scale) > 0x1p-900 &&
                     IsExact(scale, std::fma(scale, b.scale, -a.scale));
  if (exact && IsNumber(b)) return Rescaled(a, scale);
  // x / y is x times 1 / y.
  const uint64_t divisor = exact ? b.id : ScaledId(b);
  const Extended inverse{ExtendedId(exact ? "/" : "inexact /", {&divisor, 1})};
  if (exact && IsNumber(a)) return Rescaled(inverse, scale);
  const uint64_t x = exact ? a.id : ScaledId(a);
  const std::array<uint64_t, 2> words = {std::min(x, inverse.id), std::max(x, inverse.id)};
  return {ExtendedId(exact ? "*" : "inexact *", words), exact ? scale : 1};
}

Kinds ProductKinds(const Extended& a, const Extended& b) {
  const Kinds kinds = TableOf<&ProductOfClasses>()[a.kinds][b.kinds];
  const bool square = a == b && a.IsFinite() && b.IsFinite();
  return square ? kinds & static_cast<Kinds>(~kNegativeKind) : kinds;
}

}  // namespace

Kinds KindOf(double value) {
  if (std::isnan(value)) return kNaNKind;
  if (std::isinf(value)) return value > 0 ? kPlusInfinityKind : kMinusInfinityKind;
  if (value == 0) return kZeroKind;
  return value > 0 ? kPositiveKind : kNegativeKind;
}

uint64_t ExtendedId(std::string_view name, std::span<const uint64_t> words) {
  uint64_t id = Mixed(name.size() + 0x9e3779b97f4a7c15);
  for (const char c : name) id = Mixed(id * 0x100000001b3 + static_cast<unsigned char>(c));
  for (const uint64_t word : words) id = Mixed(id * 0xda942042e4dd58b5 + word + 1);
  return id == 0 ? 1 : id;
}

Extended ExtendedLiteral(double exact) {
  if (exact == 0) return {.zero_sign = std::signbit(exact) ? Extended::kMinus : Extended::kPlus};
  const uint64_t bits = std::bit_cast<uint64_t>(exact);
  if (!std::isfinite(exact)) return {ExtendedId("nonfinite", {&bits, 1}), 1, 0, KindOf(exact)};
  return {kOne, exact, 0, KindOf(exact)};
}

uint64_t ScaledId(const Extended& a) {
  if (a.scale == 1) return a.id;
  const std::array<uint64_t, 2> words = {a.id, std::bit_cast<uint64_t>(a.scale)};
  return ExtendedId("scaled", words);
}

Extended ExtendedInteger(int64_t value) {
  const auto rounded = static_cast<double>(value);
  if (std::abs(rounded) < 0x1p53) return ExtendedLiteral(rounded);
  const auto bits = static_cast<uint64_t>(value);
  return {ExtendedId("integer", {&bits, 1}), 1, 0, KindOf(rounded)};
}

uint64_t Token(const Extended& a) {
  const std::array<uint64_t, 3> words = {ScaledId(a), static_cast<uint64_t>(a.events), a.kinds};
  return ExtendedId("value", words);
}

uint64_t SignId(const Extended& a) {
  constexpr Kinds kBelow = kNegativeKind | kMinusInfinityKind | kNaNKind;
  constexpr Kinds kAbove = kPositiveKind | kPlusInfinityKind | kNaNKind;
  if (a.id == 0 && a.events == 0) return a.zero_sign;
  const bool zero = a.events != 0 || (a.kinds & kZeroKind) != 0;
  if (a.events == 0 && (a.kinds & kBelow) == 0 && (!zero || a.zero_sign == Extended::kPlus))
    return Extended::kPlus;
  if (a.events == 0 && (a.kinds & kAbove) == 0 && (!zero || a.zero_sign == Extended::kMinus))
    return Extended::kMinus;
  const uint64_t outer = a.scale < 0 ? Extended::kMinus : Extended::kPlus;
  const uint64_t zero_and_infinity =
      Mixed((a.zero_sign ^ outer) + 0xda942042e4dd58b5 * a.infinity_sign);
  return Mixed(a.id ^ zero_and_infinity) ^ outer;
}

uint64_t SignOfEither(uint64_t a, uint64_t b) {
  if (a == b || b == Extended::kPlus) return a;
  if (a == Extended::kPlus) return b;
  const std::array<uint64_t, 2> words = {std::min(a, b), std::max(a, b)};
  return ExtendedId("one of the signs", words);
}

Extended WithEventWhereUndefined(Extended value) {
  if ((value.kinds & kFiniteKinds) == 0 || (value.kinds & kNonFiniteKinds) == 0) return value;
  value.to_infinity = value.to_infinity || (value.kinds & ~(kFiniteKinds | kNaNKind)) != 0;
  const uint64_t token = Token(value);
  value.events =
      UnionOf(value.events, ExtendedScope::Current().Event(ExtendedId("undefined", {&token, 1})));
  value.kinds &= kFiniteKinds;
  return value;
}

Extended operator+(const Extended& a, const Extended& b) {
  Extended sum{SummandId(a) + SummandId(b)};
  if (a.id == 0 && a.events == 0) sum = b;
  if (b.id == 0 && b.events == 0) sum = a;
  sum.events = UnionOf(a.events, b.events);
  sum.kinds = TableOf<&SumOfClasses>()[a.kinds][b.kinds];
  sum.zero_sign = ZeroSignOfSum(a, b);
  sum.infinity_sign = SignOfEither(a.infinity_sign, b.infinity_sign);
  sum.to_infinity = a.to_infinity || b.to_infinity;
  return WithEventWhereUndefined(sum);
}

Extended operator-(const Extended& a) {
  Kinds kinds = a.kinds & (kZeroKind | kNaNKind);
  if ((a.kinds & kNegativeKind) != 0) kinds |= kPositiveKind;
  if ((a.kinds & kPositiveKind) != 0) kinds |= kNegativeKind;
  if ((a.kinds & kMinusInfinityKind) != 0) kinds |= kPlusInfinityKind;
  if ((a.kinds & kPlusInfinityKind) != 0) kinds |= kMinusInfinityKind;
  return {a.id,         a.id == 0 ? 1 : -a.scale,       a.events,
          kinds,        a.zero_sign ^ Extended::kMinus, a.infinity_sign,
          a.to_infinity};
}

Extended operator-(const Extended& a, const Extended& b) { return a + -b; }

Extended operator*(const Extended& a, const Extended& b) {
  Extended product = ProductValue(a, b);
  product.events = UnionOf(a.events, b.events);
  product.kinds = ProductKinds(a, b);
  product.zero_sign = ZeroSignOfProduct(a, b);
  product.infinity_sign = InfinitySignOfProduct(a, b);
  product.to_infinity = a.to_infinity || b.to_infinity;
  return WithEventWhereUndefined(product);
}

Extended operator/(const Extended& a, const Extended& b) {
  EventTable& table = ExtendedScope::Current();
  Extended quotient = QuotientValue(a, b);
  quotient.events = a.events;
  quotient.zero_sign = HasKnownSign(b) ? a.zero_sign ^ SignId(b) : SignId(a) ^ SignId(b);
  quotient.infinity_sign = InfinitySignOfQuotient(a, b);
  quotient.to_infinity = a.to_infinity;
  Kinds divisor = b.kinds;
  if (b.events != 0) {
    if (b.to_infinity) table.NoteAbsorbed();
    const uint64_t token = Token(b);
    quotient.events = UnionOf(quotient.events, table.Event(ExtendedId("denominator", {&token, 1})));
  }
  if ((divisor & kZeroKind) != 0 && divisor != kZeroKind) {
    const uint64_t operand = table.ZeroAlias(b.id);
    quotient.events = UnionOf(quotient.events, table.Event(ExtendedId("zero", {&operand, 1})));
    divisor &= static_cast<Kinds>(~kZeroKind);
    quotient.to_infinity = true;
  }
  quotient.kinds = TableOf<&QuotientOfClasses>()[a.kinds][divisor];
  return WithEventWhereUndefined(quotient);
}

EventTable::EventTable(Purpose purpose) : purpose_(purpose), sets_(1) { set_numbers_[{}] = 0; }

int32_t EventTable::InternItem(Item item) {
  const auto [it, is_new] = item_numbers_.try_emplace(item, static_cast<int32_t>(items_.size()));
  if (is_new) items_.push_back(std::move(item));
  return it->second;
}

int32_t EventTable::Intern(Set set) {
  const auto [it, is_new] = set_numbers_.try_emplace(set, static_cast<int32_t>(sets_.size()));
  if (is_new) {
    entries_ += set.size();
    sets_.push_back(std::move(set));
  }
  return it->second;
}

int32_t EventTable::Event(uint64_t id) {
  const std::lock_guard lock(mutex_);
  return Intern({InternItem({id, {}})});
}

int32_t EventTable::Union(int32_t a, int32_t b) {
  const std::lock_guard lock(mutex_);
  const std::pair key(std::min(a, b), std::max(a, b));
  const auto known = unions_.find(key);
  if (known != unions_.end()) return known->second;
  if (entries_ > kMaxEntries) return a;
  const Set& x = sets_[static_cast<size_t>(a)];
  const Set& y = sets_[static_cast<size_t>(b)];
  Set both;
  std::set_union(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(both));
  return unions_[key] = Intern(std::move(both));
}

int32_t EventTable::Guarded(int32_t set, uint64_t condition, bool holds) {
  const std::lock_guard lock(mutex_);
  const uint64_t guard = (condition & ~uint64_t{1}) | (holds ? 1 : 0);
  Set guarded;
  for (const int32_t number : Set(sets_[static_cast<size_t>(set)])) {
    Item item = items_[static_cast<size_t>(number)];
    const auto at = std::lower_bound(item.guards.begin(), item.guards.end(), guard);
    if (at == item.guards.end() || *at != guard) item.guards.insert(at, guard);
    guarded.push_back(InternItem(std::move(item)));
  }
  std::sort(guarded.begin(), guarded.end());
  return Intern(std::move(guarded));
}

bool EventTable::Covers(int32_t whole, int32_t part) {
  if (part == 0 || whole == part) return true;
  const std::lock_guard lock(mutex_);
  const auto [it, is_new] = covers_.try_emplace({whole, part}, true);
  if (!is_new) return it->second;
  std::map<uint64_t, std::vector<const Guards*>> guards_of;
  for (const int32_t number : sets_[static_cast<size_t>(whole)]) {
    const Item& item = items_[static_cast<size_t>(number)];
    guards_of[item.id].push_back(&item.guards);
  }
  const Set& wanted = sets_[static_cast<size_t>(part)];
  return it->second = std::all_of(wanted.begin(), wanted.end(), [&](int32_t number) {
           const Item& item = items_[static_cast<size_t>(number)];
           const auto& known = guards_of[item.id];
           return std::any_of(known.begin(), known.end(), [&](const Guards* guards) {
             return std::includes(item.guards.begin(), item.guards.end(), guards->begin(),
                                  guards->end());
           });
         });
}

void EventTable::SetZeroAlias(uint64_t id, uint64_t same) {
  const std::lock_guard lock(mutex_);
  zero_aliases_[id] = same;
}

uint64_t EventTable::ZeroAlias(uint64_t id) const {
  const std::lock_guard lock(mutex_);
  const auto it = zero_aliases_.find(id);
  return it == zero_aliases_.end() ? id : it->second;
}

bool EventTable::full() const {
  const std::lock_guard lock(mutex_);
  return entries_ > kMaxEntries;
}

}  // namespace mendel
