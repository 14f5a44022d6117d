#include "onnx/mapped_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace mendel {
namespace {

std::vector<std::byte> Pattern(size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 31 >> 3 & 0xff);
  return bytes;
}

TEST(ForgetPages, ReadsThemAgain) {
  const std::vector<std::byte> expected = Pattern(70001);
  const std::string path = Cat(testing::TempDir(), "forget_pages.bin");
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(expected.data()),
             static_cast<std::streamsize>(expected.size()));
  const auto mapped = MapFile(path);
  ASSERT_TRUE(mapped.ok()) << mapped.status();
  EXPECT_TRUE(mapped->mapped);
  for (const auto& [begin, count] :
       {std::pair<size_t, size_t>{0, 70001}, {3, 69000}, {4095, 2}, {5000, 100}, {70001, 0}}) {
    ASSERT_TRUE(
        std::equal(expected.begin(), expected.end(), mapped->bytes.begin(), mapped->bytes.end()));
    ForgetPages(*mapped, mapped->bytes.subspan(begin, count));
    EXPECT_TRUE(
        std::equal(expected.begin(), expected.end(), mapped->bytes.begin(), mapped->bytes.end()))
        << begin;
  }
  std::remove(path.c_str());
}

TEST(ForgetPages, LeavesBytesOfNoFile) {
  const std::vector<std::byte> bytes = Pattern(70001);
  ForgetPages({bytes, nullptr}, bytes);
  EXPECT_EQ(bytes, Pattern(70001));
}

}  // namespace
}  // namespace mendel
