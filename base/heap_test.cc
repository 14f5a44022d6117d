#include "base/heap.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>
#include <string>
#include <vector>

namespace mendel {
namespace {

/// Kilobytes of this process in memory.
size_t Resident() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmRSS:", 0) == 0) return std::stoul(line.substr(6));
  }
  return 0;
}

/// Blocks of a size that stays in the heap: the one behind them keeps it from shrinking.
TEST(Heap, ReturnsFreedMemory) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer keeps freed memory";
#endif
  constexpr size_t kBlocks = 2000, kBytes = 32 << 10;
  const size_t before = Resident();
  std::vector<std::string> blocks(kBlocks, std::string(kBytes, 'x'));
  const std::string last(kBytes, 'y');
  blocks.clear();
  blocks.shrink_to_fit();
  ReturnFreedMemory();
  EXPECT_LT(Resident(), before + kBlocks * kBytes / 1024 / 2);
  EXPECT_EQ(last.size(), kBytes);
}

TEST(Heap, KeepsFreedMemoryWithoutAnError) { KeepFreedMemory(); }

}  // namespace
}  // namespace mendel
