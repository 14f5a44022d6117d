// Tests of engines beyond what heuristics list, and of engines that a plan has stored.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "graph/rewrite.h"
#include "gtest/gtest.h"
#include "kernels/cuda/backend/partition.h"
#include "kernels/cuda/cudnn/engine_json.h"
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
using testing::ElementsAre;
using testing::HasSubstr;

/// One convolution with a bias, and Relu.
struct StoredRig {
  FakeDriver driver;
  FakeCudnn fake;
  CudnnLibrary library{fake.table(), kDevice, kWorkspace};
  const CallLibrary* libraries[1] = {&library};
  Graph graph = Parsed(std::string(kConv) + "%5 = Add(%2, %3)\n%6 = Relu(%5)\nreturn \"y\" = %6");

  absl::StatusOr<EnginesByNode> Stored(const std::string& algorithm,
                                       Numerics numerics = Numerics::kDefault) {
    MENDEL_ASSIGN_OR_RETURN(const Partition partition,
                            PartitionOf(graph, {{2, algorithm}}, numerics, libraries));
    return EnginesOf(partition, "sm_90");
  }
  absl::StatusOr<DeviceProgram> Lower(const std::string& algorithm, const EnginesByNode& engines,
                                      Numerics numerics = Numerics::kDefault) {
    return LowerToDevice(graph, {.numerics = numerics,
                                 .algorithms = {{2, algorithm}},
                                 .libraries = libraries,
                                 .engines = engines});
  }
  /// The first call's name, or why there is none.
  std::string CallOf(const std::string& algorithm, const EnginesByNode& engines,
                     Numerics numerics = Numerics::kDefault) {
    const auto program = Lower(algorithm, engines, numerics);
    if (!program.ok()) return program.status().ToString();
    for (const DeviceLaunch& launch : program->launches) {
      if (launch.call != nullptr) return launch.call->name();
    }
    return "none";
  }
};

TEST(CudnnStoredEngines, RunAgainWhateverTheNameStandsFor) {
  StoredRig rig;
  for (const char* algorithm : {"cudnn", "cudnn:1", "cudnn:2", "cudnn-nhwc:1"}) {
    const auto stored = rig.Stored(algorithm);
    ASSERT_TRUE(stored.ok()) << stored.status();
    ASSERT_EQ(stored->size(), 1u);
    EXPECT_EQ(stored->at(2).library, "cuDNN 9.19.0");
    EXPECT_EQ(stored->at(2).device, "sm_90");
    // The name is the first of its kind, as if the heuristics had ranked others before.
    const std::string kind(algorithm, std::string(algorithm).find(':') == std::string::npos
                                          ? std::string(algorithm).size()
                                          : std::string(algorithm).find(':'));
    EXPECT_EQ(rig.CallOf(kind, *stored), rig.CallOf(algorithm, {})) << algorithm;
    DeviceCase one{
        algorithm, rig.graph, {FiftyNumbers()}, *rig.Lower(kind, *stored), Numerics::kDefault};
    EXPECT_EQ(FailureOn(rig.driver.table(), &TextImage, one), "") << algorithm;
  }
  EXPECT_EQ(rig.driver.Leaks() + rig.fake.Leaks(), "");
}

TEST(CudnnStoredEngines, OfAnotherVersionOrDeviceAreRefusedWithBothNamed) {
  StoredRig rig;
  const EnginesByNode stored = *rig.Stored("cudnn:1");
  rig.fake.SetVersion(92000);
  EXPECT_THAT(rig.CallOf("cudnn:1", stored),
              HasSubstr("is of 'cuDNN 9.19.0', and this is 'cuDNN 9.20.0'"));
  EXPECT_THAT(rig.CallOf("cudnn:1", stored), HasSubstr("--retune"));
  EXPECT_EQ(rig.CallOf("cudnn:1", *rig.Stored("cudnn:1")), "cudnn engine 2");  // planned again
  EXPECT_TRUE(CheckDevice(stored, "sm_90").ok());
  const std::string other(CheckDevice(stored, "sm_80").message());
  EXPECT_THAT(other, HasSubstr("'sm_90', and this device is 'sm_80'"));
}

