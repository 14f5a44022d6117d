// An abstract element: the classes of extended real numbers that one element of a tensor may
// belong to, and the events under which it is no finite number at all.
//
// It is the sixth number system in which an operator's meaning is evaluated (graph/arithmetic.h).
// The classes follow the infinities and NaN that constants bring in: arithmetic is that of exact
// reals, so that finite numbers never overflow. An event stands for a condition on the inputs that
// makes a value undefined ("element 3 of the denominator is zero"): two programs that name the same
// event are undefined for the same inputs.
#ifndef MENDEL_GRAPH_EXTENDED_H_
#define MENDEL_GRAPH_EXTENDED_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace mendel {

/// A set of classes.
using Kinds = uint8_t;
inline constexpr int kKindClasses = 6;
inline constexpr Kinds kNegativeKind = 1;
inline constexpr Kinds kZeroKind = 2;
inline constexpr Kinds kPositiveKind = 4;
inline constexpr Kinds kMinusInfinityKind = 8;
inline constexpr Kinds kPlusInfinityKind = 16;
inline constexpr Kinds kNaNKind = 32;
inline constexpr Kinds kFiniteKinds = kNegativeKind | kZeroKind | kPositiveKind;
inline constexpr Kinds kNotNegativeKinds = kZeroKind | kPositiveKind;
inline constexpr Kinds kNonFiniteKinds = kMinusInfinityKind | kPlusInfinityKind | kNaNKind;

/// The class of one number.
Kinds KindOf(double value);

/// One element. `kinds` holds unless one of `events` occurs; then the element may be anything.
/// `id` and `scale` identify the formal value: where they are equal, values are equal, their events
/// included.
struct Extended {
  uint64_t id = 0;     ///< 0: the number zero
  double scale = 1;    ///< the value is that of `id` times this, which is not 0
  int32_t events = 0;  ///< a set of EventTable; 0: none
  Kinds kinds = kZeroKind;
  /// Identifies the sign that it has where it is zero: exact reals have one zero, but 1 / -0 is
  /// another infinity than 1 / 0. Signs are bits, and ids of signs add like these (^).
  uint64_t zero_sign = kSignOfId;
  /// Not kPlus: it may be an infinity that has the sign of a zero, which this identifies.
  uint64_t infinity_sign = kPlus;
  /// It may be an infinity where one of `events` occurs; otherwise it is NaN there.
  bool to_infinity = false;

  static constexpr uint64_t kPlus = 0;
  static constexpr uint64_t kMinus = 0x9e3779b97f4a7c15;
  /// The sign depends on `id` alone. A default zero is a sum of nothing yet.
  static constexpr uint64_t kSignOfId = 1;

  bool IsFinite() const { return events == 0 && (kinds & kNonFiniteKinds) == 0; }
  /// No input makes it a finite number.
  bool IsNeverFinite() const { return (kinds & kFiniteKinds) == 0; }
};

/// Events and sets of them, numbered. Thread-safe. At most kMaxEntries events in all sets.
class EventTable {
 public:
  static constexpr size_t kMaxEntries = size_t{1} << 24;
  /// Elements serve as formal values, or for their classes alone: nothing is then concluded from
  /// formal values. A function that absorbs a NaN has the class of its result there (no comparison
  /// of NaN holds) instead of an event.
  enum class Purpose : uint8_t { kFormalValues, kClasses };

  explicit EventTable(Purpose purpose = Purpose::kFormalValues);
  bool classes_only() const { return purpose_ == Purpose::kClasses; }
  /// The set of one event.
  int32_t Event(uint64_t id);
  int32_t Union(int32_t a, int32_t b);
  /// The set whose events count only where condition `condition` has the truth value `holds`.
  int32_t Guarded(int32_t set, uint64_t condition, bool holds);
  /// Whenever an event of `part` occurs, one of `whole` does.
  bool Covers(int32_t whole, int32_t part);

  /// A function read an infinity that has the sign of a zero.
  void NoteSignOfZero() { reads_sign_of_zero_ = true; }
  bool reads_sign_of_zero() const { return reads_sign_of_zero_; }

