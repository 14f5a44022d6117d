#include "kernels/cpu/memory/deferred_constants.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cpu/memory/constant_arena.h"
#include "kernels/cpu/primitive.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

/// Bytes of constant `k`, packed on the team as kernels' weights are; no two constants have the
/// same.
void Write(int k, int64_t bytes, std::byte* to) {
  ParallelRange(bytes, 1000, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = static_cast<std::byte>((i * 7 + k) % 251);
  });
}

TEST(DeferredConstants, AllAreWrittenOnceWhateverTheirSizes) {
  const std::vector<int64_t> sizes = {
      1, 63, 0, int64_t{3} << 20, 5000, int64_t{1} << 20, 64, int64_t{700} << 10, 100000, 5000};
  for (const int threads : {1, 2, 3}) {
    for (const Divides divides : {Divides::kYes, Divides::kNo}) {
      SCOPED_TRACE(testing::Message() << threads << " threads, " << static_cast<int>(divides));
      const ThreadScope scope(threads);
      ConstantArena room;
      std::vector<Buffer> buffers(sizes.size());
      std::vector<int> calls(sizes.size(), 0);
      DeferredConstants constants;
      for (size_t k = 0; k < sizes.size(); ++k) {
        constants.Add(static_cast<int>(k), room.Take(sizes[k]), sizes[k], divides,
                      [&calls, &sizes, k](std::byte* to) {
                        ++calls[k];
                        Write(static_cast<int>(k), sizes[k], to);
                      });
      }
      ASSERT_TRUE(constants.FillAll(buffers).ok());
      EXPECT_EQ(std::count(calls.begin(), calls.end(), 1), static_cast<int64_t>(calls.size()));
      for (size_t k = 0; k < sizes.size(); ++k) {
        std::vector<std::byte> wanted(static_cast<size_t>(sizes[k]));
        Write(static_cast<int>(k), sizes[k], wanted.data());
        ASSERT_NE(buffers[k].constant, nullptr);
        EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), buffers[k].constant)) << k;
      }
    }
  }
}

TEST(DeferredConstants, EqualOnesShareTheirBytes) {
  const ThreadScope scope(2);
  constexpr int64_t kBytes = int64_t{256} << 10;
  std::vector<Buffer> buffers(3);
  DeferredConstants constants;
  ConstantArena room;
  for (int k = 0; k < 3; ++k) {
    constants.Add(k, room.Take(kBytes), kBytes, Divides::kYes,
                  [k](std::byte* to) { Write(k == 1 ? 1 : 0, kBytes, to); });
  }
  ASSERT_TRUE(constants.FillAll(buffers).ok());
  EXPECT_EQ(buffers[0].constant, buffers[2].constant);
  EXPECT_NE(buffers[0].constant, buffers[1].constant);
}

TEST(DeferredConstants, WhatTheLibraryRefusesIsNamed) {
  const ThreadScope scope(2);
  std::vector<Buffer> buffers(2);
  DeferredConstants constants;
  ConstantArena room;
  for (int k = 0; k < 2; ++k) {
    constants.Add(k, room.Take(8), 8, Divides::kNo, [k](std::byte*) {
      if (k == 1) throw dnnl::error(dnnl_unimplemented, "no such layout");
    });
  }
  const absl::Status status = constants.FillAll(buffers);
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_NE(status.message().find("no such layout"), std::string_view::npos) << status;
}

}  // namespace
}  // namespace mendel::cpu
