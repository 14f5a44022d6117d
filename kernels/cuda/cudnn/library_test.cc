// Tests of calls of cuDNN: the nodes that they take along, the form in which they read, and the
// engines that are algorithms.

#include "kernels/cuda/cudnn/library.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
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

/// The operators of each launch of the graph, whose node 2 is computed by cuDNN.
std::vector<std::string> LaunchesOf(const std::string& rest,
                                    Numerics numerics = Numerics::kDefault) {
  FakeCudnn fake;
  const CudnnLibrary library(fake.table(), kDevice, kWorkspace);
  const CallLibrary* const libraries[] = {&library};
  const Graph graph = Parsed(kConv + rest);
  const auto program = LowerToDevice(
      graph, {.numerics = numerics, .algorithms = {{2, "cudnn"}}, .libraries = libraries});
  EXPECT_TRUE(program.ok()) << program.status();
  std::vector<std::string> launches;
  if (!program.ok()) return launches;
  for (const DeviceLaunch& launch : program->launches) {
    launches.push_back(launch.call == nullptr ? "kernel" : "cudnn");
    for (const int32_t node : launch.info.nodes)
      launches.back() += Cat(" ", graph.node(node).op->name);
  }
  return launches;
}

TEST(CudnnLibrary, TakesWhatTheEpilogueHolds) {
  EXPECT_THAT(LaunchesOf("%5 = Add(%2, %3)\n%6 = Add(%0, %5)\n%7 = Relu(%6)\nreturn \"y\" = %7"),
              ElementsAre("cudnn Conv Add Add Relu"));
  EXPECT_THAT(LaunchesOf("%5 = Add(%2, %0)\n%6 = Add(%3, %5)\nreturn \"y\" = %6"),
              ElementsAre("cudnn Conv Add Add"));
  EXPECT_THAT(LaunchesOf("%5 = Relu(%2)\nreturn \"y\" = %5"), ElementsAre("cudnn Conv Relu"));
  // Native kernels compute a second bias, a summand by rows, what follows the activation, and other
  // activations.
  EXPECT_THAT(LaunchesOf("%5 = Add(%2, %3)\n%6 = Add(%5, %3)\nreturn \"y\" = %6"),
              ElementsAre("cudnn Conv Add", "kernel Add"));
  EXPECT_THAT(LaunchesOf("%5 = Add(%2, %4)\nreturn \"y\" = %5"),
              ElementsAre("cudnn Conv", "kernel Add"));
  EXPECT_THAT(LaunchesOf("%5 = Relu(%2)\n%6 = Add(%5, %3)\nreturn \"y\" = %6"),
              ElementsAre("cudnn Conv Relu", "kernel Add"));
  EXPECT_THAT(LaunchesOf("%5 = Sigmoid(%2)\nreturn \"y\" = %5"),
              ElementsAre("cudnn Conv", "kernel Sigmoid"));
  // A value that is read twice is stored.
  EXPECT_THAT(LaunchesOf("%5 = Add(%2, %2)\nreturn \"y\" = %5"),
              ElementsAre("cudnn Conv", "kernel Add"));
  EXPECT_THAT(LaunchesOf("%5 = Relu(%2)\nreturn \"y\" = %5, \"z\" = %2"),
              ElementsAre("cudnn Conv", "kernel Relu"));
  // The addition belongs to the summand that is computed last.
  EXPECT_THAT(LaunchesOf("%5 = Sin(%0)\n%6 = Add(%2, %5)\nreturn \"y\" = %6"),
              ElementsAre("cudnn Conv", "kernel Sin Add"));
}

std::vector<std::string> Names(const Graph& graph, Numerics numerics,
                               int64_t workspace = kWorkspace) {
  FakeCudnn fake;
  const CudnnLibrary library(fake.table(), kDevice, workspace);
  const CallLibrary* const libraries[] = {&library};
  return LibraryAlgorithms(graph, 2, numerics, libraries);
}

