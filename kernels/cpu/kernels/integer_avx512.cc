#include <immintrin.h>

#include <cstring>
#include <type_traits>

#include "kernels/cpu/kernels/integer_kernels.h"
#include "kernels/cpu/simd/unroll.h"

#define MENDEL_INLINE __attribute__((always_inline)) inline

namespace mendel::cpu {
namespace {

constexpr int64_t kLanes = 16;
/// Rows of a tile. With sums in 16 bits, too, the registers hold kBundleRows.
constexpr int kTileRows = 6, kBundleRows = 6;
using Integers = __m512i;
using Floats = __m512;

Integers Load(const void* from) { return _mm512_loadu_si512(from); }
void Store(Integers x, void* to) { _mm512_storeu_si512(to, x); }
Integers Same(int32_t x) { return _mm512_set1_epi32(x); }
Integers SameShort(int16_t x) { return _mm512_set1_epi16(x); }
Integers Plus(Integers x, Integers y) { return _mm512_add_epi32(x, y); }
Integers Kept(Integers x) { return x; }
void AddIntegers(Integers x, Integers& sum) { sum = _mm512_add_epi32(x, sum); }
void AddShorts(Integers x, Integers& sum) { sum = _mm512_add_epi16(x, sum); }
Integers PairsOfBytes(Integers codes, Integers weights) {
  return _mm512_maddubs_epi16(codes, weights);
}
Integers PairsOfBytesAt(Integers codes, const int8_t* weights) {
  return PairsOfBytes(codes, Load(weights));
}
Integers PairsOfShorts(Integers x, Integers y) { return _mm512_madd_epi16(x, y); }
Integers Widened(const uint8_t* from) {
  return _mm512_maskz_cvtepu8_epi32(0xFFFF,
                                    _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}

Floats LoadFloats(const float* from) { return _mm512_loadu_ps(from); }
void StoreFloats(Floats x, float* to) { _mm512_storeu_ps(to, x); }
Floats SameFloat(float x) { return _mm512_set1_ps(x); }
// (The masked forms: GCC 12 warns of its own undefined operands in the others.)
Floats ToFloats(Integers x) { return _mm512_maskz_cvtepi32_ps(0xFFFF, x); }
Integers Rounded(Floats x) { return _mm512_maskz_cvtps_epi32(0xFFFF, x); }
Floats MultiplyAdd(Floats x, Floats y, Floats z) { return _mm512_fmadd_ps(x, y, z); }
Floats Clamped(Floats x, Floats low, Floats high) {
  return _mm512_maskz_min_ps(0xFFFF, _mm512_maskz_max_ps(0xFFFF, x, low), high);
}

/// Two vectors of integers that T holds.
template <class T>
void StoreBytes(Integers low, Integers high, T* to) {
  auto* const bytes = reinterpret_cast<__m128i*>(to);
  _mm_storeu_si128(bytes, _mm512_maskz_cvtepi32_epi8(0xFFFF, low));
  _mm_storeu_si128(bytes + 1, _mm512_maskz_cvtepi32_epi8(0xFFFF, high));
}

#include "kernels/cpu/kernels/integer_kernels.inc"

}  // namespace

const IntegerIsa& IntegerAvx512() { return kIntegerIsa; }

}  // namespace mendel::cpu
