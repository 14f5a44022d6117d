// Matrix products in every number system: the inner loop of convolutions and matrix products in
// operator meanings.
#ifndef MENDEL_GRAPH_CONTRACTION_H_
#define MENDEL_GRAPH_CONTRACTION_H_

#include <cstdint>

#include "base/ball.h"
#include "base/gemm.h"
#include "base/prime_field.h"
#include "graph/extended.h"

namespace mendel {

/// c[m x n] (+)= a[m x k] * b[k x n], row-major. Single-threaded; GF(p) uses the thread's
/// FieldScope.
inline void Gemm(int64_t m, int64_t n, int64_t k, const double* a, int64_t lda, const double* b,
                 int64_t ldb, double* c, int64_t ldc, bool accumulate) {
  GemmF64(m, n, k, a, lda, b, ldb, c, ldc, accumulate);
}

inline void Gemm(int64_t m, int64_t n, int64_t k, const Fp* a, int64_t lda, const Fp* b,
                 int64_t ldb, Fp* c, int64_t ldc, bool accumulate) {
  static_assert(sizeof(Fp) == sizeof(uint64_t));
  FieldScope::Current().MatMul(m, n, k, &a->value, lda, &b->value, ldb, &c->value, ldc, accumulate);
}

inline void Gemm(int64_t m, int64_t n, int64_t k, const int64_t* a, int64_t lda, const int64_t* b,
                 int64_t ldb, int64_t* c, int64_t ldc, bool accumulate) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      uint64_t sum = accumulate ? static_cast<uint64_t>(c[i * ldc + j])
                                : 0;  // unsigned: wraps as ONNX integers do
      for (int64_t p = 0; p < k; ++p)
        sum += static_cast<uint64_t>(a[i * lda + p]) * static_cast<uint64_t>(b[p * ldb + j]);
      c[i * ldc + j] = static_cast<int64_t>(sum);
    }
  }
}

inline void Gemm(int64_t m, int64_t n, int64_t k, const Ball* a, int64_t lda, const Ball* b,
                 int64_t ldb, Ball* c, int64_t ldc, bool accumulate) {
  BallGemm(m, n, k, a, lda, b, ldb, c, ldc, accumulate);
}

inline void Gemm(int64_t m, int64_t n, int64_t k, const Ball* a, int64_t lda, const double* b,
                 int64_t ldb, Ball* c, int64_t ldc, bool accumulate) {
  BallGemm(m, n, k, a, lda, b, ldb, c, ldc, accumulate);
}

inline void Gemm(int64_t m, int64_t n, int64_t k, const Extended* a, int64_t lda, const Extended* b,
                 int64_t ldb, Extended* c, int64_t ldc, bool accumulate) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      Extended sum = accumulate ? c[i * ldc + j] : Extended{};
      for (int64_t p = 0; p < k; ++p) sum += a[i * lda + p] * b[p * ldb + j];
      c[i * ldc + j] = sum;
    }
  }
}

/// Makes the thread's field or precision, if any, that of the threads a parallel loop runs on.
template <class S>
struct ScalarScope {
  explicit ScalarScope(const PrimeField*) {}
  static const PrimeField* Current() { return nullptr; }
};
template <>
struct ScalarScope<Fp> {
  explicit ScalarScope(const PrimeField* field) : scope(*field) {}
  static const PrimeField* Current() { return &FieldScope::Current(); }
  FieldScope scope;
};
template <>
struct ScalarScope<Ball> {
  explicit ScalarScope(const BallContext* context) : scope(*context) {}
  static const BallContext* Current() { return &BallScope::Current(); }
  BallScope scope;
};

template <>
struct ScalarScope<Extended> {
  explicit ScalarScope(EventTable* table) : scope(*table) {}
  static EventTable* Current() { return &ExtendedScope::Current(); }
  ExtendedScope scope;
};

}  // namespace mendel

#endif  // MENDEL_GRAPH_CONTRACTION_H_