/// Engines that the class forbids, that are not possible, or that need too much memory are refused.
/// So are texts that are no engines.
TEST(CudnnStoredEngines, AreHeldToWhatNamesAreHeldTo) {
  StoredRig rig;
  const EnginesByNode right = *rig.Stored("cudnn");
  const auto reported = [&](const std::string& from, const std::string& to,
                            Numerics numerics = Numerics::kDefault) {
    EnginesByNode changed = right;
    std::string& text = changed[2].text;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << text;
    text.replace(at, from.size(), to);
    return rig.CallOf("cudnn", changed, numerics);
  };
  EXPECT_EQ(reported("Id\":0", "Id\":4"), "cudnn engine 4");
  EXPECT_EQ(reported("Id\":0", "Id\":2"), "cudnn engine 2");
  EXPECT_THAT(reported("Id\":0", "Id\":1"), HasSubstr("engine 1 is not allowed"));  // tensor cores
  EXPECT_THAT(reported("Id\":0", "Id\":5"),
              HasSubstr("engine 5 is not allowed"));  // sums that vary
  EXPECT_THAT(reported("Id\":0", "Id\":6"),
              HasSubstr("engine 6 is not allowed"));  // compiled at run time
  EXPECT_THAT(reported("Id\":0", "Id\":7"), HasSubstr("more than the limit"));
  EXPECT_THAT(reported("Id\":0", "Id\":99"), HasSubstr("no such engine"));
  for (const char* bad : {"Id\":-1", "Id\":", "Id\":99999999999999999999", "Id\":0,\"engineId\":1",
                          "Id\":0},\"operations\":\"x\",\"e\":{\"a\":0", "Id\":0}},{\"engineId\":1",
                          "Id\":0,\"\\u0065ngineId\":1", "Id\":0,\"a\":\"}\"", "Id\":0\n"}) {
    EXPECT_THAT(reported("Id\":0", bad), HasSubstr("not the description of an engine")) << bad;
  }
  for (const char* bad :
       {"", "4 nodes by ", "nodes by ", "99999999999999999999 nodes by ", "-3 nodes by "}) {
    EXPECT_THAT(reported("3 nodes by ", bad), HasSubstr("damaged, or of another graph")) << bad;
  }
  // The strict class takes fewer nodes along, so that the stored engine does not fit.
  EXPECT_THAT(rig.CallOf("cudnn", right, Numerics::kStrict),
              HasSubstr("of another graph or numerics class"));
  EXPECT_THAT(rig.CallOf("cudnn-tf32", *rig.Stored("cudnn-tf32", Numerics::kTf32)),
              HasSubstr("INVALID_ARGUMENT"));
}

TEST(CudnnStoredEngines, DamageIsRefusedOrAnEngineOfTheSameKind) {
  StoredRig rig;
  const EnginesByNode right = *rig.Stored("cudnn:1");
  int refused = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Rng rng(seed);
    EnginesByNode changed = right;
    std::string& text = changed[2].text;
    text[static_cast<size_t>(rng.Between(0, static_cast<int64_t>(text.size()) - 1))] =
        static_cast<char>(rng.Between(-128, 127));
    const auto program = rig.Lower("cudnn", changed, Numerics::kDefault);
    refused += program.ok() ? 0 : 1;
    if (!program.ok()) {
      EXPECT_EQ(program.status().code(), absl::StatusCode::kInvalidArgument)
          << "seed " << seed << " " << program.status();
      continue;
    }
    for (const DeviceLaunch& launch : program->launches) {
      if (launch.call == nullptr) continue;
      const std::string name = launch.call->name();
      EXPECT_TRUE(name == "cudnn engine 0" || name == "cudnn engine 2" || name == "cudnn engine 4")
          << "seed " << seed << " " << name;
    }
  }
  EXPECT_GT(refused, 150);
  EXPECT_EQ(rig.fake.Leaks(), "");
}

