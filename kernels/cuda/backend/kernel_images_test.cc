#include "kernels/cuda/backend/kernel_images.h"

#include <set>
#include <string>

#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mendel::cuda {
namespace {

DeviceProgram Program(size_t count) {
  DeviceProgram program;
  for (size_t k = 0; k < count; ++k) {
    program.texts.push_back(Cat("// text ", k, "."));
    program.entries.push_back(Cat("kernel", k));
  }
  return program;
}

absl::StatusOr<std::vector<char>> Bytes(const std::string& text) {
  return std::vector<char>(text.begin(), text.end());
}

TEST(KernelImages, OneATextInItsOrder) {
  for (const size_t count : {0, 1, 2, 40}) {
    const DeviceProgram program = Program(count);
    const auto images = CompileKernels(program, &Bytes);
    ASSERT_TRUE(images.ok()) << images.status();
    ASSERT_EQ(images->size(), count);
    for (size_t k = 0; k < count; ++k) {
      const std::string text((*images)[k].begin(), (*images)[k].end());
      EXPECT_EQ(text, program.ModuleText(k));
      EXPECT_THAT(text, testing::HasSubstr(Cat("// text ", k, ".")));
      EXPECT_THAT(text, testing::Not(testing::HasSubstr(Cat("// text ", k + 1, "."))));
    }
  }
}

TEST(KernelImages, TheFirstTextThatDoesNotCompileIsReported) {
  const auto compile = [](const std::string& text) -> absl::StatusOr<std::vector<char>> {
    for (const int bad : {7, 23}) {
      if (text.find(Cat("// text ", bad, ".")) != std::string::npos)
        return InvalidInput("text ", bad);
    }
    return Bytes(text);
  };
  const auto images = CompileKernels(Program(30), compile);
  EXPECT_EQ(images.status().message(), "text 7");
}

}  // namespace
}  // namespace mendel::cuda
