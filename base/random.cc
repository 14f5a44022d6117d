#include "base/random.h"

#include <sys/random.h>

#include <bit>
#include <cmath>

#include "base/check.h"

namespace mendel {

Rng::Rng(uint64_t seed) {
  for (uint64_t& word : state_) {
    seed += 0x9e3779b97f4a7c15u;
    uint64_t z = seed;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    word = z ^ (z >> 31);
  }
}

uint64_t Rng::Next() {
  const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

uint64_t Rng::Below(uint64_t bound) {
  MENDEL_CHECK(bound > 0);
  // 2^64 mod bound: values under it would be over-represented.
  const uint64_t limit = -bound % bound;
  uint64_t value = Next();
  while (value < limit) value = Next();
  return value % bound;
}

int64_t Rng::Between(int64_t low, int64_t high) {
  MENDEL_CHECK(low <= high);
  const uint64_t span = static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1;
  const uint64_t offset = span == 0 ? Next() : Below(span);
  return static_cast<int64_t>(static_cast<uint64_t>(low) + offset);
}

double Rng::Unit() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

double Rng::Normal() {
  while (true) {
    const double u = Uniform(-1, 1);
    const double v = Uniform(-1, 1);
    const double s = u * u + v * v;
    if (s > 0 && s < 1) return u * std::sqrt(-2 * std::log(s) / s);
  }
}

std::array<uint64_t, 2> FreshEntropy() {
  std::array<uint64_t, 2> words{};
  MENDEL_CHECK(getrandom(words.data(), sizeof(words), 0) == static_cast<ssize_t>(sizeof(words)));
  return words;
}

}  // namespace mendel
