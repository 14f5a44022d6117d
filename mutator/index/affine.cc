#include "mutator/index/affine.h"

#include <algorithm>

#include "base/status.h"

namespace mendel {

Affine Affine::Of(Iterator iterator, int64_t coefficient, int64_t constant) {
  Affine form{{}, constant};
  if (coefficient != 0) form.terms[iterator] = coefficient;
  return form;
}

Affine Affine::operator+(const Affine& other) const {
  Affine sum = *this;
  sum.constant += other.constant;
  for (const auto& [iterator, coefficient] : other.terms) {
    int64_t& entry = sum.terms[iterator];
    entry += coefficient;
    if (entry == 0) sum.terms.erase(iterator);
  }
  return sum;
}

Affine Affine::operator*(int64_t factor) const {
  if (factor == 0) return {};
  Affine product = *this;
  product.constant *= factor;
  for (auto& [iterator, coefficient] : product.terms) coefficient *= factor;
  return product;
}

int64_t Affine::Coefficient(Iterator iterator) const {
  const auto entry = terms.find(iterator);
  return entry == terms.end() ? 0 : entry->second;
}

Affine Affine::Substituted(Iterator iterator, const Affine& value) const {
  const int64_t coefficient = Coefficient(iterator);
  if (coefficient == 0) return *this;
  Affine rest = *this;
  rest.terms.erase(iterator);
  return rest + value * coefficient;
}

Range RangeOf(const Affine& form, const Extents& extents) {
  Range range{form.constant, form.constant};
  for (const auto& [iterator, coefficient] : form.terms) {
    const int64_t reach = coefficient * (extents[static_cast<size_t>(iterator)] - 1);
    (reach < 0 ? range.low : range.high) += reach;
  }
  return range;
}

int64_t FloorDiv(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }
int64_t CeilDiv(int64_t a, int64_t b) { return -FloorDiv(-a, b); }

std::optional<std::pair<Affine, Affine>> Digits(const Affine& form, int64_t base,
                                                const Extents& extents) {
  Affine quotient, rest;
  for (const auto& [iterator, coefficient] : form.terms) {
    if (coefficient % base == 0) {
      quotient.terms[iterator] = coefficient / base;
    } else {
      rest.terms[iterator] = coefficient;
    }
  }
  // The constant's share of the rest is whatever lifts its smallest value into the range.
  const int64_t carry = FloorDiv(form.constant + RangeOf(rest, extents).low, base);
  quotient.constant = carry;
  rest.constant = form.constant - carry * base;
  if (!RangeOf(rest, extents).Within(0, base)) return std::nullopt;
  return std::make_pair(quotient, rest);
}

std::optional<std::vector<Affine>> MixedRadix(const Affine& form, std::span<const int64_t> radices,
                                              const Extents& extents) {
  std::vector<Affine> digits;
  Affine left = form;
  for (size_t d = radices.size(); d-- > 1;) {
    const auto split = Digits(left, radices[d], extents);
    if (!split.has_value()) return std::nullopt;
    digits.push_back(split->second);
    left = split->first;
  }
  if (!radices.empty()) digits.push_back(left);
  std::reverse(digits.begin(), digits.end());
  return digits;
}

std::string AffineString(const Affine& form) {
  std::string text;
  for (const auto& [iterator, coefficient] : form.terms) {
    text += coefficient < 0 ? "-" : (text.empty() ? "" : "+");
    if (coefficient != 1 && coefficient != -1)
      text += Cat(coefficient < 0 ? -coefficient : coefficient, "*");
    text += Cat("i", iterator);
  }
  if (form.constant != 0 || text.empty())
    text += Cat(form.constant >= 0 && !text.empty() ? "+" : "", form.constant);
  return text;
}

}  // namespace mendel
