// SipHash-2-4 of one word (base/hash.cc is the definition) in eight lanes. The compiler's vector
// extension makes of one text what each target can do: AVX-512 rotates 64-bit words, AVX2 shifts
// them, without either the lanes are pairs.

#include "base/element_stream.h"

#include <algorithm>

namespace mendel {
namespace {

constexpr size_t kLanes = 8;
using Lanes = uint64_t __attribute__((vector_size(kLanes * sizeof(uint64_t))));
struct State {
  Lanes v0, v1, v2, v3;
};

#define MENDEL_ALWAYS_INLINE __attribute__((always_inline)) inline

template <int kBits>
MENDEL_ALWAYS_INLINE void Rotate(Lanes& x) {
  x = (x << kBits) | (x >> (64 - kBits));
}

template <int kRounds>
MENDEL_ALWAYS_INLINE void SipRounds(State& s) {
  for (int round = 0; round < kRounds; ++round) {
    s.v0 += s.v1;
    Rotate<13>(s.v1);
    s.v1 ^= s.v0;
    Rotate<32>(s.v0);
    s.v2 += s.v3;
    Rotate<16>(s.v3);
    s.v3 ^= s.v2;
    s.v0 += s.v3;
    Rotate<21>(s.v3);
    s.v3 ^= s.v0;
    s.v2 += s.v1;
    Rotate<17>(s.v1);
    s.v1 ^= s.v2;
    Rotate<32>(s.v2);
  }
}

/// Hashes of the words first .. first + 7.
MENDEL_ALWAYS_INLINE void HashLanes(const std::array<uint64_t, 2>& key, uint64_t first, Lanes& high,
                                    Lanes& low) {
  const Lanes zero = {};
  Lanes word = zero;
  for (size_t k = 0; k < kLanes; ++k) word[k] = first + k;
  State s = {zero + (key[0] ^ 0x736f6d6570736575u), zero + (key[1] ^ 0x646f72616e646f6du ^ 0xee),
             zero + (key[0] ^ 0x6c7967656e657261u), zero + (key[1] ^ 0x7465646279746573u)};
  s.v3 ^= word;
  SipRounds<2>(s);
  s.v0 ^= word;
  constexpr uint64_t kLength = uint64_t{8} << 56;  // one word of eight bytes
  s.v3 ^= zero + kLength;
  SipRounds<2>(s);
  s.v0 ^= zero + kLength;
  s.v2 ^= zero + 0xee;
  SipRounds<4>(s);
  low = s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
  s.v1 ^= zero + 0xdd;
  SipRounds<4>(s);
  high = s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

MENDEL_ALWAYS_INLINE void FillLanes(const PrimeField& field, const std::array<uint64_t, 2>& key,
                                    uint64_t first, std::span<uint64_t> out) {
  for (size_t i = 0; i < out.size(); i += kLanes) {
    Lanes high, low;
    HashLanes(key, first + i, high, low);
    const size_t count = std::min(kLanes, out.size() - i);
    for (size_t k = 0; k < count; ++k) out[i + k] = ElementOfHash(field, {high[k], low[k]});
  }
}

#undef MENDEL_ALWAYS_INLINE

void FillPortable(const PrimeField& field, const std::array<uint64_t, 2>& key, uint64_t first,
                  std::span<uint64_t> out) {
  FillLanes(field, key, first, out);
}

__attribute__((target("avx2"))) void FillAvx2(const PrimeField& field,
                                              const std::array<uint64_t, 2>& key, uint64_t first,
                                              std::span<uint64_t> out) {
  FillLanes(field, key, first, out);
}

__attribute__((target("avx512f"))) void FillAvx512(const PrimeField& field,
                                                   const std::array<uint64_t, 2>& key,
                                                   uint64_t first, std::span<uint64_t> out) {
  FillLanes(field, key, first, out);
}

}  // namespace

std::vector<StreamTarget> SupportedStreamTargets() {
  std::vector<StreamTarget> targets = {StreamTarget::kPortable};
  if (__builtin_cpu_supports("avx2")) targets.push_back(StreamTarget::kAvx2);
  if (__builtin_cpu_supports("avx512f")) targets.push_back(StreamTarget::kAvx512);
  return targets;
}

void FillElementsOn(StreamTarget target, const PrimeField& field, std::array<uint64_t, 2> key,
                    uint64_t first, std::span<uint64_t> out) {
  switch (target) {
    case StreamTarget::kAvx512:
      return FillAvx512(field, key, first, out);
    case StreamTarget::kAvx2:
      return FillAvx2(field, key, first, out);
    case StreamTarget::kPortable:
      return FillPortable(field, key, first, out);
  }
}

void FillElements(const PrimeField& field, std::array<uint64_t, 2> key, uint64_t first,
                  std::span<uint64_t> out) {
  static const StreamTarget target = SupportedStreamTargets().back();
  FillElementsOn(target, field, key, first, out);
}

}  // namespace mendel
