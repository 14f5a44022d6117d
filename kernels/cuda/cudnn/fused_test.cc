// Tests of epilogues that only engines have which cuDNN compiles at run time, by its fake.

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/status.h"
#include "gmock/gmock.h"
#include "graph/rewrite.h"
#include "gtest/gtest.h"
#include "kernels/cuda/backend/partition.h"
#include "kernels/cuda/cudnn/compiled_engines.h"
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
using testing::IsEmpty;

constexpr char kTransposedAndBias[] = R"(%0 = Input() {name = "x", shape = [1, 2, 5, 5]}
    %1 = Constant() {symbol = "w", value = f32[2, 2, 1, 1]{1, -2, 3, 0.5}}
    %2 = ConvTranspose(%0, %1) {dilations = [1, 1], group = 1, output_padding = [0, 0], pads = [0, 0, 0, 0], strides = [1, 1]}
    %3 = Constant() {symbol = "b", value = f32[2, 1, 1]{1, 2}}
    %4 = Add(%2, %3)
)";

/// The graph's algorithms of kinds that are compiled at run time.
std::vector<std::string> FusedNames(const CudnnLibrary& library, const Graph& graph,
                                    Numerics numerics) {
  const CallLibrary* const libraries[] = {&library};
  std::vector<std::string> fused;
  for (const std::string& name : LibraryAlgorithms(graph, 2, numerics, libraries)) {
    if (name.find("fused") != std::string::npos) fused.push_back(name);
  }
  return fused;
}

struct Rig {
  FakeDriver driver;
  FakeCudnn fake;
  CompiledEngines compiled{60, {}};
  CudnnLibrary library{fake.table(), kDevice, kWorkspace, kOffered, &compiled};
  const CallLibrary* libraries[1] = {&library};

  absl::StatusOr<DeviceProgram> Lower(const Graph& graph, const std::string& algorithm,
                                      Numerics numerics) {
    return LowerToDevice(
        graph, {.numerics = numerics, .algorithms = {{2, algorithm}}, .libraries = libraries});
  }
};

struct Ending {
  const char* after;  ///< the convolution %2 or, with a bias, %5
  int32_t nodes;      ///< that the call computes
};

TEST(CudnnFused, EpiloguesMeanTheirGraphs) {
  Rig rig;
  const std::string bias = std::string(kConv) + "%5 = Add(%2, %3)\n";
  const Ending endings[] = {
      {"%6 = Sigmoid(%5)\nreturn \"y\" = %6", 3},
      {"%6 = Sigmoid(%5)\n%7 = Mul(%5, %6)\nreturn \"y\" = %7", 4},
      {"%6 = Sigmoid(%5)\n%7 = Mul(%6, %5)\nreturn \"y\" = %7", 4},
      {"%6 = Gelu(%5) {approximate = \"none\"}\nreturn \"y\" = %6", 3},
      {"%6 = Gelu(%5) {approximate = \"tanh\"}\nreturn \"y\" = %6", 3},
  };
  for (const Ending& ending : endings) {
    const Graph graph = Parsed(bias + ending.after);
    for (const auto& [algorithm, numerics] : {std::pair("cudnn-tf32-fused", Numerics::kTf32),
                                              {"cudnn-f16-fused", Numerics::kF16},
                                              {"cudnn-bf16-fused", Numerics::kBf16}}) {
      EXPECT_THAT(FusedNames(rig.library, graph, numerics), testing::Contains(algorithm));
      const auto program = rig.Lower(graph, algorithm, numerics);
      ASSERT_TRUE(program.ok()) << program.status();
      const auto call =
          std::find_if(program->launches.begin(), program->launches.end(),
                       [](const DeviceLaunch& launch) { return launch.call != nullptr; });
      ASSERT_NE(call, program->launches.end());
      EXPECT_EQ(call->call->name(), std::string(algorithm) + " engine 12");
      EXPECT_EQ(call->info.nodes.size(), static_cast<size_t>(ending.nodes)) << ending.after;
      DeviceCase one{ending.after, graph, {FiftyNumbers()}, *program, numerics};
      EXPECT_EQ(FailureOn(rig.driver.table(), &TextImage, one), "") << ending.after;
    }
  }
  EXPECT_EQ(rig.driver.Leaks() + rig.fake.Leaks(), "");
}

TEST(CudnnFused, TransposedConvolutionsHaveTheirWholeEpilogueInOneCall) {
  Rig rig;
  const Graph graph = Parsed(std::string(kTransposedAndBias) + "%5 = Relu(%4)\nreturn \"y\" = %5");
  const auto program = rig.Lower(graph, "cudnn-f16-fused", Numerics::kF16);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_TRUE(std::any_of(program->launches.begin(), program->launches.end(),
                          [](const DeviceLaunch& launch) {
                            return launch.call != nullptr && launch.info.nodes.size() == 3;
                          }));
  DeviceCase one{"", graph, {FiftyNumbers()}, *program, Numerics::kF16};
  EXPECT_EQ(FailureOn(rig.driver.table(), &TextImage, one), "");
}

