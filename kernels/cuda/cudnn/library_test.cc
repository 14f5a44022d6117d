// Convolutions of whole programs by cuDNN's interface, executed by a fake of it, against the graphs' meaning.

#include "kernels/cuda/cudnn/library.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/status.h"
#include "gmock/gmock.h"
#include "graph/rewrite.h"
#include "graph/text.h"
#include "gtest/gtest.h"
#include "kernels/cuda/convolution_case.h"
#include "kernels/cuda/device_case.h"
#include "kernels/cuda/fake/fake_cudnn.h"
#include "kernels/cuda/fake/fake_driver.h"

namespace mendel::cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kDevice[] = "{\"deviceName\":\"fake\"}";
constexpr int64_t kWorkspace = int64_t{256} << 20;

/// One of the algorithms of every node that has some.
std::map<int32_t, std::string> SomeAlgorithms(const Graph& graph, const CallLibrary& library, Numerics numerics, uint64_t seed) {
  const CallLibrary* const libraries[] = {&library};
  std::map<int32_t, std::string> chosen;
  for (int32_t node = 0; node < static_cast<int32_t>(graph.nodes().size()); ++node) {
    const std::vector<std::string> names = LibraryAlgorithms(graph, node, numerics, libraries);
    if (!names.empty()) chosen[node] = names[seed++ % names.size()];
  }
  return chosen;
}

void RunPrograms(Numerics numerics, uint64_t seeds) {
  FakeDriver driver;
  FakeCudnn fake;
  const char* more = std::getenv("MENDEL_CUDA_SEEDS");
  if (more != nullptr) seeds = 25 * std::strtoull(more, nullptr, 10);
  const CudnnLibrary library(fake.table(), kDevice, kWorkspace);
  const CallLibrary* const libraries[] = {&library};
  std::vector<DeviceCase> cases;
  size_t calls = 0, with_epilogue = 0, own = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    DeviceCase one = RandomConvolutions(seed, numerics);
    auto program = LowerToDevice(one.graph, {.reuse_memory = seed % 2 == 0,
                                             .numerics = numerics,
                                             .algorithms = SomeAlgorithms(one.graph, library, numerics, seed),
                                             .libraries = libraries});
    ASSERT_TRUE(program.ok()) << one.told << program.status();
    for (const DeviceLaunch& launch : program->launches) {
      (launch.call == nullptr ? own : calls) += 1;
      with_epilogue += launch.call != nullptr && launch.info.nodes.size() > 1 ? 1 : 0;
    }
    one.program = *std::move(program);
    cases.push_back(std::move(one));
  }
  const absl::Status prepared = driver.Prepare(ModuleOf(cases));
  ASSERT_TRUE(prepared.ok()) << std::string(prepared.message()).substr(0, 4000);
  for (const DeviceCase& one : cases) EXPECT_EQ(FailureOn(driver.table(), &TextImage, one), "") << one.told;
  EXPECT_EQ(driver.Leaks(), "");
  EXPECT_EQ(fake.Leaks(), "");
  EXPECT_GT(with_epilogue, calls / 8);
  EXPECT_EQ(fake.Tf32Convolutions() > 0, Allows(numerics, Numerics::kTf32));
  std::printf("%zu graphs: %zu calls of cuDNN, %zu of them with an epilogue, and %zu kernels; %lld convolutions in TF32\n",
              cases.size(), calls, with_epilogue, own, static_cast<long long>(fake.Tf32Convolutions()));
}

TEST(CudnnLibrary, ProgramsMeanTheirGraphs) { RunPrograms(Numerics::kDefault, 45); }
TEST(CudnnLibrary, StrictProgramsMeanTheirGraphs) { RunPrograms(Numerics::kStrict, 12); }
TEST(CudnnLibrary, Tf32ProgramsMeanTheirGraphs) { RunPrograms(Numerics::kTf32, 20); }

