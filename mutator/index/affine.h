// Affine forms over iterators: sums of integer coefficients times iterators, plus a constant.
#ifndef MENDEL_MUTATOR_INDEX_AFFINE_H_
#define MENDEL_MUTATOR_INDEX_AFFINE_H_

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mendel {

/// An iterator runs over 0 .. extent-1; it is a position in the list of extents of its expression.
using Iterator = int;
/// Extents by iterator.
using Extents = std::vector<int64_t>;

struct Affine {
  std::map<Iterator, int64_t> terms;  ///< no zero coefficients
  int64_t constant = 0;

  static Affine Constant(int64_t value) { return {{}, value}; }
  static Affine Of(Iterator iterator, int64_t coefficient = 1, int64_t constant = 0);
  auto operator<=>(const Affine&) const = default;

  Affine operator+(const Affine& other) const;
  Affine operator*(int64_t factor) const;
  int64_t Coefficient(Iterator iterator) const;
  bool Uses(Iterator iterator) const { return terms.count(iterator) > 0; }
  /// One iterator with coefficient 1 and no constant.
  bool IsIterator() const {
    return terms.size() == 1 && constant == 0 && terms.begin()->second == 1;
  }
  /// `iterator` replaced by `value`.
  Affine Substituted(Iterator iterator, const Affine& value) const;
};

/// Smallest and largest value.
struct Range {
  int64_t low = 0;
  int64_t high = 0;
  bool Within(int64_t begin, int64_t end) const { return low >= begin && high < end; }
};
Range RangeOf(const Affine& form, const Extents& extents);

/// Largest integer at most a / b and smallest at least a / b; b > 0.
int64_t FloorDiv(int64_t a, int64_t b);
int64_t CeilDiv(int64_t a, int64_t b);

/// form = base * quotient + rest with 0 <= rest < base for all values of the iterators; nullopt
/// when no choice of coefficients does that. Coefficients are never divided: each term goes to the
/// quotient when `base` divides it, else to the rest.
std::optional<std::pair<Affine, Affine>> Digits(const Affine& form, int64_t base,
                                                const Extents& extents);

/// Forms of a position that is row-major in `radices`; nullopt when the digits cannot be reported
/// apart. The first digit may leave its range.
std::optional<std::vector<Affine>> MixedRadix(const Affine& form, std::span<const int64_t> radices,
                                              const Extents& extents);

/// "2*i3+i4-1".
std::string AffineString(const Affine& form);

}  // namespace mendel

#endif  // MENDEL_MUTATOR_INDEX_AFFINE_H_
