#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>
#include <thread>
#include <utility>

#include "base/status.h"
#include "graph/evaluate.h"
#include "runtime/backend.h"
#include "runtime/measure.h"
#include "runtime/mendel.h"
#include "runtime/plan_bundle.h"
#include "runtime/test_backend.h"
#include "runtime/test_plan.h"

namespace mendel {
namespace {

constexpr char kDeviceBackend[] = "test_device";

/// The test backend with a device whose addresses are the host's. `last` records the last run's
/// arguments.
class DeviceExecutable final : public Executable {
 public:
  explicit DeviceExecutable(const Graph& graph, std::unique_ptr<Executable> host)
      : graph_(graph), host_(std::move(host)) {}
  absl::Status Run(std::span<const std::span<const std::byte>> inputs,
                   std::span<const std::span<std::byte>> outputs) override {
    return host_->Run(inputs, outputs);
  }
  std::string device() const override { return "test_device:0"; }
  absl::Status RunOnDevice(const DeviceRun& run) override {
    last = run;
    std::vector<std::span<const std::byte>> inputs;
    std::vector<std::span<std::byte>> outputs;
    for (size_t k = 0; k < run.inputs.size(); ++k) {
      const auto bytes = static_cast<size_t>(ByteSize(graph_.type({graph_.inputs()[k], 0})));
      inputs.emplace_back(reinterpret_cast<const std::byte*>(run.inputs[k]), bytes);
    }
    for (size_t k = 0; k < run.outputs.size(); ++k) {
      const auto bytes = static_cast<size_t>(ByteSize(graph_.type(graph_.outputs()[k].value)));
      outputs.emplace_back(reinterpret_cast<std::byte*>(run.outputs[k]), bytes);
    }
    return host_->Run(inputs, outputs);
  }
  const std::vector<Step>& steps() const override { return host_->steps(); }
  absl::Status RunTimed(std::span<const std::span<const std::byte>> inputs,
                        std::span<const std::span<std::byte>> outputs,
                        std::vector<double>& seconds) override {
    return host_->RunTimed(inputs, outputs, seconds);
  }
  MemoryReport memory() const override { return {}; }

  static DeviceRun last;

 private:
  const Graph graph_;
  std::unique_ptr<Executable> host_;
};
DeviceRun DeviceExecutable::last;

class DeviceBackend final : public Backend {
 public:
  std::string_view name() const override { return kDeviceBackend; }
  absl::Status Probe() const override { return absl::OkStatus(); }
  std::string Identity() const override { return kTestIdentity; }
  std::vector<std::string> Algorithms(const Graph&, int32_t, Numerics) const override { return {}; }
  absl::StatusOr<std::unique_ptr<Executable>> Compile(
      const Graph& graph, const CompileOptions& options) const override {
    MENDEL_ASSIGN_OR_RETURN(auto host, FindBackend(kTestBackend)->Compile(graph, options));
    return std::make_unique<DeviceExecutable>(graph, std::move(host));
  }
};
const Backend* MakeDeviceBackend() {
  static const DeviceBackend backend;
  return &backend;
}
MENDEL_REGISTER_BACKEND(&MakeDeviceBackend);

class CApi : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "/" + std::to_string(::getpid()) + "-c.plan";
    ASSERT_TRUE(WritePlan(SmallPlan(kTestBackend), path_).ok());
  }
  void TearDown() override { std::filesystem::remove(path_); }
  std::string path_;
};

TEST_F(CApi, LoadsDescribesAndRuns) {
  mendel_plan* plan = mendel_load(path_.c_str(), 0);
  ASSERT_NE(plan, nullptr) << mendel_last_error();
  EXPECT_EQ(mendel_input_count(plan), 1);
  EXPECT_EQ(mendel_output_count(plan), 1);
  mendel_value value;
  ASSERT_EQ(mendel_input(plan, 0, &value), MENDEL_OK);
  EXPECT_STREQ(value.name, "x");
  EXPECT_EQ(value.dtype, MENDEL_F32);
  ASSERT_EQ(value.rank, 2);
  EXPECT_EQ(value.shape[1], 8);
  EXPECT_EQ(value.bytes, 64u);
  ASSERT_EQ(mendel_output(plan, 0, &value), MENDEL_OK);
  EXPECT_STREQ(value.name, "y");

  const Tensor x = RandomInputs(SmallPlan(kTestBackend).graph, 3)[0];
  std::vector<float> y(6);
  const void* inputs[] = {x.bytes().data()};
  void* outputs[] = {y.data()};
  ASSERT_EQ(mendel_run(plan, inputs, outputs), MENDEL_OK) << mendel_last_error();
  const auto expected =
      Evaluate(SmallPlan(kTestBackend).graph, std::vector<HostValue>{HostValue::FromTensor(x)});
  ASSERT_TRUE(expected.ok());
  const Tensor wanted = (*expected)[0].ToTensor();
  EXPECT_THAT(y, testing::ElementsAreArray(wanted.As<float>()));
  mendel_free(plan);
}