/// kConv and more, all convolutions with the channels last.
struct LastRig {
  FakeDriver driver;
  FakeCudnn fake;
  CudnnLibrary library{fake.table(), kDevice, kWorkspace};
  std::vector<DeviceCase> cases = {};

  /// The operators of each launch of one more program, whose last lines these are.
  std::vector<std::string> LaunchesOf(const std::string& rest) {
    const CallLibrary* const libraries[] = {&library};
    DeviceCase one{rest, Parsed(kConv + rest), {FiftyNumbers()}, {}};
    std::map<int32_t, std::string> algorithms;
    for (int32_t node = 0; node < static_cast<int32_t>(one.graph.nodes().size()); ++node) {
      if (one.graph.node(node).op->name == "Conv") algorithms[node] = "cudnn-nhwc";
    }
    auto program = LowerToDevice(
        one.graph,
        {.reuse_memory = cases.size() % 2 == 0, .algorithms = algorithms, .libraries = libraries});
    EXPECT_TRUE(program.ok()) << program.status();
    if (!program.ok()) return {};
    std::vector<std::string> launches;
    for (const DeviceLaunch& launch : program->launches) {
      launches.push_back(launch.call == nullptr ? "kernel" : "cudnn");
      for (const int32_t node : launch.info.nodes)
        launches.back() += Cat(" ", one.graph.node(node).op->name);
    }
    one.program = *std::move(program);
    cases.push_back(std::move(one));
    return launches;
  }
};

TEST(CudnnLibrary, ValuesStayChannelsLastBetweenCalls) {
  LastRig rig;
  const auto conv = [](int id, int from) {
    return Cat("%", id, " = Conv(%", from,
               ", %1) {dilations = [1, 1], group = 1, pads = [0, 0, 0, 0], strides = [1, 1]}\n");
  };
  // Conversions are kernels without nodes of the graph.
  EXPECT_THAT(rig.LaunchesOf("return \"y\" = %2"), ElementsAre("kernel", "cudnn Conv", "kernel"));
  EXPECT_THAT(rig.LaunchesOf("%5 = Relu(%2)\n" + conv(6, 5) + "return \"y\" = %6"),
              ElementsAre("kernel", "cudnn Conv Relu", "cudnn Conv", "kernel"));
  // Elementwise operators in between are computed in the form. Their other operands are converted:
  // constants once, inputs as they are read.
  EXPECT_THAT(
      rig.LaunchesOf("%5 = Sigmoid(%2)\n%6 = Mul(%5, %3)\n%7 = Sub(%6, %4)\n" + conv(8, 7) +
                     "return \"y\" = %8"),
      ElementsAre("kernel", "cudnn Conv", "kernel Sigmoid Mul Sub", "cudnn Conv", "kernel"));
  EXPECT_THAT(rig.LaunchesOf("%5 = Sin(%2)\n%6 = Mul(%0, %5)\n" + conv(7, 6) + "return \"y\" = %7"),
              ElementsAre("kernel", "cudnn Conv", "kernel Sin Mul", "cudnn Conv", "kernel"));
  // A residual is read as the call before has left it.
  EXPECT_THAT(rig.LaunchesOf("%5 = Relu(%2)\n" + conv(6, 5) +
                             "%7 = Add(%6, %5)\n%8 = Relu(%7)\nreturn \"y\" = %8"),
              ElementsAre("kernel", "cudnn Conv Relu", "cudnn Conv Add Relu", "kernel"));
  // A value that no call reads so is converted by its reader; with several readers, once.
  EXPECT_THAT(rig.LaunchesOf("%5 = Sigmoid(%2)\nreturn \"y\" = %5"),
              ElementsAre("kernel", "cudnn Conv", "kernel Sigmoid"));
  EXPECT_THAT(rig.LaunchesOf("%5 = Sin(%2)\n" + conv(6, 5) + "return \"y\" = %6, \"z\" = %5"),
              ElementsAre("kernel", "cudnn Conv", "kernel Sin", "cudnn Conv", "kernel", "kernel"));
  ASSERT_TRUE(rig.driver.Prepare(ModuleOf(rig.cases)).ok());
  for (const DeviceCase& one : rig.cases)
    EXPECT_EQ(FailureOn(rig.driver.table(), &TextImage, one), "") << one.description;
}

