// Arithmetic on literals, where its result is a literal too.
#ifndef MENDEL_VERIFIER_AXIOMS_EXACT_H_
#define MENDEL_VERIFIER_AXIOMS_EXACT_H_

#include <cmath>
#include <optional>

#include "graph/tensor.h"

namespace mendel::exact {

/// The result when it is exact and a number of the dtype; otherwise nothing.
inline std::optional<double> Held(DType dtype, double value, bool is_exact) {
  if (!is_exact || !std::isfinite(value) || RoundTo(dtype, value) != value) return std::nullopt;
  return value;
}

/// Sums are exact when the error term of Moller and Knuth vanishes; infinite operands (bounds of
/// Clip) are kept.
inline std::optional<double> Sum(DType dtype, double a, double b) {
  const double sum = a + b;
  if (std::isinf(a)) return a;
  const double part = sum - a;
  const double error = (a - (sum - part)) + (b - part);
  return Held(dtype, sum, error == 0);
}

inline std::optional<double> Product(DType dtype, double a, double b) {
  const double product = a * b;
  if (std::isinf(a)) return product;
  // Products that underflow have an error that no double holds.
  const bool safe = product == 0 ? a == 0 || b == 0 : std::abs(product) > 0x1p-900;
  return Held(dtype, product, safe && std::fma(a, b, -product) == 0);
}

/// a / b, b not 0.
inline std::optional<double> Quotient(DType dtype, double a, double b) {
  const double quotient = a / b;
  if (std::isinf(a)) return quotient;
  const bool safe =
      quotient == 0 ? a == 0 : std::abs(quotient) > 0x1p-900 && std::abs(a) > 0x1p-900;
  return Held(dtype, quotient, safe && std::fma(quotient, b, -a) == 0);
}

/// Numbers of which roots are looked for.
inline constexpr int kLargestRadicand = 1023;
inline bool IsSquare(int n) {
  const int root = static_cast<int>(std::lround(std::sqrt(n)));
  return root * root == n;
}

inline bool IsPowerOfTwo(double value) {
  int exponent = 0;
  return value > 0 && std::frexp(value, &exponent) == 0.5;
}

}  // namespace mendel::exact

#endif  // MENDEL_VERIFIER_AXIOMS_EXACT_H_