Graph Parsed(const std::string& body) {
  auto graph = ParseGraph("graph \"g\" {\n" + body + "\n}");
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

constexpr char kConv[] = R"(%0 = Input() {name = "x", shape = [1, 2, 5, 5]}
    %1 = Constant() {symbol = "w", value = f32[2, 2, 1, 1]{1, -2, 3, 0.5}}
    %2 = Conv(%0, %1) {dilations = [1, 1], group = 1, pads = [0, 0, 0, 0], strides = [1, 1]}
    %3 = Constant() {symbol = "b", value = f32[2, 1, 1]{1, 2}}
    %4 = Constant() {symbol = "r", value = f32[1, 1, 5, 1]{1, 2, 3, 4, 5}}
)";

/// The operators of each launch of the graph, whose node 2 is computed by cuDNN.
std::vector<std::string> LaunchesOf(const std::string& rest, Numerics numerics = Numerics::kDefault) {
  FakeCudnn fake;
  const CudnnLibrary library(fake.table(), kDevice, kWorkspace);
  const CallLibrary* const libraries[] = {&library};
  const Graph graph = Parsed(kConv + rest);
  const auto program = LowerToDevice(graph, {.numerics = numerics, .algorithms = {{2, "cudnn"}}, .libraries = libraries});
  EXPECT_TRUE(program.ok()) << program.status();
  std::vector<std::string> launches;
  if (!program.ok()) return launches;
  for (const DeviceLaunch& launch : program->launches) {
    launches.push_back(launch.call == nullptr ? "kernel" : "cudnn");
    for (const int32_t node : launch.info.nodes) launches.back() += Cat(" ", graph.node(node).op->name);
  }
  return launches;
}

TEST(CudnnLibrary, TakesWhatTheEpilogueHolds) {
  EXPECT_THAT(LaunchesOf("%5 = Add(%2, %3)\n%6 = Add(%0, %5)\n%7 = Relu(%6)\nreturn \"y\" = %7"),
              ElementsAre("cudnn Conv Add Add Relu"));
  EXPECT_THAT(LaunchesOf("%5 = Add(%2, %0)\n%6 = Add(%3, %5)\nreturn \"y\" = %6"), ElementsAre("cudnn Conv Add Add"));
  EXPECT_THAT(LaunchesOf("%5 = Relu(%2)\nreturn \"y\" = %5"), ElementsAre("cudnn Conv Relu"));
  // A second bias, a summand by rows, what follows the activation, other activations: kernels of ours.
  EXPECT_THAT(LaunchesOf("%5 = Add(%2, %3)\n%6 = Add(%5, %3)\nreturn \"y\" = %6"), ElementsAre("cudnn Conv Add", "kernel Add"));
  EXPECT_THAT(LaunchesOf("%5 = Add(%2, %4)\nreturn \"y\" = %5"), ElementsAre("cudnn Conv", "kernel Add"));
  EXPECT_THAT(LaunchesOf("%5 = Relu(%2)\n%6 = Add(%5, %3)\nreturn \"y\" = %6"), ElementsAre("cudnn Conv Relu", "kernel Add"));
  EXPECT_THAT(LaunchesOf("%5 = Sigmoid(%2)\nreturn \"y\" = %5"), ElementsAre("cudnn Conv", "kernel Sigmoid"));
  // What is read twice is stored.
  EXPECT_THAT(LaunchesOf("%5 = Add(%2, %2)\nreturn \"y\" = %5"), ElementsAre("cudnn Conv", "kernel Add"));
  EXPECT_THAT(LaunchesOf("%5 = Relu(%2)\nreturn \"y\" = %5, \"z\" = %2"), ElementsAre("cudnn Conv", "kernel Relu"));
  // The addition belongs to the summand that is computed last.
  EXPECT_THAT(LaunchesOf("%5 = Sin(%0)\n%6 = Add(%2, %5)\nreturn \"y\" = %6"), ElementsAre("cudnn Conv", "kernel Sin Add"));
}

