// Plans for GPUs that are not here: the devices by name, what their programs compute, which machines take the plans.

#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <utility>

#include "base/status.h"
#include "gmock/gmock.h"
#include "graph/evaluate.h"
#include "graph/text.h"
#include "gtest/gtest.h"
#include "runtime/offline_device.h"
#include "runtime/plan.h"

namespace mendel::cuda {
namespace {

using testing::HasSubstr;

Graph Net() {
  auto graph = ParseGraph(R"(graph "net" {
    %0 = Input() {name = "x", shape = [1, 2, 3, 3]}
    %1 = Constant() {symbol = "w", value = f32[2, 2, 1, 1]{1, -2, 3, 0.5}}
    %2 = Conv(%0, %1) {dilations = [1, 1], group = 1, pads = [0, 0, 0, 0], strides = [1, 1]}
    %3 = Softmax(%2) {axis = 1}
    return "y" = %3
  })");
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

TEST(OfflineDevice, IsMadeByName) {
  for (const char* name : {"cuda:sm_75", "cuda:sm_80", "cuda:sm_90", "cuda:sm_100", "cuda:sm_120"}) {
    const auto device = MakeOfflineDevice(name);
    ASSERT_TRUE(device.ok()) << device.status();
    EXPECT_EQ((*device)->backend().name(), "cuda");
    EXPECT_EQ(Cat("cuda:", (*device)->backend().Isa()), name);
    EXPECT_THAT((*device)->backend().Identity(), HasSubstr("unmeasured"));
    EXPECT_THAT((*device)->Told(), testing::AnyOf(HasSubstr("data sheet"), HasSubstr("white paper")));
  }
  const auto none = MakeOfflineDevice("cuda");
  EXPECT_TRUE(absl::IsInvalidArgument(none.status()));
  EXPECT_THAT(std::string(none.status().message()), HasSubstr("'cuda' but for cuda:sm_100, cuda:sm_120, cuda:sm_75"));
}

TEST(OfflineDevice, ComputesWhatTheGraphMeansAndCompilesItsKernels) {
  const Graph graph = Net();
  const auto device = MakeOfflineDevice("cuda:sm_90");
  ASSERT_TRUE(device.ok()) << device.status();
  const auto executable = (*device)->backend().Compile(graph, {});
  ASSERT_TRUE(executable.ok()) << executable.status();
  std::vector<double> values;
  for (int k = 0; k < 18; ++k) values.push_back(k % 7 - 3);
  const Tensor x = Tensor::FromDoubles({DType::kF32, {1, 2, 3, 3}}, values);
  const auto have = RunOnTensors(**executable, graph, {{x}});
  const auto want = Evaluate(graph, std::vector<HostValue>{HostValue::FromTensor(x)});
  ASSERT_TRUE(have.ok() && want.ok()) << have.status() << want.status();
  EXPECT_EQ((*have)[0].ToDoubles(), (*want)[0].ToTensor().ToDoubles());
  const auto folder = std::filesystem::path(testing::TempDir()) / Cat("mendel_offline_", ::getpid());
  ::setenv("XDG_CACHE_HOME", folder.c_str(), 1);
  const auto told = (*device)->BuildKernels(graph);
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(told.ok()) << told.status();
  std::printf("%s\n", told->c_str());
  EXPECT_THAT(*told, HasSubstr("2 kernels in 2 launches"));
  const bool has_toolkit = std::filesystem::exists("/usr/local/cuda");
  EXPECT_THAT(*told, HasSubstr(has_toolkit ? "compiled by NVRTC" : "compiled"));
}

/// A machine with a GPU, as plans see it.
class Gpu final : public Backend {
 public:
  explicit Gpu(std::string isa) : isa_(std::move(isa)) {}
  std::string_view name() const override { return "cuda"; }
  absl::Status Probe() const override { return absl::OkStatus(); }
  std::string Identity() const override { return "cuda:Some GPU:" + isa_; }
  std::string Isa() const override { return isa_; }
  std::vector<std::string> Algorithms(const Graph&, int32_t, Numerics) const override { return {}; }
  absl::StatusOr<std::unique_ptr<Executable>> Compile(const Graph&, const CompileOptions&) const override {
    return Unsupported("nothing runs here");
  }

 private:
  std::string isa_;
};

TEST(OfflineDevice, PlansRunOnTheirArchitectureOnly) {
  const auto device = MakeOfflineDevice("cuda:sm_90");
  ASSERT_TRUE(device.ok()) << device.status();
  plan::PlanInfo info;
  info.mutable_target()->set_backend("cuda");
  info.mutable_target()->set_identity((*device)->backend().Identity());
  info.mutable_target()->set_isa((*device)->backend().Isa());
  info.mutable_plan_ms()->set_median_ms(1);
  ASSERT_TRUE(IsUnmeasured(info));
  EXPECT_TRUE(CheckTarget(info, Gpu("sm_90")).ok());
  const absl::Status refused = CheckTarget(info, Gpu("sm_80"));
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_THAT(std::string(refused.message()), HasSubstr("for sm_90, and this machine is sm_80"));
  // A measured plan is for the machine that it was measured on.
  info.mutable_plan_ms()->set_runs(3);
  EXPECT_TRUE(absl::IsInvalidArgument(CheckTarget(info, Gpu("sm_90"))));
}

}  // namespace
}  // namespace mendel::cuda
