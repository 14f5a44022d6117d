// Random numbers: a seeded generator for everything that must repeat, fresh entropy for certifying
// draws.
#ifndef MENDEL_BASE_RANDOM_H_
#define MENDEL_BASE_RANDOM_H_

#include <array>
#include <cstdint>

namespace mendel {

/// xoshiro256** seeded by splitmix64 (Blackman and Vigna, 2018). Same seed, same sequence, on every
/// machine. Not thread-safe; cheap to copy.
class Rng {
 public:
  explicit Rng(uint64_t seed);

  uint64_t Next();
  /// Uniform in [0, bound); bound > 0. Exact (rejection), not `% bound`.
  uint64_t Below(uint64_t bound);
  /// Uniform in [low, high], both included.
  int64_t Between(int64_t low, int64_t high);
  /// Uniform in [0, 1) with 53 random bits.
  double Unit();
  /// Uniform in [low, high).
  double Uniform(double low, double high) { return low + (high - low) * Unit(); }
  /// Standard normal (Marsaglia's polar method).
  double Normal();
  /// True with the given probability.
  bool Flip(double probability = 0.5) { return Unit() < probability; }
  /// A generator for an independent stream, e.g. one a test case.
  Rng Fork() { return Rng(Next()); }

 private:
  std::array<uint64_t, 4> state_;
};

/// 128 bits from the operating system, for draws that must not be predictable from the search's
/// seed.
std::array<uint64_t, 2> FreshEntropy();

}  // namespace mendel

#endif  // MENDEL_BASE_RANDOM_H_