HostValue FiftyNumbers() {
  std::vector<double> values;
  for (int k = 0; k < 50; ++k) values.push_back(k % 7 - 3);
  return HostValue::FromTensor(Tensor::FromDoubles({DType::kF32, {1, 2, 5, 5}}, values));
}

std::vector<std::string> Names(const Graph& graph, Numerics numerics, int64_t workspace = kWorkspace) {
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
    auto program =
        LowerToDevice(one.graph, {.reuse_memory = cases.size() % 2 == 0, .algorithms = algorithms, .libraries = libraries});
    EXPECT_TRUE(program.ok()) << program.status();
    if (!program.ok()) return {};
    std::vector<std::string> launches;
    for (const DeviceLaunch& launch : program->launches) {
      launches.push_back(launch.call == nullptr ? "kernel" : "cudnn");
      for (const int32_t node : launch.info.nodes) launches.back() += Cat(" ", one.graph.node(node).op->name);
    }
    one.program = *std::move(program);
    cases.push_back(std::move(one));
    return launches;
  }
};

TEST(CudnnLibrary, ValuesStayChannelsLastBetweenCalls) {
  LastRig rig;
  const auto conv = [](int id, int from) {
    return Cat("%", id, " = Conv(%", from, ", %1) {dilations = [1, 1], group = 1, pads = [0, 0, 0, 0], strides = [1, 1]}\n");
  };
  // Conversions are kernels without nodes of the graph.
  EXPECT_THAT(rig.LaunchesOf("return \"y\" = %2"), ElementsAre("kernel", "cudnn Conv", "kernel"));
  EXPECT_THAT(rig.LaunchesOf("%5 = Relu(%2)\n" + conv(6, 5) + "return \"y\" = %6"),
              ElementsAre("kernel", "cudnn Conv Relu", "cudnn Conv", "kernel"));
  // Elementwise operators in between are computed as they are, their other operands turned: constants once, inputs where read.
  EXPECT_THAT(rig.LaunchesOf("%5 = Sigmoid(%2)\n%6 = Mul(%5, %3)\n%7 = Sub(%6, %4)\n" + conv(8, 7) + "return \"y\" = %8"),
              ElementsAre("kernel", "cudnn Conv", "kernel Sigmoid Mul Sub", "cudnn Conv", "kernel"));
  EXPECT_THAT(rig.LaunchesOf("%5 = Sin(%2)\n%6 = Mul(%0, %5)\n" + conv(7, 6) + "return \"y\" = %7"),
              ElementsAre("kernel", "cudnn Conv", "kernel Sin Mul", "cudnn Conv", "kernel"));
  // A residual is read as the call before has left it.
  EXPECT_THAT(rig.LaunchesOf("%5 = Relu(%2)\n" + conv(6, 5) + "%7 = Add(%6, %5)\n%8 = Relu(%7)\nreturn \"y\" = %8"),
              ElementsAre("kernel", "cudnn Conv Relu", "cudnn Conv Add Relu", "kernel"));
  // What no call wants so is converted where it is read; what others read, too, is converted once.
  EXPECT_THAT(rig.LaunchesOf("%5 = Sigmoid(%2)\nreturn \"y\" = %5"), ElementsAre("kernel", "cudnn Conv", "kernel Sigmoid"));
  EXPECT_THAT(rig.LaunchesOf("%5 = Sin(%2)\n" + conv(6, 5) + "return \"y\" = %6, \"z\" = %5"),
              ElementsAre("kernel", "cudnn Conv", "kernel Sin", "cudnn Conv", "kernel", "kernel"));
  ASSERT_TRUE(rig.driver.Prepare(ModuleOf(rig.cases)).ok());
  for (const DeviceCase& one : rig.cases) EXPECT_EQ(FailureOn(rig.driver.table(), &TextImage, one), "") << one.told;
}

