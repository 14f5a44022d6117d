#include "base/sha256_pair.h"

#include <cpuid.h>
#include <immintrin.h>

#include <cstdint>

#include "base/check.h"

namespace mendel {
namespace {

#define MENDEL_SHA __attribute__((target("sha,sse4.1")))

constexpr size_t kBlock = 64;

alignas(16) constexpr uint32_t kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

/// Words as the instructions want them: (a, b, e, f) and (c, d, g, h), the first in the highest
/// lane.
struct State {
  __m128i abef, cdgh;
};

MENDEL_SHA inline __m128i Load(const std::byte* at) {
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  return _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)), big_endian);
}

/// Four rounds with words `w` of the schedule, the constants from `k` on.
MENDEL_SHA inline void Rounds(State& s, __m128i w, const uint32_t* k) {
  const __m128i sum = _mm_add_epi32(w, _mm_load_si128(reinterpret_cast<const __m128i*>(k)));
  s.cdgh = _mm_sha256rnds2_epu32(s.cdgh, s.abef, sum);
  s.abef = _mm_sha256rnds2_epu32(s.abef, s.cdgh, _mm_shuffle_epi32(sum, 0x0E));
}

/// The four words of the schedule that follow `w`, the last sixteen.
MENDEL_SHA inline __m128i Next(const __m128i (&w)[4]) {
  const __m128i partial =
      _mm_add_epi32(_mm_sha256msg1_epu32(w[0], w[1]), _mm_alignr_epi8(w[3], w[2], 4));
  return _mm_sha256msg2_epu32(partial, w[3]);
}

MENDEL_SHA void Compress(State (&states)[2], const std::byte* a, const std::byte* b,
                         size_t blocks) {
  for (; blocks > 0; --blocks, a += kBlock, b += kBlock) {
    const State before[2] = {states[0], states[1]};
    State s[2] = {states[0], states[1]};
    __m128i w[2][4];
    for (size_t q = 0; q < 4; ++q) {
      w[0][q] = Load(a + 16 * q);
      w[1][q] = Load(b + 16 * q);
      Rounds(s[0], w[0][q], kRound + 4 * q);
      Rounds(s[1], w[1][q], kRound + 4 * q);
    }
#pragma GCC unroll 12
    for (size_t q = 4; q < 16; ++q) {
      for (size_t m = 0; m < 2; ++m) {
        const __m128i next = Next(w[m]);
        w[m][0] = w[m][1];
        w[m][1] = w[m][2];
        w[m][2] = w[m][3];
        w[m][3] = next;
        Rounds(s[m], next, kRound + 4 * q);
      }
    }
    for (size_t m = 0; m < 2; ++m) {
      states[m].abef = _mm_add_epi32(s[m].abef, before[m].abef);
      states[m].cdgh = _mm_add_epi32(s[m].cdgh, before[m].cdgh);
    }
  }
}

std::array<std::byte, 32> DigestOf(const State& state) {
  alignas(16) uint32_t abef[4], cdgh[4];
  _mm_store_si128(reinterpret_cast<__m128i*>(abef), state.abef);
  _mm_store_si128(reinterpret_cast<__m128i*>(cdgh), state.cdgh);
  const uint32_t words[8] = {abef[3], abef[2], cdgh[3], cdgh[2],
                             abef[1], abef[0], cdgh[1], cdgh[0]};
  std::array<std::byte, 32> digest;
  for (size_t i = 0; i < digest.size(); ++i)
    digest[i] = static_cast<std::byte>(words[i / 4] >> (24 - 8 * (i % 4)));
  return digest;
}

}  // namespace

bool HasSha256Pair() {
  static const bool has = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    constexpr unsigned kSha = 1u << 29;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & kSha) != 0 &&
           __builtin_cpu_supports("sse4.1") != 0;
  }();
  return has;
}

std::array<std::array<std::byte, 32>, 2> Sha256Pair(std::span<const std::byte> a,
                                                    std::span<const std::byte> b) {
  MENDEL_CHECK(HasSha256Pair() && a.size() == b.size() && a.size() % kBlock == 0);
  const State initial{
      _mm_set_epi32(0x6a09e667, static_cast<int>(0xbb67ae85), 0x510e527f,
                    static_cast<int>(0x9b05688c)),
      _mm_set_epi32(0x3c6ef372, static_cast<int>(0xa54ff53a), 0x1f83d9ab, 0x5be0cd19)};
  State states[2] = {initial, initial};
  Compress(states, a.data(), b.data(), a.size() / kBlock);
  // The padding: one set bit, zeros, the length in bits.
  std::array<std::byte, kBlock> last{};
  last[0] = std::byte{0x80};
  const uint64_t bits = uint64_t{a.size()} * 8;
  for (size_t i = 0; i < 8; ++i) last[kBlock - 1 - i] = static_cast<std::byte>(bits >> (8 * i));
  Compress(states, last.data(), last.data(), 1);
  return {DigestOf(states[0]), DigestOf(states[1])};
}

}  // namespace mendel
