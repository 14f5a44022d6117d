// Matrix products in GF(p) by exact double arithmetic: residues split into limbs whose products add
// up below 2^53.
#ifndef MENDEL_BASE_FIELD_GEMM_H_
#define MENDEL_BASE_FIELD_GEMM_H_

#include <cstdint>

#include "base/gemm.h"
#include "base/prime_field.h"

namespace mendel {

/// c[m x n] (+)= a[m x k] * b[k x n] mod p, row-major. Primes below 2^20 (one limb) or of at least
/// 2^59 (three limbs of 20 bits, six double products an entry by Karatsuba's identity); CHECK-fails
/// on others. Exact on every target. Single-threaded.
void LimbMatMul(const PrimeField& field, GemmTarget target, int64_t m, int64_t n, int64_t k,
                const uint64_t* a, int64_t lda, const uint64_t* b, int64_t ldb, uint64_t* c,
                int64_t ldc, bool accumulate);

/// Does LimbMatMul take this prime?
bool HasLimbMatMul(const PrimeField& field);

/// The definition: 128-bit sums, for small operands.
void NaiveMatMul(const PrimeField& field, int64_t m, int64_t n, int64_t k, const uint64_t* a,
                 int64_t lda, const uint64_t* b, int64_t ldb, uint64_t* c, int64_t ldc,
                 bool accumulate);

/// NTL's product, for any prime: the reference that the tests compare with.
void NtlMatMul(const PrimeField& field, int64_t m, int64_t n, int64_t k, const uint64_t* a,
               int64_t lda, const uint64_t* b, int64_t ldb, uint64_t* c, int64_t ldc,
               bool accumulate);

}  // namespace mendel

#endif  // MENDEL_BASE_FIELD_GEMM_H_
