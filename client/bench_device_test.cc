// `mendel bench` where a backend has a device of its own: its lock, and what it reports about its
// clock.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "client/command.h"
#include "runtime/backend.h"
#include "runtime/measuring_device.h"
#include "runtime/plan_bundle.h"
#include "runtime/test_backend.h"
#include "runtime/test_plan.h"

namespace mendel {
namespace {

using testing::HasSubstr;

constexpr char kMeasuredBackend[] = "test_measured";

/// Its clock rises while it works; `silent`: it reports nothing.
class TestDevice final : public MeasuringDevice {
 public:
  absl::StatusOr<DeviceConditions> Conditions() const override {
    if (silent) return absl::NotFoundError("no library reports them");
    DeviceConditions conditions;
    conditions.clock_mhz = runs == 0 ? 300 : 1500;
    conditions.max_clock_mhz = 1980;
    conditions.held_by.emplace();
    if (runs == 0) conditions.held_by->push_back("idleness");
    return conditions;
  }
  absl::StatusOr<std::unique_ptr<DeviceLock>> Lock(const LockWait& wait) const override {
    MENDEL_ASSIGN_OR_RETURN(auto lock, DeviceLock::Take("test-device", wait));
    ++locks;
    return lock;
  }
  static inline bool silent = false;
  static inline int runs = 0, locks = 0;
};

/// Takes two milliseconds of its device's own time, whatever the wall clock says.
class TestExecutable final : public Executable {
 public:
  explicit TestExecutable(std::unique_ptr<Executable> host) : host_(std::move(host)) {}
  absl::Status Run(std::span<const std::span<const std::byte>> inputs,
                   std::span<const std::span<std::byte>> outputs) override {
    return host_->Run(inputs, outputs);
  }
  absl::StatusOr<double> TimeRun(std::span<const std::span<const std::byte>> inputs,
                                 std::span<const std::span<std::byte>> outputs,
                                 const std::function<void()>&) override {
    ++TestDevice::runs;
    EXPECT_FALSE(DeviceLock::Take("test-device", {.seconds = 0}).ok())
        << "measured without the lock";
    MENDEL_RETURN_IF_ERROR(host_->Run(inputs, outputs));
    return 0.002;
  }
  const std::vector<Step>& steps() const override { return host_->steps(); }
  absl::Status RunTimed(std::span<const std::span<const std::byte>> inputs,
                        std::span<const std::span<std::byte>> outputs,
                        std::vector<double>& seconds) override {
    return host_->RunTimed(inputs, outputs, seconds);
  }
  MemoryReport memory() const override { return {}; }

 private:
  std::unique_ptr<Executable> host_;
};

class MeasuredBackend final : public Backend {
 public:
  std::string_view name() const override { return kMeasuredBackend; }
  absl::Status Probe() const override { return absl::OkStatus(); }
  std::string Identity() const override { return kTestIdentity; }
  std::vector<std::string> Algorithms(const Graph&, int32_t, Numerics) const override { return {}; }
  absl::StatusOr<std::unique_ptr<Executable>> Compile(
      const Graph& graph, const CompileOptions& options) const override {
    MENDEL_ASSIGN_OR_RETURN(auto host, FindBackend(kTestBackend)->Compile(graph, options));
    return std::make_unique<TestExecutable>(std::move(host));
  }
  const MeasuringDevice* measuring_device() const override {
    static const TestDevice device;
    return &device;
  }
};
const Backend* MakeMeasuredBackend() {
  static const MeasuredBackend backend;
  return &backend;
}
MENDEL_REGISTER_BACKEND(&MakeMeasuredBackend);

class TestContext final : public Context {
 public:
  bool json() const override { return false; }
  nlohmann::ordered_json& facts() override { return facts_; }
  void Line(const std::string& text) override { lines += text + "\n"; }
  void Note(const std::string&) override {}
  void Answer(ExitCode) override {}
  void Input(const std::string&) override {}
  std::string lines;

 private:
  nlohmann::ordered_json facts_ = nlohmann::ordered_json::object();
};

class BenchOnADevice : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / Cat("bench-", ::getpid());
    std::filesystem::create_directories(folder_);
    ::setenv("MENDEL_LOCK_DIR", folder_.c_str(), 1);
    TestDevice::runs = TestDevice::locks = 0;
    TestDevice::silent = false;
  }
  void TearDown() override {
    ::unsetenv("MENDEL_LOCK_DIR");
    std::filesystem::remove_all(folder_);
  }
  absl::Status Bench(const std::vector<Plan>& plans) {
    const std::string path = (folder_ / "bench.plan").string();
    MENDEL_RETURN_IF_ERROR(WritePlans(plans, path));
    const auto commands = AllCommands();
    const auto bench = std::find_if(commands.begin(), commands.end(),
                                    [](const Command* one) { return one->name == "bench"; });
    CLI::App app;
    const Action action = (*bench)->setup(app);
    app.parse(Cat("--duration 1ms ", path));
    return action(context_);
  }
  std::filesystem::path folder_;
  TestContext context_;
};

TEST_F(BenchOnADevice, LocksItAndReportsItsClock) {
  const absl::Status status = Bench({SmallPlan(kMeasuredBackend)});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(context_.lines, HasSubstr("median 2.000 ms"));
  EXPECT_THAT(context_.lines, HasSubstr("device before  300 of 1980 MHz, throttled by idleness\n"));
  EXPECT_THAT(context_.lines, HasSubstr("device after   1500 of 1980 MHz, not throttled\n"));
  EXPECT_EQ(context_.facts()["device"]["before"].dump(),
            R"({"clock_mhz":300,"max_clock_mhz":1980,"held_by":["idleness"]})");
  EXPECT_EQ(context_.facts()["device"]["after"].dump(),
            R"({"clock_mhz":1500,"max_clock_mhz":1980,"held_by":[]})");
  EXPECT_EQ(TestDevice::locks, 1);
  EXPECT_TRUE(DeviceLock::Take("test-device", {.seconds = 0}).ok()) << "given back";
}

TEST_F(BenchOnADevice, MembersShareTheLock) {
  const absl::Status status = Bench(SmallBundle(kMeasuredBackend));
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(TestDevice::locks, 1);
  ASSERT_EQ(context_.facts()["members"].size(), 3u);
  EXPECT_EQ(context_.facts()["members"][2]["device"]["after"]["clock_mhz"], 1500);
}

TEST_F(BenchOnADevice, MeasuresWithoutKnowingTheClock) {
  TestDevice::silent = true;
  const absl::Status status = Bench({SmallPlan(kMeasuredBackend)});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(context_.lines, HasSubstr("device after   not reported: no library reports them"));
  EXPECT_EQ(context_.facts()["device"]["before"]["not_told"], "no library reports them");
}

TEST_F(BenchOnADevice, AProcessorHasNone) {
  const absl::Status status = Bench({SmallPlan(kTestBackend)});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(context_.lines, testing::Not(HasSubstr("device")));
  EXPECT_FALSE(context_.facts().contains("device"));
  EXPECT_EQ(TestDevice::locks, 0);
}

}  // namespace
}  // namespace mendel
