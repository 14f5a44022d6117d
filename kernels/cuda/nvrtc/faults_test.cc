// The compiler and the device's queries over tables that fail: each call once, versions that are
// too old.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "kernels/cuda/nvrtc/compiler.h"
#include "kernels/cuda/nvrtc/installation.h"
#include "kernels/cuda/nvrtc/target_gpu.h"
#include "kernels/cuda/testing/fake/fake_driver.h"
#include "kernels/cuda/testing/fake/fake_image.h"
#include "kernels/cuda/testing/fake/fake_nvrtc.h"

namespace mendel::cuda {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kText[] =
    "extern \"C\" __global__ void twice(float* y, const float* x) { *y = 2 * *x; }\n";
constexpr char kBroken[] = "extern \"C\" __global__ void twice() { nonsense; }\n";

std::string Description(const absl::Status& status) { return std::string(status.message()); }

absl::Status MakeAndCompile(const FakeNvrtc& nvrtc) {
  const auto compiler = Compiler::Make(nvrtc.table());
  if (!compiler.ok()) return compiler.status();
  return compiler->Compile(kText, "twice", 90).status();
}

TEST(Compiler, MakesWhatTheDriverLoads) {
  FakeNvrtc nvrtc;
  const auto compiler = Compiler::Make(nvrtc.table());
  ASSERT_TRUE(compiler.ok()) << compiler.status();
  EXPECT_EQ(compiler->version(), "13.99");
  EXPECT_EQ(compiler->path(), "made up");
  EXPECT_TRUE(compiler->Supports(75) && compiler->Supports(120));
  EXPECT_FALSE(compiler->Supports(70));
  const auto compiled = compiler->Compile(kText, "twice", 80);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  EXPECT_EQ(compiled->usage.registers, 32);
  EXPECT_EQ(ReadFakeImage(compiled->cubin.data()).architecture, 80);
  EXPECT_THAT(ReadFakeImage(compiled->cubin.data()).entries, testing::ElementsAre("twice"));
  FakeDriver driver;
  DriverModule* module = nullptr;
  EXPECT_EQ(driver.table().ModuleLoadData(&module, compiled->cubin.data()), 209)
      << "an image for sm_80";
  driver.SetArchitecture(80);
  ASSERT_EQ(driver.table().ModuleLoadData(&module, compiled->cubin.data()), 0);
  DriverFunction* function = nullptr;
  EXPECT_EQ(driver.table().ModuleGetFunction(&function, module, "twice"), 0);
  EXPECT_EQ(driver.table().ModuleUnload(module), 0);
}

TEST(Compiler, EveryCallMayFail) {
  FakeNvrtc nvrtc;
  int64_t call = 1;
  for (;; ++call) {
    nvrtc.FailAt(call);
    const absl::Status status = MakeAndCompile(nvrtc);
    const std::string entry = nvrtc.FailedCall();
    if (entry.empty()) {
      EXPECT_TRUE(status.ok()) << status;
      break;
    }
    EXPECT_EQ(nvrtc.Programs(), 0u) << entry;
    if (entry == "nvrtcDestroyProgram") continue;  // what was compiled is there
    EXPECT_TRUE(absl::IsUnavailable(status)) << entry << ": " << status;
    EXPECT_THAT(Description(status),
                AllOf(HasSubstr(entry), HasSubstr("NVRTC_ERROR_INTERNAL_ERROR (11)")))
        << entry;
  }
  EXPECT_EQ(call, 11) << "as many calls as there are entries that may fail";
}

TEST(Compiler, TextsThatDoNotCompileGiveTheLog) {
  FakeNvrtc nvrtc;
  const auto compiler = Compiler::Make(nvrtc.table());
  ASSERT_TRUE(compiler.ok());
  const absl::Status wrong = compiler->Compile(kBroken, "plan", 90).status();
  EXPECT_TRUE(absl::IsInvalidArgument(wrong)) << wrong;
  EXPECT_THAT(Description(wrong), AllOf(HasSubstr("plan for sm_90"), HasSubstr("nonsense")));
  EXPECT_TRUE(absl::IsUnavailable(compiler->Compile(kText, "plan", 70).status()))
      << "an architecture that it does not know";
  EXPECT_EQ(nvrtc.Programs(), 0u);
}

TEST(Compiler, AnOldOneIsRefused) {
  FakeNvrtc nvrtc;
  nvrtc.SetVersion(11, 3);
  const auto old = Compiler::Make(nvrtc.table());
  EXPECT_EQ(old.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Description(old.status()), HasSubstr("made up is version 11.3, older than 11.4"));
}

class TargetGpuTest : public testing::Test {
 protected:
  absl::StatusOr<TargetGpu> Find() { return FindTargetGpu(driver_.table(), *compiler_); }
  FakeDriver driver_;
  FakeNvrtc nvrtc_;
  absl::StatusOr<Compiler> compiler_ = Compiler::Make(nvrtc_.table());
};

TEST_F(TargetGpuTest, IsNamedWithItsArchitecture) {
  driver_.SetArchitecture(120);
  const auto gpu = Find();
  ASSERT_TRUE(gpu.ok()) << gpu.status();
  EXPECT_EQ(gpu->name, "emulated device");
  EXPECT_EQ(gpu->architecture, 120);
}

TEST_F(TargetGpuTest, ACompilerThatDoesNotKnowItIsNamed) {
  driver_.SetArchitecture(121);
  const auto gpu = Find();
  EXPECT_EQ(gpu.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Description(gpu.status()),
              HasSubstr("NVRTC 13.99 does not know sm_121 of emulated device"));
}

TEST_F(TargetGpuTest, EveryQueryMayFail) {
  for (int64_t call = 1; call <= 4; ++call) {
    driver_.FailAt(call);
    const auto gpu = Find();
    EXPECT_EQ(gpu.status().code(), absl::StatusCode::kInternal) << call;
    EXPECT_THAT(Description(gpu.status()), HasSubstr("cu" + driver_.FailedCall())) << call;
  }
  driver_.FailAt(5);
  EXPECT_TRUE(Find().ok() && !driver_.HasFailed());
}

TEST(DescribeDevice, LeavesOutWhatIsNotReported) {
  FakeDriver driver;
  EXPECT_EQ(DescribeDevice(driver.table()),
            "device: emulated device, sm_90, 4 multiprocessors at 1980 MHz, 1.0 GiB at 2619 MHz");
  const auto without = [&](int64_t call) {
    driver.FailAt(call);
    return DescribeDevice(driver.table());
  };
  EXPECT_EQ(without(1), "device: not reported");
  EXPECT_EQ(without(2), "device: not reported");
  EXPECT_EQ(without(3),
            "device: emulated device, 4 multiprocessors at 1980 MHz, 1.0 GiB at 2619 MHz")
      << "no architecture";
  EXPECT_EQ(without(5), "device: emulated device, sm_90, 1.0 GiB at 2619 MHz")
      << "no number of multiprocessors";
  EXPECT_EQ(without(6), "device: emulated device, sm_90, 4 multiprocessors, 1.0 GiB at 2619 MHz");
  EXPECT_EQ(without(7), "device: emulated device, sm_90, 4 multiprocessors at 1980 MHz")
      << "no memory";
  EXPECT_EQ(without(8), "device: emulated device, sm_90, 4 multiprocessors at 1980 MHz, 1.0 GiB");
}

}  // namespace
}  // namespace mendel::cuda
