#include "base/hash.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/sha256_pair.h"

namespace mendel {
namespace {

TEST(Sha256, MatchesTheStandardsExample) {
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256Pair, GivesTheDigestsOfEachAlone) {
  if (!HasSha256Pair()) GTEST_SKIP() << "this machine has no SHA instructions";
  Rng rng(1);
  for (const size_t bytes : {size_t{0}, size_t{64}, size_t{128}, size_t{64} * 1001}) {
    std::vector<std::byte> a(bytes + 1), b(bytes);
    for (std::byte& byte : a) byte = static_cast<std::byte>(rng.Below(256));
    for (std::byte& byte : b) byte = static_cast<std::byte>(rng.Below(256));
    const std::span<const std::byte> first = std::span(a).subspan(1);  // of any alignment
    const auto digests = Sha256Pair(first, b);
    const auto hex = [](const std::array<std::byte, 32>& digest) {
      std::string text;
      for (const std::byte byte : digest) {
        for (const int nibble : {std::to_integer<int>(byte) >> 4, std::to_integer<int>(byte) & 15})
          text += "0123456789abcdef"[nibble];
      }
      return text;
    };
    EXPECT_EQ(hex(digests[0]), Sha256Hex(first)) << bytes;
    EXPECT_EQ(hex(digests[1]), Sha256Hex(b)) << bytes;
  }
}

TEST(KeyedHash, DependsOnKeyOrderAndLength) {
  const auto hash = [](std::array<uint64_t, 2> key, std::initializer_list<uint64_t> words) {
    KeyedHash state(key);
    for (uint64_t word : words) state.Add(word);
    return state.Finish();
  };
  EXPECT_EQ(hash({1, 2}, {3, 4}), hash({1, 2}, {3, 4}));
  EXPECT_NE(hash({1, 2}, {3, 4}), hash({1, 2}, {4, 3}));
  EXPECT_NE(hash({1, 2}, {3, 4}), hash({1, 3}, {3, 4}));
  EXPECT_NE(hash({1, 2}, {0}), hash({1, 2}, {0, 0}));
}

// Vector made by `openssl mac -macopt size:16 SIPHASH`: SipHash-2-4-128 for the 8-byte message
// 00..07 under the key 00..0f.
TEST(KeyedHash, MatchesSipHash128) {
  KeyedHash state({0x0706050403020100u, 0x0f0e0d0c0b0a0908u});
  state.Add(uint64_t{0x0706050403020100u});
  const Hash128 hash = state.Finish();
  EXPECT_EQ(hash.low, 0x61f55862baa9623bu);
  EXPECT_EQ(hash.high, 0xb49714f364e2830fu);
}

}  // namespace
}  // namespace mendel
