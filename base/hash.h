// SHA-256 for content addressing, and a keyed 128-bit hash for random oracles and fingerprints.
#ifndef MENDEL_BASE_HASH_H_
#define MENDEL_BASE_HASH_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace mendel {

/// Incremental SHA-256 (OpenSSL). Not thread-safe.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void Update(std::span<const std::byte> bytes);
  void Update(std::string_view text);
  /// 64 lower-case hexadecimal digits. Call once.
  std::string HexDigest();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

/// SHA-256 of `bytes` as 64 hexadecimal digits.
std::string Sha256Hex(std::span<const std::byte> bytes);
std::string Sha256Hex(std::string_view text);

/// 128-bit value of a keyed hash.
struct Hash128 {
  uint64_t high = 0;
  uint64_t low = 0;
  bool operator==(const Hash128&) const = default;
  auto operator<=>(const Hash128&) const = default;
};

/// SipHash-2-4 with 128-bit output (Aumasson and Bernstein, 2012) over a sequence of 64-bit words.
/// With a secret random key it is a pseudo-random function, which is what the verifier's oracles
/// need; with a fixed key it is a fingerprint.
class KeyedHash {
 public:
  explicit KeyedHash(std::array<uint64_t, 2> key);
  void Add(uint64_t word);
  void Add(std::string_view text);
  /// Returns the hash of all words added so far. It does not change the state, so more words may
  /// follow.
  Hash128 Finish() const;

 private:
  std::array<uint64_t, 4> v_;
  uint64_t words_ = 0;
};

}  // namespace mendel

#endif  // MENDEL_BASE_HASH_H_
