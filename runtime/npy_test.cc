#include "runtime/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "base/random.h"

namespace mendel {
namespace {

std::vector<std::byte> File(const std::string& header, size_t data_bytes, char major = 1) {
  std::string text = std::string("\x93NUMPY") + major + '\0';
  text += static_cast<char>(header.size() & 255);
  text += static_cast<char>(header.size() >> 8);
  if (major > 1) text += std::string(2, '\0');
  text += header;
  for (size_t i = 0; i < data_bytes; ++i) text += static_cast<char>(i);
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return {bytes.begin(), bytes.end()};
}

TEST(Npy, RoundTripsEveryDTypeAndRank) {
  const uint64_t seed = 2;
  Rng rng(seed);
  for (DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kI8, DType::kU8, DType::kI32,
                      DType::kI64, DType::kBool}) {
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{0}, Shape{2, 3}, Shape{1, 2, 3, 4, 5}}) {
      std::vector<double> values(static_cast<size_t>(NumElements(shape)));
      for (double& value : values) value = static_cast<double>(rng.Between(0, 100));
      const Tensor tensor = Tensor::FromDoubles({dtype, shape}, values);
      const auto bytes = FormatNpy(tensor);
      ASSERT_TRUE(bytes.ok());
      const auto back = ParseNpy(*bytes);
      ASSERT_TRUE(back.ok()) << back.status();
      EXPECT_EQ(*back, tensor) << TypeString(tensor.type());
    }
  }
}

TEST(Npy, WritesTheHeaderNumPyWrites) {
  const auto bytes =
      FormatNpy(Tensor::FromDoubles({DType::kF32, {2, 3}}, std::vector<double>(6, 0)));
  ASSERT_TRUE(bytes.ok());
  const std::string text(reinterpret_cast<const char*>(bytes->data()), 128);
  EXPECT_EQ(bytes->size(), 128u + 24u);
  EXPECT_EQ(text.substr(10, 60), "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } ");
  EXPECT_EQ(text.back(), '\n');
}

TEST(Npy, TransposesFortranOrder) {
  const auto tensor = ParseNpy(File("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3)}", 6));
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_THAT(tensor->ToInts(), testing::ElementsAre(0, 2, 4, 1, 3, 5));
}

TEST(Npy, ReadsLaterVersions) {
  EXPECT_TRUE(
      ParseNpy(File("{'descr': '|u1', 'fortran_order': False, 'shape': (4,), }\n", 4, 2)).ok());
  EXPECT_TRUE(
      ParseNpy(File("{'descr': '|u1', 'fortran_order': False, 'shape': (4,), }\n", 4, 3)).ok());
}

TEST(Npy, RefusesHostileHeaders) {
  const std::vector<std::string> headers = {
      "",
      "{",
      "{}",
      "{'descr': '<f4', 'fortran_order': False}",
      "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",
      "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776, 1099511627776)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 1, 1, 1, 1)}",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
      "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}",
  };
  for (const std::string& header : headers) {
    EXPECT_EQ(ParseNpy(File(header, 4)).status().code(), absl::StatusCode::kInvalidArgument)
        << header;
  }
  const auto complex = ParseNpy(File("{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", 8));
  EXPECT_EQ(complex.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_FALSE(FormatNpy(Tensor::Filled({DType::kBF16, {1}}, 0)).ok());
}

TEST(Npy, TruncatedAndDamagedFilesNeverCrash) {
  const auto bytes = FormatNpy(Tensor::Filled({DType::kI64, {3, 2}}, 1));
  ASSERT_TRUE(bytes.ok());
  for (size_t size = 0; size < bytes->size(); ++size)
    EXPECT_FALSE(ParseNpy(std::span(*bytes).first(size)).ok());
  Rng rng(4);
  for (int trial = 0; trial < 5000; ++trial) {
    std::vector<std::byte> damaged = *bytes;
    damaged[rng.Below(80)] = static_cast<std::byte>(rng.Below(256));
    const auto tensor = ParseNpy(damaged);
    if (tensor.ok()) {
      EXPECT_LE(tensor->bytes().size(), damaged.size());
    }
  }
}

TEST(Npy, FilesAndMissingFiles) {
  const std::string path = testing::TempDir() + "/" + std::to_string(::getpid()) + ".npy";
  const Tensor tensor = Tensor::FromInts({DType::kI32, {2}}, std::vector<int64_t>{5, -6});
  ASSERT_TRUE(WriteNpy(tensor, path).ok());
  const auto back = ReadNpy(path);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(*back, tensor);
  std::filesystem::remove(path);
  EXPECT_EQ(ReadNpy(path).status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(WriteNpy(tensor, path + "/none/x.npy").ok());
}

}  // namespace
}  // namespace mendel