/// One value as x, as what is added by channels and as the residual, each in another form.
TEST(CudnnLibrary, AValueIsReadInSeveralForms) {
  LastRig rig;
  const CallLibrary* const libraries[] = {&rig.library};
  const auto conv = [](int id, int from) {
    return Cat("%", id, " = Conv(%", from, ", %1) {dilations = [1, 1], group = 1, pads = [0, 0, 0, 0], strides = [1, 1]}\n");
  };
  DeviceCase one{"",
                 Parsed(R"(%0 = Input() {name = "x", shape = [1, 2, 1, 1]}
    %1 = Constant() {symbol = "w", value = f32[2, 2, 1, 1]{1, -2, 3, 0.5}}
    )" + conv(2, 0) + conv(3, 2) +
                        "%4 = Add(%3, %2)\n%5 = Add(%4, %2)\nreturn \"y\" = %5"),
                 {HostValue::FromTensor(Tensor::FromDoubles({DType::kF32, {1, 2, 1, 1}}, std::vector<double>{3, 5}))},
                 {}};
  auto program = LowerToDevice(one.graph, {.algorithms = {{2, "cudnn-nhwc"}, {3, "cudnn-nhwc"}}, .libraries = libraries});
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
    const auto program = LowerToDevice(graph, {.algorithms = {{2, "cudnn:2"}}, .libraries = libraries});
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
  const auto program = LowerToDevice(graph, {.numerics = numerics, .algorithms = {{2, algorithm}}, .libraries = libraries});
  return program.ok() ? program->launches[0].info.kernel : std::string(program.status().message());
}

TEST(CudnnLibrary, NumericsAndWorkspaceChooseTheEngines) {
  const Graph graph = Parsed(std::string(kConv) + "return \"y\" = %2");
  const auto names = [&](auto&&... limits) {
    std::vector<std::string> all = Names(graph, limits...);
    const size_t count = std::erase_if(all, [](const std::string& name) { return name.find("-nhwc") != std::string::npos; });
    EXPECT_EQ(count, all.size()) << "as many with the channels last";
    return all;
  };
  EXPECT_THAT(names(Numerics::kStrict), ElementsAre("cudnn", "cudnn:1"));
  EXPECT_THAT(Names(graph, Numerics::kStrict), ElementsAre("cudnn", "cudnn:1", "cudnn-nhwc", "cudnn-nhwc:1"));
  EXPECT_THAT(names(Numerics::kDefault), ElementsAre("cudnn", "cudnn:1", "cudnn:2"));
  EXPECT_THAT(names(Numerics::kDefault, 2000), ElementsAre("cudnn", "cudnn:1"));
  EXPECT_THAT(names(Numerics::kDefault, int64_t{1} << 30), ElementsAre("cudnn", "cudnn:1", "cudnn:2", "cudnn:3"));
  EXPECT_EQ(KernelOf(graph, "cudnn", Numerics::kStrict), "cudnn engine 0");
  EXPECT_EQ(KernelOf(graph, "cudnn:1", Numerics::kStrict), "cudnn engine 4");
  EXPECT_EQ(KernelOf(graph, "cudnn:1", Numerics::kDefault), "cudnn engine 2");
  for (const char* unknown : {"cudnn:2", "cudnn:", "cudnn:0", "cudnn:1x"}) {
    const std::string refusal = KernelOf(graph, unknown, Numerics::kStrict);
    EXPECT_THAT(refusal, HasSubstr(Cat("(Conv 2) has no algorithm '", unknown, "' here: cuDNN 9.19.0, workspace 256 MiB")));
    EXPECT_THAT(refusal, HasSubstr("numerics strict, has 2 for it"));
  }
  EXPECT_THAT(names(Numerics::kTf32), ElementsAre("cudnn", "cudnn:1", "cudnn:2", "cudnn-tf32", "cudnn-tf32:1"));
  EXPECT_EQ(KernelOf(graph, "cudnn", Numerics::kTf32), "cudnn engine 0");
  EXPECT_EQ(KernelOf(graph, "cudnn-tf32", Numerics::kTf32), "cudnn-tf32 engine 1");
  EXPECT_EQ(KernelOf(graph, "cudnn-tf32:1", Numerics::kBf16), "cudnn-tf32 engine 10");
  for (const Numerics stricter : {Numerics::kStrict, Numerics::kDefault, Numerics::kHigh}) {
    EXPECT_THAT(KernelOf(graph, "cudnn-tf32", stricter), HasSubstr("(Conv 2) has no algorithm 'cudnn-tf32' here"));
    for (const std::string& name : Names(graph, stricter)) EXPECT_THAT(name, testing::Not(HasSubstr("tf32")));
  }
  const Graph doubles = Parsed(R"(%0 = Input() {dtype = "f64", name = "x", shape = [1, 1, 3]}
    %1 = Input() {dtype = "f64", name = "w", shape = [1, 1, 1]}
    %2 = Conv(%0, %1) {dilations = [1], group = 1, pads = [0, 0], strides = [1]}
    return "y" = %2)");
  EXPECT_TRUE(Names(doubles, Numerics::kDefault).empty());
}

