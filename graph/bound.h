// Degree and coefficient bounds of the rational functions that values are (docs/verifier.md,
// "The bound").
#ifndef MENDEL_GRAPH_BOUND_H_
#define MENDEL_GRAPH_BOUND_H_

#include <algorithm>
#include <cmath>
#include <limits>

namespace mendel {

/// An upper bound on a value n/q: degrees of the cleared numerator and denominator as polynomials
/// in the random draws, and log2 of the sums of their coefficients' magnitudes (numerator integer
/// after clearing dyadic literals). The zero-initialized bound is the constant 1.
struct Bound {
  double num_degree = 0;
  double den_degree = 0;
  double log2_num = 0;
  double log2_den = 0;

  /// A random symbol: degree 1, coefficient 1.
  static Bound Symbol() { return {1, 0, 0, 0}; }

  bool HasDenominator() const { return den_degree > 0 || log2_den > 0; }
  bool operator==(const Bound&) const = default;
};

/// log2(2^a + 2^b).
inline double Log2Sum(double a, double b) {
  const double high = std::max(a, b);
  const double low = std::min(a, b);
  return low == -std::numeric_limits<double>::infinity()
             ? high
             : high + std::log2(1 + std::exp2(low - high));
}

/// n1/q1 + n2/q2 = (n1 q2 + n2 q1) / (q1 q2).
inline Bound operator+(const Bound& a, const Bound& b) {
  return {std::max(a.num_degree + b.den_degree, b.num_degree + a.den_degree),
          a.den_degree + b.den_degree, Log2Sum(a.log2_num + b.log2_den, b.log2_num + a.log2_den),
          a.log2_den + b.log2_den};
}
inline Bound operator-(const Bound& a, const Bound& b) { return a + b; }
inline Bound operator-(const Bound& a) { return a; }
inline Bound operator*(const Bound& a, const Bound& b) {
  return {a.num_degree + b.num_degree, a.den_degree + b.den_degree, a.log2_num + b.log2_num,
          a.log2_den + b.log2_den};
}
inline Bound operator/(const Bound& a, const Bound& b) {
  return {a.num_degree + b.den_degree, a.den_degree + b.num_degree, a.log2_num + b.log2_den,
          a.log2_den + b.log2_num};
}
inline Bound& operator+=(Bound& a, const Bound& b) { return a = a + b; }
inline Bound& operator*=(Bound& a, const Bound& b) { return a = a * b; }

/// Bound of whichever of the two a value may be (not of their sum).
inline Bound Either(const Bound& a, const Bound& b) {
  return {std::max(a.num_degree, b.num_degree), std::max(a.den_degree, b.den_degree),
          std::max(a.log2_num, b.log2_num), std::max(a.log2_den, b.log2_den)};
}

/// Bound of a sum of `terms` values each bounded by `a` that share one denominator only when it is
/// trivial.
inline Bound SumOf(double terms, const Bound& a) {
  if (terms < 1) terms = 1;
  if (!a.HasDenominator()) return {a.num_degree, 0, a.log2_num + std::log2(terms), 0};
  return {a.num_degree + (terms - 1) * a.den_degree, terms * a.den_degree,
          a.log2_num + (terms - 1) * a.log2_den + std::log2(terms), terms * a.log2_den};
}

}  // namespace mendel

#endif  // MENDEL_GRAPH_BOUND_H_