/// One value is x, the addend by channels and the residual, each in another form.
TEST(CudnnLibrary, AValueIsReadInSeveralForms) {
  LastRig rig;
  const CallLibrary* const libraries[] = {&rig.library};
  const auto conv = [](int id, int from) {
    return Cat("%", id, " = Conv(%", from,
               ", %1) {dilations = [1, 1], group = 1, pads = [0, 0, 0, 0], strides = [1, 1]}\n");
  };
  DeviceCase one{"",
                 Parsed(R"(%0 = Input() {name = "x", shape = [1, 2, 1, 1]}
    %1 = Constant() {symbol = "w", value = f32[2, 2, 1, 1]{1, -2, 3, 0.5}}
    )" + conv(2, 0) + conv(3, 2) +
                        "%4 = Add(%3, %2)\n%5 = Add(%4, %2)\nreturn \"y\" = %5"),
                 {HostValue::FromTensor(
                     Tensor::FromDoubles({DType::kF32, {1, 2, 1, 1}}, std::vector<double>{3, 5}))},
                 {}};
  auto program = LowerToDevice(
      one.graph, {.algorithms = {{2, "cudnn-nhwc"}, {3, "cudnn-nhwc"}}, .libraries = libraries});
  ASSERT_TRUE(program.ok()) << program.status();
  one.program = *std::move(program);
  EXPECT_EQ(FailureOn(rig.driver.table(), &TextImage, one), "");
}

TEST(CudnnLibrary, MoreAlgorithmsAreOfferedThanNamed) {
  FakeCudnn fake;
  const Graph graph = Parsed(std::string(kConv) + "return \"y\" = %2");
  const auto offered = [&](size_t count) {
    const CudnnLibrary library(fake.table(), kDevice, kWorkspace, count);
    const CallLibrary* const libraries[] = {&library};
    const auto program =
        LowerToDevice(graph, {.algorithms = {{2, "cudnn:2"}}, .libraries = libraries});
    EXPECT_TRUE(program.ok()) << "whatever is offered: " << program.status();
    return LibraryAlgorithms(graph, 2, Numerics::kDefault, libraries);
  };
  EXPECT_THAT(offered(1), ElementsAre("cudnn", "cudnn-nhwc"));
  EXPECT_THAT(offered(2), ElementsAre("cudnn", "cudnn:1", "cudnn-nhwc", "cudnn-nhwc:1"));
  EXPECT_EQ(offered(kMostOffered).size(), 6u);
}

TEST(CudnnLibrary, ChannelsLastNeedsStoredWeights) {
  const Graph graph = Parsed(R"(%0 = Input() {name = "x", shape = [1, 1, 3]}
    %1 = Input() {name = "w", shape = [1, 1, 1]}
    %2 = Conv(%0, %1) {dilations = [1], group = 1, pads = [0, 0], strides = [1]}
    return "y" = %2)");
  EXPECT_THAT(Names(graph, Numerics::kStrict), ElementsAre("cudnn", "cudnn:1"));
}

TEST(CudnnLibrary, StrictKeepsReluOurs) {
  const std::string rest = "%5 = Add(%2, %3)\n%6 = Relu(%5)\nreturn \"y\" = %6";
  EXPECT_THAT(LaunchesOf(rest, Numerics::kDefault), ElementsAre("cudnn Conv Add Relu"));
  EXPECT_THAT(LaunchesOf(rest, Numerics::kStrict), ElementsAre("cudnn Conv Add", "kernel Relu"));
}

std::string KernelOf(const Graph& graph, const std::string& algorithm, Numerics numerics) {
  FakeCudnn fake;
  const CudnnLibrary library(fake.table(), kDevice, kWorkspace);
  const CallLibrary* const libraries[] = {&library};
  const auto program = LowerToDevice(
      graph, {.numerics = numerics, .algorithms = {{2, algorithm}}, .libraries = libraries});
  return program.ok() ? program->launches[0].info.kernel : std::string(program.status().message());
}

