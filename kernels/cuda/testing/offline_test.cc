// Plans for GPUs that are not here: the devices by name, what their programs compute, which
// machines take the plans.

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
#include "kernels/cuda/backend/program.h"
#include "kernels/cuda/cudnn/table.h"
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
  for (const char* name :
       {"cuda:sm_75", "cuda:sm_80", "cuda:sm_90", "cuda:sm_100", "cuda:sm_120"}) {
    const auto device = MakeOfflineDevice(name);
    ASSERT_TRUE(device.ok()) << device.status();
    EXPECT_EQ((*device)->backend().name(), "cuda");
    EXPECT_EQ(Cat("cuda:", (*device)->backend().Isa()), name);
    EXPECT_THAT((*device)->backend().Identity(), HasSubstr("unmeasured"));
    EXPECT_THAT((*device)->Description(),
                testing::AnyOf(HasSubstr("data sheet"), HasSubstr("white paper")));
  }
  const auto none = MakeOfflineDevice("cuda");
  EXPECT_TRUE(absl::IsInvalidArgument(none.status()));
  EXPECT_THAT(std::string(none.status().message()),
              HasSubstr("'cuda' but for cuda:sm_100, cuda:sm_120, cuda:sm_75"));
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
  const auto folder =
      std::filesystem::path(testing::TempDir()) / Cat("mendel_offline_", ::getpid());
  ::setenv("XDG_CACHE_HOME", folder.c_str(), 1);
  const auto reported = (*device)->BuildKernels(graph, {});
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(reported.ok()) << reported.status();
  std::printf("%s\n", reported->c_str());
  EXPECT_THAT(*reported, HasSubstr("2 kernels in 2 launches"));
  const bool has_toolkit = std::filesystem::exists("/usr/local/cuda");
  EXPECT_THAT(*reported, HasSubstr(has_toolkit ? "compiled by NVRTC" : "compiled"));
}

TEST(OfflineDevice, OffersWhatTheArchitectureHasAndTheClassAllows) {
  const auto offered = [](const char* name, Numerics numerics) {
    const auto device = MakeOfflineDevice(name);
    EXPECT_TRUE(device.ok()) << device.status();
    const Graph graph = Net();
    return (*device)->backend().Algorithms(graph, 2, numerics);
  };
  using testing::Contains;
  for (const Numerics numerics : {Numerics::kStrict, Numerics::kDefault, Numerics::kHigh}) {
    EXPECT_THAT(offered("cuda:sm_90", numerics), testing::IsSupersetOf({"cudnn", "cudnn-nhwc"}));
    EXPECT_THAT(offered("cuda:sm_90", numerics), testing::Not(Contains(HasSubstr("tf32"))));
  }
  EXPECT_THAT(offered("cuda:sm_90", Numerics::kTf32),
              testing::IsSupersetOf({"cudnn-tf32", "cudnn-tf32-nhwc"}));
  EXPECT_THAT(offered("cuda:sm_75", Numerics::kTf32), testing::Not(Contains(HasSubstr("tf32"))));
  const auto turing = MakeOfflineDevice("cuda:sm_75"), hopper = MakeOfflineDevice("cuda:sm_90");
  ASSERT_TRUE(turing.ok() && hopper.ok());
  EXPECT_TRUE(absl::IsUnimplemented((*turing)->backend().Supports(Numerics::kTf32)));
  EXPECT_TRUE((*turing)->backend().Supports(Numerics::kF16).ok());
  EXPECT_TRUE((*hopper)->backend().Supports(Numerics::kTf32).ok());
  EXPECT_FALSE((*hopper)->backend().Supports(Numerics::kHigh).ok());
}

/// The plan's calls are assumed while it is made, and asked of the libraries where it is loaded.
TEST(OfflineDevice, AlgorithmsArePartOfProgramsAndRefusedWhereTheyAreMissing) {
  const Graph graph = Net();
  const auto device = MakeOfflineDevice("cuda:sm_90");
  ASSERT_TRUE(device.ok()) << device.status();
  const CompileOptions by_cudnn{.algorithms = {{2, "cudnn"}}};
  EXPECT_TRUE((*device)->backend().Compile(graph, by_cudnn).ok());
  const auto reported = (*device)->BuildKernels(graph, by_cudnn);
  ASSERT_TRUE(reported.ok()) << reported.status();
  EXPECT_THAT(*reported, HasSubstr("1 kernels in 2 launches"));
  EXPECT_THAT(*reported,
              HasSubstr(Cudnn::Get().ok() ? "has engines for 1 of its 1 convolutions on H100"
                                          : "in 2 launches"));
  const CompileOptions unknown{.algorithms = {{2, "cudnn-tf32"}}};
  for (const absl::Status& refused :
       {(*device)->backend().Compile(graph, unknown).status(),
        (*device)->Seconds(graph, unknown).status(),
        LowerToDevice(graph, {.algorithms = by_cudnn.algorithms}).status()}) {
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("Conv 2"));
  }
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
  absl::StatusOr<std::unique_ptr<Executable>> Compile(const Graph&,
                                                      const CompileOptions&) const override {
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
