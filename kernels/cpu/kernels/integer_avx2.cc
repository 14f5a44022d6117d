#include <immintrin.h>

#include <cstring>
#include <type_traits>

#include "kernels/cpu/kernels/integer_kernels.h"
#include "kernels/cpu/simd/unroll.h"

#define MENDEL_INLINE __attribute__((always_inline)) inline

namespace mendel::cpu {
namespace {

constexpr int64_t kLanes = 8;
/// Rows of a tile. With sums in 16 bits, too, the registers hold kBundleRows.
constexpr int kTileRows = 6, kBundleRows = 3;
using Integers = __m256i;
using Floats = __m256;

Integers Load(const void* from) { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }
void Store(Integers x, void* to) { _mm256_storeu_si256(static_cast<__m256i*>(to), x); }
Integers Same(int32_t x) { return _mm256_set1_epi32(x); }
Integers SameShort(int16_t x) { return _mm256_set1_epi16(x); }
Integers Plus(Integers x, Integers y) { return _mm256_add_epi32(x, y); }
// Weights and sums stay in their registers. The compiler would load weights for each row, add in
// another order, or move sums, and need more registers than there are.
MENDEL_INLINE Integers Kept(Integers x) {
  asm("" : "+x"(x));
  return x;
}
MENDEL_INLINE void AddIntegers(Integers x, Integers& sum) {
  asm("vpaddd %1, %0, %0" : "+x"(sum) : "x"(x));
}
MENDEL_INLINE void AddShorts(Integers x, Integers& sum) {
  asm("vpaddw %1, %0, %0" : "+x"(sum) : "x"(x));
}
Integers PairsOfBytes(Integers codes, Integers weights) {
  return _mm256_maddubs_epi16(codes, weights);
}
/// The weights stay in memory: the compiler would load them into registers that sums need.
MENDEL_INLINE Integers PairsOfBytesAt(Integers codes, const int8_t* weights) {
  Integers sums;
  asm("vpmaddubsw %2, %1, %0"
      : "=x"(sums)
      : "x"(codes), "m"(*reinterpret_cast<const __m256i_u*>(weights)));
  return sums;
}
Integers PairsOfShorts(Integers x, Integers y) { return _mm256_madd_epi16(x, y); }
Integers Widened(const uint8_t* from) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
}

Floats LoadFloats(const float* from) { return _mm256_loadu_ps(from); }
void StoreFloats(Floats x, float* to) { _mm256_storeu_ps(to, x); }
Floats SameFloat(float x) { return _mm256_set1_ps(x); }
Floats ToFloats(Integers x) { return _mm256_cvtepi32_ps(x); }
Integers Rounded(Floats x) { return _mm256_cvtps_epi32(x); }
Floats MultiplyAdd(Floats x, Floats y, Floats z) { return _mm256_fmadd_ps(x, y, z); }
Floats Clamped(Floats x, Floats low, Floats high) {
  return _mm256_min_ps(_mm256_max_ps(x, low), high);
}

/// Two vectors of integers that T holds.
template <class T>
void StoreBytes(Integers low, Integers high, T* to) {
  const __m256i shorts = _mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), 0xD8);
  const __m128i first = _mm256_castsi256_si128(shorts), last = _mm256_extracti128_si256(shorts, 1);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), std::is_signed_v<T>
                                                       ? _mm_packs_epi16(first, last)
                                                       : _mm_packus_epi16(first, last));
}

#include "kernels/cpu/kernels/integer_kernels.inc"

}  // namespace

const IntegerIsa& IntegerAvx2() { return kIntegerIsa; }

}  // namespace mendel::cpu