/// That a class is exceeded is seen: what TF32 drops is more than other classes may be wrong by.
TEST(CudnnLibrary, Tf32IsFurtherOffThanOtherClassesMayBe) {
  FakeDriver driver;
  FakeCudnn fake;
  const CudnnLibrary library(fake.table(), kDevice, kWorkspace);
  const CallLibrary* const libraries[] = {&library};
  const Graph graph = Parsed(std::string(kConv) + "return \"y\" = %2");
  const std::vector<double> values(50, 1 + 0x1p-11 - 0x1p-20);
  DeviceCase one{"", graph, {HostValue::FromTensor(Tensor::FromDoubles({DType::kF32, {1, 2, 5, 5}}, values))}, {}};
  const auto failure = [&](const std::string& algorithm, Numerics bound) {
    auto program = LowerToDevice(graph, {.numerics = Numerics::kTf32, .algorithms = {{2, algorithm}}, .libraries = libraries});
    EXPECT_TRUE(program.ok()) << program.status();
    one.program = *std::move(program);
    one.numerics = bound;
    return FailureOn(driver.table(), &TextImage, one);
  };
  EXPECT_EQ(failure("cudnn", Numerics::kDefault), "");
  EXPECT_EQ(fake.Tf32Convolutions(), 0);
  EXPECT_EQ(failure("cudnn-tf32", Numerics::kTf32), "");
  EXPECT_THAT(failure("cudnn-tf32", Numerics::kDefault), HasSubstr("output 0: element 0 is -1, not -1.0"));
  EXPECT_THAT(failure("cudnn-tf32:1", Numerics::kHigh), HasSubstr("element 0"));
  EXPECT_GT(fake.Tf32Convolutions(), 0);
}

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
  MENDEL_ASSIGN_OR_RETURN(one.program,
                          LowerToDevice(one.graph, {.algorithms = {{2, "cudnn"}, {7, "cudnn-nhwc:2"}}, .libraries = libraries}));
  return one;
}

