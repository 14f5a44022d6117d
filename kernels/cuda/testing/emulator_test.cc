// Every emitted kernel is executed and compared with the operators' float64 meaning over the whole
// of the mutant's output.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "kernels/cuda/testing/correction_case.h"
#include "kernels/cuda/testing/emulator/device.h"

namespace mendel::cuda {
namespace {

int64_t FromEnvironment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoll(text);
}

TEST(Emulator, RandomCorrectionsEqualTheirMeaning) {
  const int64_t count = FromEnvironment("MENDEL_CORRECTIONS", 36);
  const int64_t first = FromEnvironment("MENDEL_CORRECTION_SEED", 1);
  constexpr int64_t kTogether = 18;  // cases a compilation
  size_t kernels = 0, boxes = 0;
  for (int64_t begin = first; begin < first + count; begin += kTogether) {
    std::vector<CorrectionCase> cases;
    std::vector<EmittedKernel> texts;
    for (int64_t seed = begin; seed < std::min(begin + kTogether, first + count); ++seed) {
      cases.push_back(RandomCase(static_cast<uint64_t>(seed)));
      texts.insert(texts.end(), cases.back().kernels.begin(), cases.back().kernels.end());
      for (const PatchKernel& kernel : cases.back().patch_kernels.kernels)
        boxes += kernel.correction.boxes.size();
    }
    kernels += texts.size();
    const auto module = EmulatorDevice().Load(texts);
    ASSERT_TRUE(module.ok()) << module.status();
    for (const CorrectionCase& one : cases) {
      for (const bool misaligned : {false, true}) {
        const absl::Status status = RunCase(one, **module, misaligned);
        EXPECT_TRUE(status.ok()) << status;
      }
    }
  }
  std::printf(
      "%ld random corrections from seed %ld: %zu kernels, %zu boxes, equal at every element\n",
      static_cast<long>(count), static_cast<long>(first), kernels, boxes);
}

TEST(Emulator, DividedSumsAreTotalledInOneOrder) {
  std::vector<CorrectionCase> cases;
  std::vector<EmittedKernel> texts;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    // Some sums have fewer steps than parts: the parts without a step are zeros.
    cases.push_back(WithDividedSums(RandomCase(seed), static_cast<int>(2 + seed % 4), "parted_"));
    texts.insert(texts.end(), cases.back().kernels.begin(), cases.back().kernels.end());
  }
  const auto module = EmulatorDevice().Load(texts);
  ASSERT_TRUE(module.ok()) << module.status();
  for (const CorrectionCase& one : cases) {
    for (const bool misaligned : {false, true}) {
      const absl::Status status = RunCase(one, **module, misaligned);
      EXPECT_TRUE(status.ok()) << status;
    }
  }
}

/// A kernel of one element a thread; y has room for one object of 64 bytes.
EmittedKernel Kernel(const std::string& name, const std::string& body) {
  EmittedKernel kernel;
  kernel.name = name;
  kernel.name_space = "text_" + name;
  kernel.text = Cat("namespace text_", name, " {\nstruct Row { float v[16]; };\n",
                    "extern \"C\" __global__ void ", name,
                    "(const float* __restrict__ x, float* __restrict__ y) {\n",
                    "  const Row* in = reinterpret_cast<const Row*>(x);\n  Row* out = "
                    "reinterpret_cast<Row*>(y);\n",
                    "  const unsigned i = threadIdx.x;\n", body, "\n}\n}\n");
  return kernel;
}

/// A kernel may access its own stack and the parameters that it gets by value. Copies of objects
/// are checked like loads and stores of numbers.
TEST(Emulator, ParametersAreLegalAndCopiesAreChecked) {
  const std::vector<EmittedKernel> kernels = {
      Kernel("plain", "y[i] = 2 * x[i];"),
      Kernel("on_stack", "Row row = in[0]; row.v[i % 16] += 1; out[0].v[i] = row.v[(i + 1) % 16];"),
      Kernel("copy", "if (i == 0) out[0] = in[0];"),
      Kernel("read_beyond", "if (i == 0) out[0] = in[1];"),
      Kernel("write_beyond", "if (i == 0) out[1] = in[0];"),
      Kernel("copied_twice", "if (i < 2) out[0] = in[0];"),
  };
  const std::map<std::string, std::string> faults = {{"read_beyond", "out of bounds"},
                                                     {"write_beyond", "out of bounds"},
                                                     {"copied_twice", "written twice"}};
  const auto module = EmulatorDevice().Load(kernels);
  ASSERT_TRUE(module.ok()) << module.status();
  for (const EmittedKernel& kernel : kernels) {
    alignas(64) std::array<float, 64> memory{};  // what lies beyond x and y is no buffer
    const std::span<float> x = std::span(memory).first(16), y = std::span(memory).subspan(32, 16);
    for (size_t k = 0; k < x.size(); ++k) x[k] = static_cast<float>(k + 1);
    const std::vector<Argument> arguments = {
        {.name = "x", .bytes = std::as_writable_bytes(x)},
        {.name = "y", .bytes = std::as_writable_bytes(y), .writable = true}};
    const absl::Status status = (*module)->Launch(kernel.name, {.grid = 1, .block = 16}, arguments);
    const auto fault = faults.find(kernel.name);
    if (fault == faults.end()) {
      EXPECT_TRUE(status.ok()) << kernel.name << ": " << status;
      EXPECT_EQ(y[2], kernel.name == "plain" ? 6 : kernel.name == "copy" ? 3 : 4) << kernel.name;
    } else {
      EXPECT_THAT(std::string(status.message()), testing::HasSubstr(fault->second)) << kernel.name;
    }
  }
}

/// A launch whose threads may have more registers than there are is refused, as by a driver.
TEST(Emulator, RegistersOfALaunchFit) {
  EmittedKernel bounded = Kernel("bounded", "y[i] = x[i];");
  const std::string entry = "__global__ void ";
  bounded.text.insert(bounded.text.find(entry) + entry.size(), "__launch_bounds__(512) ");
  const std::vector<EmittedKernel> kernels = {Kernel("free", "y[i] = x[i];"), bounded};
  const auto module = EmulatorDevice().Load(kernels);
  ASSERT_TRUE(module.ok()) << module.status();
  std::vector<float> x(1024, 1), y(1024);
  const auto launched = [&](const std::string& name, unsigned threads) {
    const std::vector<Argument> arguments = {
        {.name = "x", .bytes = std::as_writable_bytes(std::span(x))},
        {.name = "y", .bytes = std::as_writable_bytes(std::span(y)), .writable = true}};
    return (*module)->Launch(name, {.grid = 1, .block = threads}, arguments).ok();
  };
  EXPECT_TRUE(launched("free", 256));
  EXPECT_FALSE(launched("free", 257));
  EXPECT_TRUE(launched("bounded", 512));
  EXPECT_FALSE(launched("bounded", 513));
}

}  // namespace
}  // namespace mendel::cuda