/// They are offered for what precompiled engines lack, in the classes that allow their products.
TEST(CudnnFused, AreOfferedWhereNothingElseIs) {
  Rig rig;
  const Graph relu =
      Parsed(std::string(kConv) + "%5 = Add(%2, %3)\n%6 = Relu(%5)\nreturn \"y\" = %6");
  EXPECT_THAT(FusedNames(rig.library, relu, Numerics::kF16), IsEmpty());
  const Graph sigmoid = Parsed(std::string(kConv) + "%5 = Sigmoid(%2)\nreturn \"y\" = %5");
  EXPECT_THAT(FusedNames(rig.library, sigmoid, Numerics::kStrict), IsEmpty());
  EXPECT_THAT(FusedNames(rig.library, sigmoid, Numerics::kDefault), IsEmpty());
  EXPECT_THAT(FusedNames(rig.library, sigmoid, Numerics::kTf32), ElementsAre("cudnn-tf32-fused"));
  const Graph shared = Parsed(std::string(kConv) +
                              "%5 = Sigmoid(%2)\n%6 = Mul(%2, %5)\nreturn \"y\" = %6, \"z\" = %2");
  EXPECT_THAT(FusedNames(rig.library, shared, Numerics::kF16), IsEmpty()) << "others read the sums";
  EXPECT_THAT(CudnnLibrary::FormNames({sigmoid, ConstantExpressions(sigmoid),
                                       std::vector<bool>(sigmoid.nodes().size(), false)},
                                      2, Numerics::kTf32),
              testing::Not(testing::Contains(HasSubstr("fused"))))
      << "offline";
}

TEST(CudnnFused, StoredHalvesAreMultipliedInEveryClassButStrict) {
  Rig rig;
  const Graph graph = Parsed(R"(%0 = Input() {dtype = "f16", name = "x", shape = [1, 2, 5, 5]}
    %1 = Constant() {symbol = "w", value = f16[2, 2, 1, 1]{1, -2, 3, 0.5}}
    %2 = Conv(%0, %1) {dilations = [1, 1], group = 1, pads = [0, 0, 0, 0], strides = [1, 1]}
    %3 = Sigmoid(%2)
    return "y" = %3)");
  EXPECT_THAT(FusedNames(rig.library, graph, Numerics::kStrict), IsEmpty());
  EXPECT_THAT(FusedNames(rig.library, graph, Numerics::kDefault), ElementsAre("cudnn-fused"));
  const auto program = rig.Lower(graph, "cudnn-fused", Numerics::kDefault);
  ASSERT_TRUE(program.ok()) << program.status();
  const HostValue floats = FiftyNumbers();
  DeviceCase one{
      "",
      graph,
      {HostValue::FromTensor(Tensor::FromDoubles({DType::kF16, {1, 2, 5, 5}}, floats.scalars))},
      *program,
      Numerics::kDefault};
  EXPECT_EQ(FailureOn(rig.driver.table(), &TextImage, one), "");
}

/// A search compiles nothing more when the time is spent. A plan that names an engine still has it.
TEST(CudnnFused, SearchesKeepToTheTimeForCompilations) {
  Rig rig;
  CompiledEngines none(0, {});
  const CudnnLibrary spent(rig.fake.table(), kDevice, kWorkspace, kOffered, &none);
  const CudnnLibrary without(rig.fake.table(), kDevice, kWorkspace);
  const Graph graph = Parsed(std::string(kConv) + "%5 = Sigmoid(%2)\nreturn \"y\" = %5");
  EXPECT_THAT(FusedNames(spent, graph, Numerics::kTf32), IsEmpty());
  EXPECT_THAT(FusedNames(without, graph, Numerics::kTf32), IsEmpty());
  const auto lowered = [&](const CudnnLibrary& library, const char* algorithm) {
    const CallLibrary* const libraries[] = {&library};
    return LowerToDevice(graph, {.numerics = Numerics::kTf32,
                                 .algorithms = {{2, algorithm}},
                                 .libraries = libraries})
        .status()
        .ToString();
  };
  EXPECT_EQ(lowered(spent, "cudnn-tf32-fused"), "OK");
  EXPECT_THAT(lowered(without, "cudnn-tf32-fused"), HasSubstr("has 0 for it"));
  EXPECT_THAT(lowered(spent, "cudnn-tf32-fused:1"), HasSubstr("has 0 for it"))
      << "there is one of a kind";
  // An engine that is compiled is known, and offered again.
  EXPECT_THAT(FusedNames(spent, graph, Numerics::kTf32), ElementsAre("cudnn-tf32-fused"));

  CompiledEngines little(1e-9, {});
  const CudnnLibrary once(rig.fake.table(), kDevice, kWorkspace, kOffered, &little);
  EXPECT_THAT(FusedNames(once, graph, Numerics::kTf32), ElementsAre("cudnn-tf32-fused"));
  const Graph other =
      Parsed(std::string(kConv) + "%5 = Gelu(%2) {approximate = \"none\"}\nreturn \"y\" = %5");
  EXPECT_THAT(FusedNames(once, other, Numerics::kTf32), IsEmpty());
}