TEST(CudnnLibrary, EveryCallMayFail) {
  FakeDriver driver;
  FakeCudnn fake;
  const auto run = [&]() -> std::string {
    const CudnnLibrary library(fake.table(), kDevice, kWorkspace);
    const auto one = LoweredNet(library);
    return one.ok() ? FailureOn(driver.table(), &TextImage, *one) : std::string(one.status().message());
  };
  // Where a longer epilogue is answered with an error, kernels compute what it lacks.
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
    const bool gives_back = fake.FailedCall() == "BackendDestroyDescriptor" || fake.FailedCall() == "Destroy";
    // While it plans, an engine that errs is left out, so that those after it are others, or one less.
    const bool left_out =
        call <= whole_planning && (failure.empty() || failure.find("has no algorithm 'cudnn-nhwc:2'") != std::string::npos);
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
  std::printf("%lld calls of cuDNN and %lld of the driver, each failed once\n", static_cast<long long>(calls),
              static_cast<long long>(driver_calls));
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
  EXPECT_THAT(std::string(loaded.status().message()), HasSubstr("cuDNN 9.20.1 does not make the plan of engine 0 again"));
  EXPECT_THAT(std::string(loaded.status().message()), HasSubstr("the plan of another version (1003)"));
  EXPECT_EQ(fake.Leaks() + driver.Leaks(), "");
}

TEST(CudnnLibrary, TransposedConvolutionsAreFinishedByAKernel) {
  FakeDriver driver;
  FakeCudnn fake;
  const CudnnLibrary library(fake.table(), kDevice, kWorkspace);
  const CallLibrary* const libraries[] = {&library};
  const std::string transposed = R"(%0 = Input() {name = "x", shape = [1, 2, 5, 5]}
    %1 = Constant() {symbol = "w", value = f32[2, 3, 1, 1]{1, -2, 3, 0.5, 2, -1}}
    %2 = Constant() {symbol = "b", value = f32[3]{1, 2, -3}}
    %3 = ConvTranspose(%0, %1, %2) {dilations = [1, 1], group = 1, output_padding = [0, 0], pads = [0, 0, 0, 0], strides = [1, 1]}
    )";
  const char* const rests[] = {"return \"y\" = %3", "%4 = Relu(%3)\n%5 = Neg(%4)\nreturn \"y\" = %5"};
  for (const std::string rest : rests) {
    DeviceCase one{"", Parsed(transposed + rest), {FiftyNumbers()}, {}};
    auto program = LowerToDevice(one.graph, {.algorithms = {{3, "cudnn"}}, .libraries = libraries});
    ASSERT_TRUE(program.ok()) << program.status();
    one.program = *std::move(program);
    ASSERT_GE(one.program.launches.size(), 2u);
    EXPECT_EQ(one.program.launches[0].info.kernel, "cudnn engine 0");
    EXPECT_EQ(one.program.launches[1].info.kernel, "epilogue in place");
    EXPECT_EQ(one.program.launches[1].info.nodes.size(), one.graph.nodes().size() > 4 ? 2u : 1u);
    EXPECT_EQ(FailureOn(driver.table(), &TextImage, one), "");
  }
}