TEST_F(CApi, LoadOptionsAreChecked) {
  mendel_load_options options = {sizeof(options), 1, "none"};
  mendel_plan* plan = mendel_load_with(path_.c_str(), &options);
  EXPECT_NE(plan, nullptr) << mendel_last_error();
  mendel_free(plan);
  plan = mendel_load_with(path_.c_str(), nullptr);
  EXPECT_NE(plan, nullptr) << mendel_last_error();
  mendel_free(plan);
  options.affinity = "everywhere";
  EXPECT_EQ(mendel_load_with(path_.c_str(), &options), nullptr);
  EXPECT_THAT(mendel_last_error(), testing::HasSubstr("not 'everywhere'"));
  options.affinity = "cores";
  EXPECT_EQ(mendel_load_with(path_.c_str(), &options), nullptr);
  EXPECT_THAT(mendel_last_error(), testing::HasSubstr("cannot be pinned"));
  options.size = 4;
  EXPECT_EQ(mendel_load_with(path_.c_str(), &options), nullptr);
  EXPECT_THAT(mendel_last_error(), testing::HasSubstr("4 bytes"));
}

TEST_F(CApi, RunsWithBuffersOnTheDevice) {
  Plan small = SmallPlan(kTestBackend);
  small.info.mutable_target()->set_backend(kDeviceBackend);
  ASSERT_TRUE(WritePlan(small, path_).ok());
  mendel_plan* plan = mendel_load(path_.c_str(), 0);
  ASSERT_NE(plan, nullptr) << mendel_last_error();
  EXPECT_STREQ(mendel_device(plan), "test_device:0");
  const Tensor x = RandomInputs(small.graph, 3)[0];
  std::vector<float> y(6), expected(6);
  const void* inputs[] = {x.bytes().data()};
  void* outputs[] = {y.data()};
  void* wanted[] = {expected.data()};
  int stream = 0, event = 0;
  ASSERT_EQ(mendel_run(plan, inputs, wanted), MENDEL_OK);
  ASSERT_EQ(mendel_run_device(plan, inputs, outputs, &stream, &event), MENDEL_OK)
      << mendel_last_error();
  EXPECT_EQ(y, expected);
  EXPECT_EQ(DeviceExecutable::last.stream, &stream);
  EXPECT_EQ(DeviceExecutable::last.ready_event, &event);
  EXPECT_EQ(mendel_run_device(plan, nullptr, outputs, nullptr, nullptr), MENDEL_INVALID);
  EXPECT_THAT(mendel_last_error(), testing::HasSubstr("inputs are NULL"));
  EXPECT_EQ(mendel_run_device(plan, inputs, nullptr, nullptr, nullptr), MENDEL_INVALID);
  mendel_free(plan);
}

TEST_F(CApi, APlanOfTheHostHasNoDevice) {
  mendel_plan* plan = mendel_load(path_.c_str(), 0);
  ASSERT_NE(plan, nullptr) << mendel_last_error();
  EXPECT_STREQ(mendel_device(plan), "cpu");
  const float x[16] = {};
  float y[6];
  const void* inputs[] = {x};
  void* outputs[] = {y};
  EXPECT_EQ(mendel_run_device(plan, inputs, outputs, nullptr, nullptr), MENDEL_UNSUPPORTED);
  EXPECT_THAT(mendel_last_error(), testing::HasSubstr("runs on cpu"));
  EXPECT_EQ(mendel_run_device(nullptr, inputs, outputs, nullptr, nullptr), MENDEL_INVALID);
  EXPECT_EQ(mendel_device(nullptr), nullptr);
  mendel_free(plan);
}

TEST_F(CApi, ChoosesTheMemberOfABundle) {
  const std::vector<Plan> members = SmallBundle(kTestBackend);
  ASSERT_TRUE(WritePlanBundle(members, path_).ok());
  mendel_plan* plan = mendel_load(path_.c_str(), 0);
  ASSERT_NE(plan, nullptr) << mendel_last_error();
  EXPECT_EQ(mendel_member_count(plan), 3);
  mendel_value first;
  ASSERT_EQ(mendel_input(plan, 0, &first), MENDEL_OK);
  for (const size_t number : {2, 0, 1}) {
    const Graph& graph = members[number].graph;
    const Tensor x = RandomInputs(graph, 3 + number)[0];
    const auto expected = Evaluate(graph, std::vector<HostValue>{HostValue::FromTensor(x)});
    ASSERT_TRUE(expected.ok());
    const Tensor wanted = (*expected)[0].ToTensor();
    std::vector<float> y(wanted.As<float>().size());
    const int rank = 2;
    const int64_t* shape = x.shape().data();
    const void* inputs[] = {x.bytes().data()};
    void* outputs[] = {y.data()};
    ASSERT_EQ(mendel_run_shapes(plan, &rank, &shape, inputs, outputs), MENDEL_OK)
        << mendel_last_error();
    EXPECT_THAT(y, testing::ElementsAreArray(wanted.As<float>()));
    mendel_value value;
    ASSERT_EQ(mendel_input(plan, 0, &value), MENDEL_OK);
    EXPECT_EQ(value.shape[0], x.shape()[0]);
    std::fill(y.begin(), y.end(), 0.0f);
    ASSERT_EQ(mendel_select(plan, static_cast<int>(number)), MENDEL_OK);
    ASSERT_EQ(mendel_run(plan, inputs, outputs), MENDEL_OK);
    EXPECT_THAT(y, testing::ElementsAreArray(wanted.As<float>()));
  }
  EXPECT_EQ(first.shape[0], 2);  // descriptions outlive other selections
  mendel_free(plan);
}