/// A name is not offered for a part of the epilogue whose whole would be compiled for the plan.
TEST(CudnnFused, APartThatIsKnownIsNoReasonToOfferTheWhole) {
  Rig rig;
  CompiledEngines little(1e-9, {});
  const CudnnLibrary library(rig.fake.table(), kDevice, kWorkspace, kOffered, &little);
  const std::string part = kTransposedAndBias;
  EXPECT_THAT(FusedNames(library, Parsed(part + "return \"y\" = %4"), Numerics::kTf32),
              ElementsAre("cudnn-tf32-fused"));
  EXPECT_THAT(
      FusedNames(library, Parsed(part + "%5 = Sigmoid(%4)\nreturn \"y\" = %5"), Numerics::kTf32),
      IsEmpty());
}

/// Rules are those of this program, whatever an earlier one has kept.
TEST(CudnnFused, KeptEnginesAreHeldToTheRules) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / Cat("mendel_rules_", ::getpid());
  std::filesystem::remove_all(folder);
  /// The number of the engine, where a compilation yields `number`.
  const auto engine = [&](int64_t number, EngineRules rules) {
    CompiledEngines compiled(60, {.folder = folder.string()});
    const auto found =
        compiled.Get({"a graph", std::move(rules), "a device", "cuDNN 9"}, true, [&] {
          return absl::StatusOr<std::vector<CudnnEngine>>(
              {CudnnEngine{"{}", 5, number, {cudnn::kTensorCores}, true}});
        });
    return found.ok() ? found->index : -1;
  };
  const EngineRules rules = {DType::kF16, {}, true};
  EXPECT_EQ(engine(7, rules), 7);
  EXPECT_EQ(engine(8, rules), 7);
  EXPECT_EQ(engine(8, {DType::kF16, {}, true, {7}}), 8) << "a GPU has shown that 7 is wrong";
  EXPECT_EQ(engine(9, {DType::kF16, {}, true, {7}}), 8) << "it is kept, too";
  EXPECT_EQ(engine(9, rules), 7);
  std::filesystem::remove_all(folder);
}

/// Another process finds what one has compiled, and needs no time for it.
TEST(CudnnFused, EnginesAreKeptOnDisk) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / Cat("mendel_engines_", ::getpid());
  std::filesystem::remove_all(folder);
  FakeDriver driver;
  FakeCudnn fake;
  const Graph graph = Parsed(std::string(kConv) + "%5 = Sigmoid(%2)\nreturn \"y\" = %5");
  const auto offered = [&](double seconds, int64_t workspace) {
    CompiledEngines compiled(seconds, {.folder = folder.string()});
    const CudnnLibrary library(fake.table(), kDevice, workspace, kOffered, &compiled);
    std::vector<std::string> names = FusedNames(library, graph, Numerics::kTf32);
    const CallLibrary* const libraries[] = {&library};
    if (names.empty()) return std::string("none");
    const auto program = LowerToDevice(
        graph,
        {.numerics = Numerics::kTf32, .algorithms = {{2, names[0]}}, .libraries = libraries});
    DeviceCase one{"", graph, {FiftyNumbers()}, *program, Numerics::kTf32};
    const std::string wrong = FailureOn(driver.table(), &TextImage, one);
    return wrong.empty() ? names[0] : wrong;
  };
  EXPECT_EQ(offered(0, kWorkspace), "none");
  EXPECT_EQ(offered(60, kWorkspace), "cudnn-tf32-fused");
  EXPECT_EQ(offered(0, kWorkspace), "cudnn-tf32-fused");
  EXPECT_EQ(offered(0, kWorkspace / 2), "none") << "another limit";
  fake.SetVersion(92000);
  EXPECT_EQ(offered(0, kWorkspace), "none") << "another version";
  fake.SetVersion(91900);
  for (const auto& file : std::filesystem::directory_iterator(folder))
    std::ofstream(file.path(), std::ios::app) << "damage";
  EXPECT_EQ(offered(0, kWorkspace), "none");
  std::filesystem::remove_all(folder);
}

TEST(CudnnFused, PlansStoreNoMachineCode) {
  Rig rig;
  const Graph graph = Parsed(std::string(kConv) + "%5 = Sigmoid(%2)\nreturn \"y\" = %5");
  const auto partition =
      PartitionOf(graph, {{2, "cudnn-tf32-fused"}}, Numerics::kTf32, rig.libraries);
  ASSERT_TRUE(partition.ok()) << partition.status();
  EXPECT_THAT(EnginesOf(*partition, "sm_90"), IsEmpty());
  EnginesByNode foreign;
  foreign[2] = {"cuDNN 9.19.0", "sm_90", "2 nodes by {\"engineId\":12,\"knobChoices\":{}}"};
  const auto again =
      PartitionOf(graph, {{2, "cudnn-tf32-fused"}}, Numerics::kTf32, rig.libraries, foreign);
  EXPECT_THAT(again.status().ToString(), HasSubstr("INVALID_ARGUMENT"));
}

}  // namespace
}  // namespace mendel::cuda
