// The matrices of F(m, r), m outputs of a correlation with r taps from m + r - 1 products: y = A^T
// ((G g) * (B^T d)). They are made by the Cook-Toom construction, at compile time in exact rational
// numbers. Interpolation points are 0, pairs of a point and its negative, and infinity.
//
// Source: S. Winograd, "Arithmetic Complexity of Computations" (1980); the form of A. Lavin, S.
// Gray, "Fast Algorithms for Convolutional Neural Networks" (2016).
#ifndef MENDEL_KERNELS_CPU_KERNELS_WINOGRAD_MATRICES_H_
#define MENDEL_KERNELS_CPU_KERNELS_WINOGRAD_MATRICES_H_

#include <cstdint>

namespace mendel::cpu {

struct Rational {
  int64_t numerator = 0;
  int64_t denominator = 1;  ///< positive, in lowest terms

  constexpr Rational() = default;
  constexpr Rational(int64_t n, int64_t d = 1) {  // NOLINT: a number is a fraction
    int64_t a = n < 0 ? -n : n;
    int64_t b = d < 0 ? -d : d;
    while (b != 0) {
      const int64_t rest = a % b;
      a = b;
      b = rest;
    }
    numerator = (d < 0 ? -n : n) / a;
    denominator = (d < 0 ? -d : d) / a;
  }
  constexpr Rational operator*(Rational o) const {
    return Rational(numerator * o.numerator, denominator * o.denominator);
  }
  constexpr Rational operator-(Rational o) const {
    return Rational(numerator * o.denominator - o.numerator * denominator,
                    denominator * o.denominator);
  }
  constexpr double Double() const {
    return static_cast<double>(numerator) / static_cast<double>(denominator);
  }
};

/// Returns finite point number `index` of an algorithm that has `count` of them. Points are
/// quarters, so that the matrices of the data contain exact floats. The chosen pairs were measured
/// to have the smallest error (they lie around 1).
constexpr Rational WinogradPoint(int count, int index) {
  if (index == 0) return 0;
  const int pair = (index - 1) / 2;
  const int64_t sign = index % 2 == 1 ? 1 : -1;
  if (count <= 3) return sign;
  if (count <= 5) return Rational((pair + 1) * 3 * sign, 4);
  constexpr int64_t kSixOf[] = {2, 4, 8};
  constexpr int64_t kEightOf[] = {2, 3, 6, 10};
  return Rational((count <= 7 ? kSixOf[pair] : kEightOf[pair]) * sign, 4);
}

template <int kRows, int kColumns>
struct RationalMatrix {
  Rational at[kRows][kColumns];
};

template <int M, int R>
struct WinogradMatrices {
  static constexpr int kOutputs = M;
  static constexpr int kTaps = R;
  static constexpr int kProducts = M + R - 1;

  /// A^T: from products to outputs.
  static constexpr RationalMatrix<M, kProducts> Output() {
    RationalMatrix<M, kProducts> matrix;
    for (int i = 0; i + 1 < kProducts; ++i) {
      Rational power = 1;
      for (int k = 0; k < M; ++k, power = power * WinogradPoint(kProducts - 1, i))
        matrix.at[k][i] = power;
    }
    matrix.at[M - 1][kProducts - 1] = 1;
    return matrix;
  }

  /// G: from taps to factors.
  static constexpr RationalMatrix<kProducts, R> Weights() {
    RationalMatrix<kProducts, R> matrix;
    for (int i = 0; i + 1 < kProducts; ++i) {
      Rational power = 1;
      for (int l = 0; l + 1 < kProducts; ++l) {
        if (l == i) continue;
        const Rational distance = WinogradPoint(kProducts - 1, i) - WinogradPoint(kProducts - 1, l);
        power = power * Rational(distance.denominator, distance.numerator);
      }
      for (int k = 0; k < R; ++k, power = power * WinogradPoint(kProducts - 1, i))
        matrix.at[i][k] = power;
    }
    matrix.at[kProducts - 1][R - 1] = 1;
    return matrix;
  }

  /// B^T: from data to factors. Row i contains the coefficients of the product of (x - point) over
  /// all other points.
  static constexpr RationalMatrix<kProducts, kProducts> Input() {
    RationalMatrix<kProducts, kProducts> matrix;
    for (int i = 0; i < kProducts; ++i) {
      matrix.at[i][0] = 1;
      int degree = 0;
      for (int l = 0; l + 1 < kProducts; ++l) {
        if (l == i) continue;
        ++degree;
        for (int k = degree; k >= 0; --k) {
          const Rational lower = k > 0 ? matrix.at[i][k - 1] : Rational(0);
          matrix.at[i][k] = lower - WinogradPoint(kProducts - 1, l) * matrix.at[i][k];
        }
      }
    }
    return matrix;
  }
};

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_KERNELS_WINOGRAD_MATRICES_H_