TEST(CudnnStoredEngines, OtherLibrariesTakeNone) {
  class Plain final : public CallLibrary {
   public:
    std::string_view name() const override { return "plain"; }
    std::string Identity() const override { return "plain 1"; }
    bool Multiplies(Numerics) const override { return false; }
    std::vector<std::string> Algorithms(const GroupingScope&, int32_t, Numerics) const override {
      return {};
    }
    absl::StatusOr<LibraryGroup> Group(const GroupingScope&, int32_t, const std::string&,
                                       Numerics) const override {
      return InvalidInput("never asked");
    }
  };
  const Plain plain;
  const CallLibrary* const libraries[] = {&plain};
  const Graph graph = Parsed(std::string(kConv) + "return \"y\" = %2");
  const auto partition = PartitionOf(graph, {{2, "plain"}}, Numerics::kDefault, libraries,
                                     {{2, {"cuDNN 9.19.0", "sm_90", "x"}}});
  EXPECT_THAT(partition.status().ToString(),
              HasSubstr("an engine of 'cuDNN 9.19.0', and 'plain 1' takes none"));
}

TEST(CudnnExhaustive, EnginesThatNoHeuristicsListComeLast) {
  StoredRig rig;
  const CudnnLibrary every(rig.fake.table(), kDevice, kWorkspace, kEveryEngine);
  const std::vector<bool> constant = ConstantExpressions(rig.graph),
                          none(rig.graph.nodes().size(), false);
  const GroupingScope scope{rig.graph, constant, none};
  EXPECT_THAT(rig.library.Algorithms(scope, 2, Numerics::kStrict),
              ElementsAre("cudnn", "cudnn:1", "cudnn-nhwc", "cudnn-nhwc:1"));
  EXPECT_THAT(
      every.Algorithms(scope, 2, Numerics::kStrict),
      ElementsAre("cudnn", "cudnn:1", "cudnn:2", "cudnn-nhwc", "cudnn-nhwc:1", "cudnn-nhwc:2"));
  // A plan that names one of them runs where fewer are offered.
  EXPECT_EQ(rig.CallOf("cudnn:2", {}, Numerics::kStrict), "cudnn engine 11");
  EXPECT_THAT(rig.CallOf("cudnn:3", {}, Numerics::kStrict), HasSubstr("has 3 for it"));
  DeviceCase one{"",
                 rig.graph,
                 {FiftyNumbers()},
                 *rig.Lower("cudnn:2", {}, Numerics::kStrict),
                 Numerics::kStrict};
  EXPECT_EQ(FailureOn(rig.driver.table(), &TextImage, one), "");
}

/// cuDNN itself plans every engine of a convolution, found by number. Each is reported as text, and
/// made again from it.
TEST(CudnnExhaustive, EnginesAreMadeAgainWithoutADevice) {
  const Cudnn* cudnn = cudnn_case::InstalledCudnn();
  if (cudnn == nullptr) GTEST_SKIP() << "cuDNN is not installed";
  for (const bool epilogue : {false, true}) {
    CudnnConvolution conv;
    conv.x = conv.y = {2, 64, 28, 28};
    conv.w = {64, 64, 3, 3};
    conv.strides = conv.dilations = conv.pads_begin = conv.pads_end = {1, 1};
    conv.bias = epilogue;
    if (epilogue) conv.activation = CudnnActivation::kRelu;
    const std::string device = DevicePropertiesJson(*GpuOf(90));
    const CudnnNumerics strict;
    const auto listed = PlanConvolution(*cudnn, conv, strict, device, {.engines = 1024});
    const auto all =
        PlanConvolution(*cudnn, conv, strict, device, {.engines = 1024, .exhaustive = true});
    ASSERT_TRUE(listed.ok() && all.ok()) << listed.status() << all.status();
    EXPECT_GE(all->size(), listed->size());
    for (size_t k = 0; k < listed->size(); ++k)
      EXPECT_EQ((*all)[k].plan_json, (*listed)[k].plan_json);
    for (const CudnnEngine& engine : *all) {
      const auto text = EngineJsonOf(engine.plan_json);
      ASSERT_TRUE(text.has_value()) << engine.plan_json;
      const auto again = PlanConvolutionAgain(*cudnn, conv, strict, device, {}, *text);
      ASSERT_TRUE(again.ok()) << *text << " " << again.status();
      EXPECT_EQ(again->plan_json, engine.plan_json);
      EXPECT_EQ(again->workspace_bytes, engine.workspace_bytes);
      EXPECT_EQ(again->index, engine.index);
    }
    std::printf("%zu engines listed, %zu in all\n", listed->size(), all->size());
  }
}

}  // namespace
}  // namespace mendel::cuda
