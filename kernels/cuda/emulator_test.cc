// Every emitted kernel is executed and compared with the operators' float64 meaning over the whole of the mutant's output.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "kernels/cuda/emulator/device.h"
#include "kernels/cuda/mending_case.h"

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
    std::vector<MendingCase> cases;
    std::vector<EmittedKernel> texts;
    for (int64_t seed = begin; seed < std::min(begin + kTogether, first + count); ++seed) {
      cases.push_back(RandomCase(static_cast<uint64_t>(seed)));
      texts.insert(texts.end(), cases.back().kernels.begin(), cases.back().kernels.end());
      for (const MendingKernel& kernel : cases.back().mending.kernels) boxes += kernel.correction.boxes.size();
    }
    kernels += texts.size();
    const auto module = EmulatorDevice().Load(texts);
    ASSERT_TRUE(module.ok()) << module.status();
    for (const MendingCase& one : cases) {
      for (const bool misaligned : {false, true}) {
        const absl::Status status = RunCase(one, **module, misaligned);
        EXPECT_TRUE(status.ok()) << status;
      }
    }
  }
  std::printf("%ld random corrections from seed %ld: %zu kernels, %zu boxes, equal at every element\n", static_cast<long>(count),
              static_cast<long>(first), kernels, boxes);
}

}  // namespace
}  // namespace mendel::cuda
