#include "base/hash.h"

#include <gtest/gtest.h>

namespace mendel {
namespace {

TEST(Sha256, MatchesTheStandardsExample) {
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
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

// Vector made by `openssl mac -macopt size:16 SIPHASH`: SipHash-2-4-128 for the 8-byte message 00..07 under the key 00..0f.
TEST(KeyedHash, MatchesSipHash128) {
  KeyedHash state({0x0706050403020100u, 0x0f0e0d0c0b0a0908u});
  state.Add(uint64_t{0x0706050403020100u});
  const Hash128 hash = state.Finish();
  EXPECT_EQ(hash.low, 0x61f55862baa9623bu);
  EXPECT_EQ(hash.high, 0xb49714f364e2830fu);
}

}  // namespace
}  // namespace mendel
