#include "kernels/cpu/memory/constant_arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/cpu/memory/shared_bytes.h"

namespace mendel::cpu {
namespace {

struct Taken {
  std::shared_ptr<std::byte> bytes;
  int64_t size;
};

bool Holds(const Taken& taken, std::byte value) {
  return std::all_of(taken.bytes.get(), taken.bytes.get() + taken.size,
                     [&](std::byte b) { return b == value; });
}

/// Sizes whose sum is several chunks, mixed with sizes about as large as a chunk.
std::vector<int64_t> Sizes() {
  std::vector<int64_t> sizes = {0, 1, 63, 64, 65};
  for (int64_t k = 0; k < 60; ++k) sizes.push_back((k * 7919 % 61) * 4099 + 1);
  for (const int64_t large :
       {(2 << 20) - 65, (2 << 20) - 64, (2 << 20) - 1, 2 << 20, (5 << 20) + 3})
    sizes.push_back(large);
  for (int64_t k = 0; k < 40; ++k) sizes.push_back(k * 3001 + 1);
  return sizes;
}

TEST(ConstantArena, BytesAreAlignedZeroAndNobodyElses) {
  std::vector<Taken> all;
  {
    ConstantArena room;
    for (const int64_t size : Sizes()) {
      const Taken taken{room.Take(size), size};
      EXPECT_EQ(reinterpret_cast<uintptr_t>(taken.bytes.get()) % 64, 0u) << size;
      EXPECT_TRUE(Holds(taken, std::byte{0})) << size;
      all.push_back(taken);
      std::fill_n(taken.bytes.get(), size, static_cast<std::byte>(all.size()));
    }
  }
  // They outlive the room, and each other.
  for (size_t k = 0; k < all.size(); k += 2) all[k].bytes.reset();
  for (size_t k = 1; k < all.size(); k += 2)
    EXPECT_TRUE(Holds(all[k], static_cast<std::byte>(k + 1))) << all[k].size;
}

TEST(ConstantArena, SmallOnesLieNextToEachOther) {
  ConstantArena room;
  constexpr int64_t kSize = 100 << 10;
  std::vector<std::shared_ptr<std::byte>> taken;
  for (int k = 0; k < 40; ++k) taken.push_back(room.Take(kSize));
  // The first constants have memory of their own. Of the others only the first of a chunk has no
  // neighbor.
  int64_t neighbors = 0;
  for (size_t k = 1; k < taken.size(); ++k)
    neighbors += taken[k].get() == taken[k - 1].get() + kSize;
  EXPECT_GE(neighbors, 33);
}

TEST(ConstantArena, WhatIsGivenBackIsTakenAgainAndZero) {
  ConstantArena room;
  std::vector<std::shared_ptr<std::byte>> kept;
  bool again = false;
  for (const int64_t size : Sizes()) {
    std::shared_ptr<std::byte> first = room.Take(size);
    const std::byte* const at = first.get();
    std::fill_n(first.get(), size, std::byte{0xff});
    room.GiveBack(std::move(first), size);
    const Taken second{room.Take(size), size};
    EXPECT_TRUE(Holds(second, std::byte{0})) << size;
    again =
        again || (size > 100 && size < (1 << 20) && second.bytes.get() == at && kept.size() > 20);
    kept.push_back(second.bytes);
  }
  EXPECT_TRUE(again) << "nothing was taken again";
}

TEST(SharedBytes, EqualOnesAreKeptOnce) {
  constexpr int64_t kSize = 100 << 10;
  ConstantArena room;
  const auto filled = [&](std::byte value, int64_t other) {
    std::shared_ptr<std::byte> bytes = room.Take(kSize);
    std::fill_n(bytes.get(), kSize, value);
    bytes.get()[other] = std::byte{7};
    return Share(std::move(bytes), kSize);
  };
  auto first = filled(std::byte{3}, 1001);
  const auto equal = filled(std::byte{3}, 1001);
  const auto unlike = filled(std::byte{3}, 1003);
  EXPECT_EQ(first.get(), equal.get());
  EXPECT_NE(first.get(), unlike.get());
  EXPECT_EQ(unlike.get()[1003], std::byte{7});
  first.reset();
  EXPECT_EQ(filled(std::byte{3}, 1001).get(), equal.get());
}

}  // namespace
}  // namespace mendel::cpu