  /// A function, a quotient or a choice read a value that may be undefined, and may absorb it:
  /// relu(-inf) is 0, 1 / inf is 0, and no comparison of NaN is NaN.
  void NoteAbsorbed() { absorbs_ = true; }
  bool absorbs() const { return absorbs_; }

  /// A function read a NaN that it does not pass on: no comparison of NaN is NaN. The formal value
  /// of a NaN is no number, so formal equality proves nothing behind the function.
  void NoteAbsorbedNaN() { absorbs_nan_ = absorbs_ = true; }
  bool absorbs_nan() const { return absorbs_nan_; }

  /// The value `id` is zero exactly where `same` is.
  void SetZeroAlias(uint64_t id, uint64_t same);
  uint64_t ZeroAlias(uint64_t id) const;

  /// The table is full: its answers say nothing.
  bool full() const;

 private:
  using Guards = std::vector<uint64_t>;  ///< conditions with their truth value as lowest bit
  struct Item {
    uint64_t id = 0;
    Guards guards;
    auto operator<=>(const Item&) const = default;
  };
  using Set = std::vector<int32_t>;  ///< items, ascending

  int32_t Intern(Set set);
  int32_t InternItem(Item item);

  const Purpose purpose_;
  mutable std::mutex mutex_;
  std::map<Item, int32_t> item_numbers_;
  std::vector<Item> items_;
  std::map<Set, int32_t> set_numbers_;
  std::vector<Set> sets_;
  std::map<std::pair<int32_t, int32_t>, int32_t> unions_;
  std::map<std::pair<int32_t, int32_t>, bool> covers_;
  std::unordered_map<uint64_t, uint64_t> zero_aliases_;
  size_t entries_ = 0;
  std::atomic<bool> reads_sign_of_zero_ = false;
  std::atomic<bool> absorbs_ = false;
  std::atomic<bool> absorbs_nan_ = false;
};

/// The table of this thread's elements while the scope lives. Scopes nest.
class ExtendedScope {
 public:
  explicit ExtendedScope(EventTable& table) : previous_(current_) { current_ = &table; }
  ~ExtendedScope() { current_ = previous_; }
  ExtendedScope(const ExtendedScope&) = delete;
  ExtendedScope& operator=(const ExtendedScope&) = delete;
  static EventTable& Current() { return *current_; }

 private:
  EventTable* previous_;
  static inline thread_local EventTable* current_ = nullptr;
};

/// Mixes words into an id that is never 0.
uint64_t ExtendedId(std::string_view name, std::span<const uint64_t> words);
/// A number.
Extended ExtendedLiteral(double exact);
/// `id` and `scale` in one.
uint64_t ScaledId(const Extended& a);
/// An integer; numbers beyond 2^53 are distinguished, too.
Extended ExtendedInteger(int64_t value);
/// Identity of a value with all that is known of it but the signs of zeros.
uint64_t Token(const Extended& a);
/// Identifies the sign of the element, whether it is zero, another number or an infinity.
uint64_t SignId(const Extended& a);
/// Identifies the sign of one of two elements.
uint64_t SignOfEither(uint64_t a, uint64_t b);
/// `value`, whose kinds may be finite and others: an event of its own reports the two cases apart.
Extended WithEventWhereUndefined(Extended value);

Extended operator+(const Extended& a, const Extended& b);
Extended operator-(const Extended& a, const Extended& b);
Extended operator*(const Extended& a, const Extended& b);
/// Undefined where b is zero: an event.
Extended operator/(const Extended& a, const Extended& b);
Extended operator-(const Extended& a);
inline Extended& operator+=(Extended& a, const Extended& b) { return a = a + b; }
inline Extended& operator-=(Extended& a, const Extended& b) { return a = a - b; }
inline Extended& operator*=(Extended& a, const Extended& b) { return a = a * b; }
/// Equality of formal values.
inline bool operator==(const Extended& a, const Extended& b) {
  return a.id == b.id && a.scale == b.scale;
}
/// An order of formal values for code that must have one; it is not that of the numbers.
inline bool operator<(const Extended& a, const Extended& b) { return ScaledId(a) < ScaledId(b); }
inline bool operator>(const Extended& a, const Extended& b) { return b < a; }

}  // namespace mendel

#endif  // MENDEL_GRAPH_EXTENDED_H_