/// A mutant by cuDNN, whose boxes are mended where it lies before another convolution by cuDNN reads it.
TEST(CudnnLibrary, MutantsAreMendedInPlace) {
  FakeDriver driver;
  FakeCudnn fake;
  const CudnnLibrary library(fake.table(), kDevice, kWorkspace);
  const CallLibrary* const libraries[] = {&library};
  DeviceCase one{"",
                 Parsed(std::string(kConv) + R"(%5 = Relu(%2)
    %6 = Slice(%0) {ends = [1, 2, 3, 5], starts = [0, 0, 2, 0], steps = [1, 1, 1, 1]}
    %7 = Conv(%6, %1) {dilations = [1, 1], group = 1, pads = [0, 0, 0, 0], strides = [1, 1]}
    %8 = Relu(%7)
    %9 = Patch(%5, %8) {boxes = [[0:1, 0:2, 0:1, 0:5]]}
    %10 = Conv(%9, %1) {dilations = [1, 1], group = 1, pads = [0, 0, 0, 0], strides = [1, 1]}
    return "y" = %10)"),
                 {FiftyNumbers()},
                 {}};
  std::map<int32_t, std::string> algorithms;
  for (int32_t node = 0; node < static_cast<int32_t>(one.graph.nodes().size()); ++node) {
    if (one.graph.node(node).op->name == "Conv") algorithms[node] = "cudnn";
  }
  ASSERT_EQ(algorithms.size(), 3u);
  auto program = LowerToDevice(one.graph, {.algorithms = algorithms, .libraries = libraries});
  ASSERT_TRUE(program.ok()) << program.status();
  one.program = *std::move(program);
  ASSERT_EQ(one.program.launches.size(), 3u) << "the piece is the correction's own";
  EXPECT_EQ(one.program.launches[0].info.kernel, "cudnn engine 0");
  EXPECT_THAT(one.program.launches[1].info.kernel, HasSubstr("1 box in place"));
  EXPECT_EQ(one.program.launches[2].info.kernel, "cudnn engine 0");
  EXPECT_EQ(FailureOn(driver.table(), &TextImage, one), "");
  // With the channels last, the mutant is converted for its boxes, and the mended one for its reader.
  for (auto& [node, algorithm] : algorithms) algorithm = "cudnn-nhwc";
  auto last = LowerToDevice(one.graph, {.algorithms = algorithms, .libraries = libraries});
  ASSERT_TRUE(last.ok()) << last.status();
  one.program = *std::move(last);
  std::vector<std::string> launches;
  for (const DeviceLaunch& launch : one.program.launches) launches.push_back(launch.info.kernel);
  ASSERT_EQ(launches.size(), 7u);
  EXPECT_THAT(launches[3], HasSubstr("1 box in place"));
  EXPECT_EQ(FailureOn(driver.table(), &TextImage, one), "");
}

TEST(CudnnLibrary, PropertiesOfADeviceThatIsHere) {
  FakeCudnn fake;
  EXPECT_EQ(*DevicePropertiesOf(fake.table(), 0), kDevice);
  EXPECT_FALSE(DevicePropertiesOf(fake.table(), 1).ok());
  EXPECT_EQ(fake.Leaks(), "");
}

/// What MatchConvolution makes of random graphs, planned by cuDNN itself.
TEST(CudnnLibrary, FormsOfProgramsArePlannedWithoutADevice) {
  const auto cudnn = Cudnn::Get();
  if (!cudnn.ok()) GTEST_SKIP() << cudnn.status();
  std::map<std::string, int> planned;  // by kind
  int convolutions = 0, shortened = 0, finished = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const Graph graph = RandomConvolutions(seed, Numerics::kTf32).graph;
    const CudnnLibrary library(**cudnn, DevicePropertiesJson(*GpuOf(90)), kWorkspace);
    const std::vector<bool> constant = ConstantExpressions(graph), none(graph.nodes().size(), false);
    const GroupingScope scope{graph, constant, none};
    for (int32_t node = 0; node < static_cast<int32_t>(graph.nodes().size()); ++node) {
      const auto matches = MatchConvolution(scope, node, Numerics::kTf32);
      if (matches.empty()) continue;
      ++convolutions;
      for (const std::string& name : library.Algorithms(scope, node, Numerics::kTf32)) {
        if (name.find(':') != std::string::npos) continue;
        const auto group = library.Group(scope, node, name, Numerics::kTf32);
        ASSERT_TRUE(group.ok()) << seed << " " << group.status();
        ++planned[name];
        shortened += group->nodes.size() < matches[0].group.nodes.size() ? 1 : 0;
        finished += group->finish.name.empty() ? 0 : 1;
      }
    }
  }
  std::printf("%d convolutions, %d calls with a shorter epilogue, %d finished by a kernel\n", convolutions, shortened, finished);
  for (const auto& [name, count] : planned) std::printf("%s: %d planned\n", name.c_str(), count);
  EXPECT_EQ(planned["cudnn"], convolutions);
  EXPECT_GT(planned["cudnn-tf32"], 0);
  EXPECT_GT(planned["cudnn-nhwc"], 0);
  EXPECT_GT(planned["cudnn-tf32-nhwc"], 0);
}

}  // namespace
}  // namespace mendel::cuda