TEST_F(CApi, ThreadsTakeTurnsWithOneHandle) {
  const std::vector<Plan> members = SmallBundle(kTestBackend);
  ASSERT_TRUE(WritePlanBundle(members, path_).ok());
  mendel_plan* plan = mendel_load(path_.c_str(), 0);
  ASSERT_NE(plan, nullptr) << mendel_last_error();
  const auto work = [&](size_t number) {
    const Graph& graph = members[number].graph;
    for (uint64_t round = 0; round < 20; ++round) {
      const Tensor x = RandomInputs(graph, 10 * round + number)[0];
      const auto expected = Evaluate(graph, std::vector<HostValue>{HostValue::FromTensor(x)});
      ASSERT_TRUE(expected.ok());
      const Tensor wanted = (*expected)[0].ToTensor();
      std::vector<float> y(wanted.As<float>().size());
      const int rank = 2;
      const int64_t* shape = x.shape().data();
      const void* inputs[] = {x.bytes().data()};
      void* outputs[] = {y.data()};
      ASSERT_EQ(mendel_run_shapes(plan, &rank, &shape, inputs, outputs), MENDEL_OK);
      EXPECT_THAT(y, testing::ElementsAreArray(wanted.As<float>()));
      EXPECT_EQ(mendel_input_count(plan), 1);
    }
  };
  std::vector<std::thread> threads;
  for (const size_t number : {0, 1, 2, 1}) threads.emplace_back(work, number);
  for (std::thread& thread : threads) thread.join();
  mendel_free(plan);
}

TEST_F(CApi, RefusesAMemberThatIsNotThere) {
  ASSERT_TRUE(WritePlanBundle(SmallBundle(kTestBackend), path_).ok());
  mendel_plan* plan = mendel_load(path_.c_str(), 0);
  ASSERT_NE(plan, nullptr) << mendel_last_error();
  ASSERT_EQ(mendel_select(plan, 1), MENDEL_OK);
  const int64_t extents[] = {3, 8};
  const int64_t* shape = extents;
  int rank = 2;
  EXPECT_EQ(mendel_select_shapes(plan, &rank, &shape), MENDEL_INVALID);
  EXPECT_THAT(mendel_last_error(), testing::HasSubstr("x:3x8; it offers x:2x8; x:4x8; x:16x8"));
  for (const int bad : {-1, 1000}) {
    rank = bad;
    EXPECT_EQ(mendel_select_shapes(plan, &rank, &shape), MENDEL_INVALID);
  }
  EXPECT_EQ(mendel_select_shapes(plan, nullptr, nullptr), MENDEL_INVALID);
  EXPECT_EQ(mendel_select(plan, 3), MENDEL_INVALID);
  EXPECT_EQ(mendel_select(plan, -1), MENDEL_INVALID);
  EXPECT_EQ(mendel_select(nullptr, 0), MENDEL_INVALID);
  EXPECT_EQ(mendel_member_count(nullptr), -1);
  mendel_value value;
  ASSERT_EQ(mendel_input(plan, 0, &value), MENDEL_OK);
  EXPECT_EQ(value.shape[0], 4);  // the selection stays
  mendel_free(plan);
}

TEST_F(CApi, ErrorsAreReportedPerThread) {
  EXPECT_EQ(mendel_load((path_ + ".none").c_str(), 0), nullptr);
  EXPECT_THAT(mendel_last_error(), testing::HasSubstr("none"));
  std::thread([] { EXPECT_STREQ(mendel_last_error(), ""); }).join();
  EXPECT_EQ(mendel_load(nullptr, 0), nullptr);
  EXPECT_EQ(mendel_load(path_.c_str(), -1), nullptr);
  EXPECT_EQ(mendel_input_count(nullptr), -1);
  EXPECT_EQ(mendel_run(nullptr, nullptr, nullptr), MENDEL_INVALID);
  mendel_plan* plan = mendel_load(path_.c_str(), 2);
  ASSERT_NE(plan, nullptr);
  EXPECT_STREQ(mendel_last_error(), "");
  mendel_value value;
  EXPECT_EQ(mendel_input(plan, 1, &value), MENDEL_INVALID);
  EXPECT_EQ(mendel_input(plan, -1, &value), MENDEL_INVALID);
  EXPECT_EQ(mendel_input(plan, 0, nullptr), MENDEL_INVALID);
  EXPECT_EQ(mendel_run(plan, nullptr, nullptr), MENDEL_INVALID);
  mendel_free(plan);
  mendel_free(nullptr);
  EXPECT_STRNE(mendel_version(), "");
}

}  // namespace
}  // namespace mendel
