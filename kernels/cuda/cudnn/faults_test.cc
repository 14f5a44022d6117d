// Tests of convolutions by cuDNN where its calls, or the driver's, fail.

#include <cstdio>
#include <set>
#include <string>
#include <utility>

#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cuda/backend/executable.h"
#include "kernels/cuda/cudnn/library.h"
#include "kernels/cuda/cudnn/library_case.h"
#include "kernels/cuda/testing/device_case.h"
#include "kernels/cuda/testing/fake/fake_cudnn.h"
#include "kernels/cuda/testing/fake/fake_driver.h"

namespace mendel::cuda {
namespace {

using cudnn_case::FiftyNumbers;
using cudnn_case::kConv;
using cudnn_case::kDevice;
using cudnn_case::kWorkspace;
using cudnn_case::Parsed;
using testing::HasSubstr;

/// A chain whose calls share a handle; the second has workspace.
Graph Net() {
  return Parsed(std::string(kConv) + R"(%5 = Add(%2, %4)
    %6 = Add(%5, %3)
    %7 = Conv(%6, %1) {dilations = [1, 1], group = 1, pads = [0, 0, 0, 0], strides = [1, 1]}
    %8 = Relu(%7)
    %9 = Sin(%8)
    return "y" = %9)");
}

absl::StatusOr<DeviceCase> LoweredNet(const CallLibrary& library) {
  const CallLibrary* const libraries[] = {&library};
  DeviceCase one{"", Net(), {}, {}};
  one.inputs.push_back(FiftyNumbers());
  MENDEL_ASSIGN_OR_RETURN(
      one.program, LowerToDevice(one.graph, {.algorithms = {{2, "cudnn"}, {7, "cudnn-nhwc:2"}},
                                             .libraries = libraries}));
  return one;
}

TEST(CudnnLibrary, EveryCallMayFail) {
  FakeDriver driver;
  FakeCudnn fake;
  const auto run = [&]() -> std::string {
    const CudnnLibrary library(fake.table(), kDevice, kWorkspace);
    const auto one = LoweredNet(library);
    return one.ok() ? FailureOn(driver.table(), &TextImage, *one)
                    : std::string(one.status().message());
  };
  // Kernels compute the rest where a longer epilogue is answered with an error.
  std::set<std::string> modules;
  int64_t whole_planning = 1;
  for (int64_t call = 0; call <= whole_planning; ++call) {
    fake.FailAt(call);
    const CudnnLibrary library(fake.table(), kDevice, kWorkspace);
    const auto one = LoweredNet(library);
    if (call == 0) whole_planning = fake.Calls();
    if (one.ok()) modules.insert(one->program.ModuleText());
  }
  EXPECT_GT(modules.size(), 1u);
  for (const std::string& text : modules) ASSERT_TRUE(driver.Prepare(text).ok());
  driver.FailAt(0);
  fake.FailAt(0);
  ASSERT_EQ(run(), "");
  const int64_t calls = fake.Calls(), driver_calls = driver.Calls();
  int without_an_engine = 0;
  for (int64_t call = 1; call <= calls; ++call) {
    fake.FailAt(call);
    const std::string failure = run();
    const bool gives_back =
        fake.FailedCall() == "BackendDestroyDescriptor" || fake.FailedCall() == "Destroy";
    // An engine that fails during planning is left out, so that later engines are others, or one
    // less.
    const bool left_out =
        call <= whole_planning &&
        (failure.empty() || failure.find("has no algorithm 'cudnn-nhwc:2'") != std::string::npos);
    if (!gives_back && left_out) {
      ++without_an_engine;
    } else {
      EXPECT_EQ(failure.empty(), gives_back) << call << " " << fake.FailedCall();
      EXPECT_THAT(failure, HasSubstr(gives_back ? "" : "injected (4000)"));
    }
    EXPECT_EQ(fake.Leaks() + driver.Leaks(), "") << call << " " << fake.FailedCall();
  }
  EXPECT_GT(without_an_engine, 0);
  fake.FailAt(0);
  for (int64_t call = 1; call <= driver_calls; ++call) {
    driver.FailAt(call);
    const std::string failure = run();
    EXPECT_THAT(failure, HasSubstr(failure.empty() ? "" : "cu" + driver.FailedCall()));
    EXPECT_EQ(fake.Leaks() + driver.Leaks(), "") << call << " " << driver.FailedCall();
  }
  std::printf("%lld calls of cuDNN and %lld of the driver, each failed once\n",
              static_cast<long long>(calls), static_cast<long long>(driver_calls));
}

TEST(CudnnLibrary, AnotherVersionDoesNotTakeAPlan) {
  FakeDriver driver;
  FakeCudnn fake;
  const CudnnLibrary library(fake.table(), kDevice, kWorkspace);
  const auto one = LoweredNet(library);
  ASSERT_TRUE(one.ok()) << one.status();
  ASSERT_TRUE(driver.Prepare(one->program.ModuleText()).ok());
  fake.SetVersion(92001);
  const auto loaded = MakeExecutable(driver.table(), one->program, &TextImage);
  EXPECT_EQ(loaded.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(loaded.status().message()),
              HasSubstr("cuDNN 9.20.1 does not make the plan of engine 0 again"));
  EXPECT_THAT(std::string(loaded.status().message()),
              HasSubstr("the plan of another version (1003)"));
  EXPECT_EQ(fake.Leaks() + driver.Leaks(), "");
}

TEST(CudnnLibrary, PropertiesOfADeviceThatIsHere) {
  FakeCudnn fake;
  EXPECT_EQ(*DevicePropertiesOf(fake.table(), 0), kDevice);
  EXPECT_FALSE(DevicePropertiesOf(fake.table(), 1).ok());
  EXPECT_EQ(fake.Leaks(), "");
}

}  // namespace
}  // namespace mendel::cuda
