// Products by cuBLASLt where its calls, or the driver's, fail.

#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cuda/backend/executable.h"
#include "kernels/cuda/cublaslt/library.h"
#include "kernels/cuda/cublaslt/library_case.h"
#include "kernels/cuda/testing/device_case.h"
#include "kernels/cuda/testing/fake/fake_cublaslt.h"
#include "kernels/cuda/testing/fake/fake_driver.h"

namespace mendel::cuda {
namespace {

using cublaslt_case::kWorkspace;
using cublaslt_case::Net;
using cublaslt_case::NetInput;
using cublaslt_case::Rig;
using testing::ElementsAre;
using testing::HasSubstr;

/// Net() by a library of its own, run once; the steps report what was taken along.
struct NetRun {
  FakeDriver& driver;
  const CublasLt& lt;
  int64_t calls_of_lowering = 0;
  std::string first_call = "";

  absl::StatusOr<DeviceProgram> Lower(const CublasLtLibrary& library) {
    const CallLibrary* const libraries[] = {&library};
    return LowerToDevice(
        Net(), {.algorithms = {{4, "cublaslt"}, {8, "cublaslt:2"}}, .libraries = libraries});
  }
  absl::Status operator()() {
    const CublasLtLibrary library(lt, driver.table(), kWorkspace);
    MENDEL_ASSIGN_OR_RETURN(DeviceProgram program, Lower(library));
    calls_of_lowering = driver.Calls();
    for (const DeviceLaunch& launch : program.launches) {
      if (launch.call != nullptr && launch.info.nodes[0] == 4) first_call = launch.info.kernel;
    }
    MENDEL_ASSIGN_OR_RETURN(const auto executable,
                            MakeExecutable(driver.table(), std::move(program), &TextImage));
    return RunOnTensors(*executable, Net(), std::vector<Tensor>{NetInput().ToTensor()}).status();
  }
};

/// With every length of the first product's epilogue, so that nothing is compiled later on.
void PrepareNet(FakeDriver& driver, FakeCublasLt& lt) {
  const uint32_t bias = cublaslt::kBias;
  for (const auto& limits : {std::map<uint32_t, int>{},
                             {{cublaslt::kRelu | bias, 0}},
                             {{cublaslt::kRelu | bias, 0}, {bias, 0}}}) {
    for (const auto& [epilogue, most] : limits) lt.LimitProposals(epilogue, most);
    const CublasLtLibrary library(lt.table(), driver.table(), kWorkspace);
    const auto program = NetRun{driver, lt.table()}.Lower(library);
    ASSERT_TRUE(program.ok()) << program.status();
    ASSERT_TRUE(driver.Prepare(program->ModuleText()).ok());
    for (const auto& [epilogue, most] : limits)
      lt.LimitProposals(epilogue, static_cast<int>(kMostOffered));
  }
}

TEST(CublasLt, EveryCallMayFail) {
  FakeDriver driver;
  FakeCublasLt lt;
  PrepareNet(driver, lt);
  driver.FailAt(0);
  NetRun whole{driver, lt.table()};
  ASSERT_TRUE(whole().ok());
  ASSERT_EQ(whole.first_call, "cublaslt_bias_relu");
  const int64_t calls = driver.Calls();
  std::set<std::string> failed, taken;
  for (int64_t call = 1; call <= calls; ++call) {
    for (const int error : {cublaslt::kAllocationFailed, cublaslt::kNotSupported, 999}) {
      driver.FailAt(call, error);
      NetRun run{driver, lt.table()};
      const absl::Status status = run();
      const std::string entry = driver.FailedCall();
      EXPECT_EQ(driver.Leaks(), "") << call << " " << entry;
      EXPECT_EQ(lt.Leaks(), "") << call << " " << entry;
      if (!entry.starts_with("cublasLt")) continue;  // executable_test.cc
      failed.insert(entry);
      // No heuristics for a product is no algorithm for it.
      const bool none =
          entry == "cublasLtMatmulAlgoGetHeuristic" && error == cublaslt::kNotSupported;
      if (status.ok()) {
        // A length of the epilogue that cuBLASLt errs for is left out; that there is no memory is
        // reported.
        const bool left_out = call <= whole.calls_of_lowering && entry != "cublasLtCreate" &&
                              error != cublaslt::kAllocationFailed;
        EXPECT_TRUE(left_out || entry.ends_with("Destroy")) << call << " " << entry << " " << error;
        taken.insert(run.first_call);
        continue;
      }
      EXPECT_FALSE(entry.ends_with("Destroy")) << call << " " << entry;
      EXPECT_THAT(std::string(status.message()), HasSubstr(none ? "has no algorithm for" : entry));
      const absl::StatusCode expected =
          none ? absl::StatusCode::kInvalidArgument
               : (error == cublaslt::kAllocationFailed
                      ? absl::StatusCode::kResourceExhausted
                      : (error == cublaslt::kNotSupported ? absl::StatusCode::kUnimplemented
                                                          : absl::StatusCode::kInternal));
      EXPECT_EQ(status.code(), expected) << entry << " " << status;
    }
  }
  EXPECT_EQ(failed.size(), 13u);  // the whole table but versions and texts
  EXPECT_THAT(taken, ElementsAre("cublaslt_bias", "cublaslt_bias_relu"));
  std::printf("%lld calls, each failed once with each of three errors\n",
              static_cast<long long>(calls));
}

TEST(CublasLt, AnErrorOfOneEpilogueLeavesTheOthers) {
  Rig rig;
  const auto offered = [&](int64_t failing_call) {
    const CublasLtLibrary library(rig.lt.table(), rig.driver.table(), kWorkspace);
    const CallLibrary* const libraries[] = {&library};
    rig.driver.FailAt(failing_call, 999);
    return LibraryAlgorithms(Net(), 4, Numerics::kDefault, libraries).size();
  };
  EXPECT_EQ(offered(0), 3u);
  const int64_t calls = rig.driver.Calls();
  std::vector<size_t> by_heuristic;
  for (int64_t call = 1; call <= calls; ++call) {
    const size_t count = offered(call);
    if (rig.driver.FailedCall() == "cublasLtMatmulAlgoGetHeuristic") by_heuristic.push_back(count);
  }
  EXPECT_THAT(by_heuristic, ElementsAre(3, 3, 0)) << "with bias and Relu, with bias, alone";
}

}  // namespace
}  // namespace mendel::cuda
