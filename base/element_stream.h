// Random field elements by position: what the verifier draws inputs, weights and cut values from,
// millions at a time.
#ifndef MENDEL_BASE_ELEMENT_STREAM_H_
#define MENDEL_BASE_ELEMENT_STREAM_H_

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/hash.h"
#include "base/prime_field.h"

namespace mendel {

/// The field element floor(h p / 2^128) of a hash h: uniform but for a bias below 2^-68, and
/// without a division.
inline uint64_t ElementOfHash(const PrimeField& field, Hash128 hash) {
  using Wide = unsigned __int128;
  const Wide carried = static_cast<Wide>(hash.low) * field.prime() >> 64;
  return static_cast<uint64_t>((static_cast<Wide>(hash.high) * field.prime() + carried) >> 64);
}

/// out[i] = ElementOfHash of KeyedHash(key) over the one word first + i. Single-threaded; the same
/// on every processor.
void FillElements(const PrimeField& field, std::array<uint64_t, 2> key, uint64_t first,
                  std::span<uint64_t> out);

/// Vector units that FillElements has code for; those that this processor can run, the one in use
/// last.
enum class StreamTarget { kPortable, kAvx2, kAvx512 };
std::vector<StreamTarget> SupportedStreamTargets();
/// FillElements on one supported target (for tests).
void FillElementsOn(StreamTarget target, const PrimeField& field, std::array<uint64_t, 2> key,
                    uint64_t first, std::span<uint64_t> out);

}  // namespace mendel

#endif  // MENDEL_BASE_ELEMENT_STREAM_H_