TEST(CudnnLibrary, NumericsAndWorkspaceChooseTheEngines) {
  const Graph graph = Parsed(std::string(kConv) + "return \"y\" = %2");
  const auto names = [&](auto&&... limits) {
    std::vector<std::string> all = Names(graph, limits...);
    const size_t count = std::erase_if(
        all, [](const std::string& name) { return name.find("-nhwc") != std::string::npos; });
    EXPECT_EQ(count, all.size()) << "as many with the channels last";
    return all;
  };
  EXPECT_THAT(names(Numerics::kStrict), ElementsAre("cudnn", "cudnn:1"));
  EXPECT_THAT(Names(graph, Numerics::kStrict),
              ElementsAre("cudnn", "cudnn:1", "cudnn-nhwc", "cudnn-nhwc:1"));
  EXPECT_THAT(names(Numerics::kDefault), ElementsAre("cudnn", "cudnn:1", "cudnn:2"));
  EXPECT_THAT(names(Numerics::kDefault, 2000), ElementsAre("cudnn", "cudnn:1"));
  EXPECT_THAT(names(Numerics::kDefault, int64_t{1} << 30),
              ElementsAre("cudnn", "cudnn:1", "cudnn:2", "cudnn:3"));
  EXPECT_EQ(KernelOf(graph, "cudnn", Numerics::kStrict), "cudnn engine 0");
  EXPECT_EQ(KernelOf(graph, "cudnn:1", Numerics::kStrict), "cudnn engine 4");
  EXPECT_EQ(KernelOf(graph, "cudnn:1", Numerics::kDefault), "cudnn engine 2");
  for (const std::string unknown : {"cudnn:3", "cudnn:", "cudnn:0", "cudnn:1x"}) {
    const std::string refusal = KernelOf(graph, unknown, Numerics::kStrict);
    EXPECT_THAT(refusal, HasSubstr(Cat("(Conv 2) has no algorithm '", unknown,
                                       "' here: cuDNN 9.19.0, workspace 256 MiB")));
    EXPECT_THAT(refusal, HasSubstr(Cat("numerics strict, has ", unknown == "cudnn:3" ? 3 : 2,
                                       " for it")));  // of all, or as listed
  }
  EXPECT_THAT(names(Numerics::kTf32),
              ElementsAre("cudnn", "cudnn:1", "cudnn:2", "cudnn-tf32", "cudnn-tf32:1"));
  EXPECT_EQ(KernelOf(graph, "cudnn", Numerics::kTf32), "cudnn engine 0");
  EXPECT_EQ(KernelOf(graph, "cudnn-tf32", Numerics::kTf32), "cudnn-tf32 engine 1");
  EXPECT_EQ(KernelOf(graph, "cudnn-tf32:1", Numerics::kBf16), "cudnn-tf32 engine 10");
  for (const Numerics stricter : {Numerics::kStrict, Numerics::kDefault, Numerics::kHigh}) {
    EXPECT_THAT(KernelOf(graph, "cudnn-tf32", stricter),
                HasSubstr("(Conv 2) has no algorithm 'cudnn-tf32' here"));
    for (const std::string& name : Names(graph, stricter))
      EXPECT_THAT(name, testing::Not(HasSubstr("tf32")));
  }
  const Graph doubles = Parsed(R"(%0 = Input() {dtype = "f64", name = "x", shape = [1, 1, 3]}
    %1 = Input() {dtype = "f64", name = "w", shape = [1, 1, 1]}
    %2 = Conv(%0, %1) {dilations = [1], group = 1, pads = [0, 0], strides = [1]}
    return "y" = %2)");
  EXPECT_TRUE(Names(doubles, Numerics::kDefault).empty());
}

}  // namespace
}  // namespace mendel::cuda
