// Tests of whole programs with convolutions by cuDNN's interface, executed by a fake of it, against
// the graphs' meaning.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "gmock/gmock.h"
#include "graph/rewrite.h"
#include "gtest/gtest.h"
#include "kernels/cuda/cudnn/library.h"
#include "kernels/cuda/cudnn/library_case.h"
#include "kernels/cuda/testing/convolution_case.h"
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

/// One of the algorithms of every node that has some.
std::map<int32_t, std::string> SomeAlgorithms(const Graph& graph, const CallLibrary& library,
                                              Numerics numerics, uint64_t seed) {
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
  CompiledEngines compiled(60, {});
  const CudnnLibrary library(fake.table(), kDevice, kWorkspace, kOffered, &compiled);
  const CallLibrary* const libraries[] = {&library};
  std::vector<DeviceCase> cases;
  size_t calls = 0, with_epilogue = 0, own = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    DeviceCase one = RandomConvolutions(seed, numerics);
    auto program =
        LowerToDevice(one.graph, {.reuse_memory = seed % 2 == 0,
                                  .numerics = numerics,
                                  .algorithms = SomeAlgorithms(one.graph, library, numerics, seed),
                                  .libraries = libraries});
    ASSERT_TRUE(program.ok()) << one.description << program.status();
    for (const DeviceLaunch& launch : program->launches) {
      (launch.call == nullptr ? own : calls) += 1;
      with_epilogue += launch.call != nullptr && launch.info.nodes.size() > 1 ? 1 : 0;
    }
    one.program = *std::move(program);
    cases.push_back(std::move(one));
  }
  const absl::Status prepared = driver.Prepare(ModuleOf(cases));
  ASSERT_TRUE(prepared.ok()) << std::string(prepared.message()).substr(0, 4000);
  for (const DeviceCase& one : cases)
    EXPECT_EQ(FailureOn(driver.table(), &TextImage, one), "") << one.description;
  EXPECT_EQ(driver.Leaks(), "");
  EXPECT_EQ(fake.Leaks(), "");
  EXPECT_GT(with_epilogue, calls / 8);
  EXPECT_EQ(fake.Tf32Convolutions() > 0, Allows(numerics, Numerics::kTf32));
  std::printf(
      "%zu graphs: %zu calls of cuDNN, %zu of them with an epilogue, and %zu kernels; %lld "
      "convolutions in TF32\n",
      cases.size(), calls, with_epilogue, own, static_cast<long long>(fake.Tf32Convolutions()));
}

TEST(CudnnLibrary, ProgramsMeanTheirGraphs) { RunPrograms(Numerics::kDefault, 45); }

double FlopsOf(const Graph& graph) {
  double flops = 0;
  for (int32_t node = 0; node < static_cast<int32_t>(graph.nodes().size()); ++node) {
    flops += WithView(graph, node, [&](const NodeView& view) {
      return CostOf(*graph.node(node).op, view).flops;
    });
  }
  return flops;
}

/// Quick runs leave out layers that take the fake more than a moment.
TEST(CudnnLibrary, LayersOfNetworksMeanTheirDefinition) {
  const bool all = std::getenv("MENDEL_CUDA_SEEDS") != nullptr;
  constexpr double kQuickFlops = 3e7;
  FakeDriver driver;
  FakeCudnn fake;
  const CudnnLibrary library(fake.table(), kDevice, kWorkspace);
  const CallLibrary* const libraries[] = {&library};
  std::vector<DeviceCase> cases;
  for (uint64_t seed = 0; seed < LayerConvolutions(); ++seed) {
    DeviceCase one = LayerConvolution(seed, Numerics::kDefault);
    if (!all && FlopsOf(one.graph) > kQuickFlops) continue;
    auto program = LowerToDevice(
        one.graph, {.algorithms = SomeAlgorithms(one.graph, library, Numerics::kDefault, seed),
                    .libraries = libraries});
    ASSERT_TRUE(program.ok()) << one.description << program.status();
    EXPECT_TRUE(std::any_of(program->launches.begin(), program->launches.end(),
                            [](const DeviceLaunch& launch) { return launch.call != nullptr; }));
    one.program = *std::move(program);
    cases.push_back(std::move(one));
  }
  EXPECT_GE(cases.size(), 6u);
  const absl::Status prepared = driver.Prepare(ModuleOf(cases));
  ASSERT_TRUE(prepared.ok()) << std::string(prepared.message()).substr(0, 4000);
  for (const DeviceCase& one : cases)
    EXPECT_EQ(FailureOn(driver.table(), &TextImage, one), "") << one.description;
}

TEST(CudnnLibrary, StrictProgramsMeanTheirGraphs) { RunPrograms(Numerics::kStrict, 12); }

TEST(CudnnLibrary, Tf32ProgramsMeanTheirGraphs) { RunPrograms(Numerics::kTf32, 20); }

/// An exceeded bound is detected: TF32 drops more than other classes may be wrong by.
TEST(CudnnLibrary, Tf32IsFurtherOffThanOtherClassesMayBe) {
  FakeDriver driver;
  FakeCudnn fake;
  const CudnnLibrary library(fake.table(), kDevice, kWorkspace);
  const CallLibrary* const libraries[] = {&library};
  const Graph graph = Parsed(std::string(kConv) + "return \"y\" = %2");
  const std::vector<double> values(50, 1 + 0x1p-11 - 0x1p-20);
  DeviceCase one{"",
                 graph,
                 {HostValue::FromTensor(Tensor::FromDoubles({DType::kF32, {1, 2, 5, 5}}, values))},
                 {}};
  const auto failure = [&](const std::string& algorithm, Numerics bound) {
    auto program = LowerToDevice(
        graph,
        {.numerics = Numerics::kTf32, .algorithms = {{2, algorithm}}, .libraries = libraries});
    EXPECT_TRUE(program.ok()) << program.status();
    one.program = *std::move(program);
    one.numerics = bound;
    return FailureOn(driver.table(), &TextImage, one);
  };
  EXPECT_EQ(failure("cudnn", Numerics::kDefault), "");
  EXPECT_EQ(fake.Tf32Convolutions(), 0);
  EXPECT_EQ(failure("cudnn-tf32", Numerics::kTf32), "");
  EXPECT_THAT(failure("cudnn-tf32", Numerics::kDefault),
              HasSubstr("output 0: element 0 is -1, not -1.0"));
  EXPECT_THAT(failure("cudnn-tf32:1", Numerics::kHigh), HasSubstr("element 0"));
  EXPECT_GT(fake.Tf32Convolutions(), 0);
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
  const char* const rests[] = {"return \"y\" = %3",
                               "%4 = Relu(%3)\n%5 = Neg(%4)\nreturn \"y\" = %5"};
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

/// Transposed convolutions have the channels last or 16 bits, alone and between forward
/// convolutions of the form. The bias and Relu follow where the call has left the sums. A kernel
/// that reads each operand as it lies adds a residual.
TEST(CudnnLibrary, TransposedConvolutionsHaveEveryForm) {
  struct Kind {
    const char* name;
    Numerics numerics;
    int64_t result_bytes;  // of 75 numbers
  };
  const Kind kinds[] = {
      {"cudnn-nhwc", Numerics::kStrict, 300},     {"cudnn-nhwc:2", Numerics::kDefault, 300},
      {"cudnn-tf32-nhwc", Numerics::kTf32, 300},  {"cudnn-f16", Numerics::kF16, 150},
      {"cudnn-f16-nhwc", Numerics::kF16, 150},    {"cudnn-bf16", Numerics::kBf16, 150},
      {"cudnn-bf16-nhwc:1", Numerics::kBf16, 150}};
  FakeDriver driver;
  FakeCudnn fake;
  const CudnnLibrary library(fake.table(), kDevice, kWorkspace);
  const CallLibrary* const libraries[] = {&library};
  constexpr char kTransposed[] = R"(%0 = Input() {name = "x", shape = [1, 2, 5, 5]}
    %1 = Constant() {symbol = "w", value = f32[2, 3, 1, 1]{1, -2, 3, 0.5, 2, -1}}
    %2 = Constant() {symbol = "b", value = f32[3]{1, 2, -3}}
    %3 = ConvTranspose(%0, %1, %2) {dilations = [1, 1], group = 1, output_padding = [0, 0], pads = [0, 0, 0, 0], strides = [1, 1]}
    )";
  constexpr char kNext[] =
      R"(%5 = Constant() {symbol = "v", value = f32[2, 3, 1, 1]{1, -2, 3, 0.5, 2, -1}}
    %6 = Conv(%4, %5) {dilations = [1, 1], group = 1, pads = [0, 0, 0, 0], strides = [1, 1]}
    %7 = Constant() {symbol = "u", value = f32[2, 3, 1, 1]{2, 1, -1, 0.5, 1, -2}}
    %8 = ConvTranspose(%6, %7) {dilations = [1, 1], group = 1, output_padding = [0, 0], pads = [0, 0, 0, 0], strides = [1, 1]}
    %9 = Add(%8, %4)
    return "y" = %9)";
  const std::string rests[] = {"return \"y\" = %3", "%4 = Relu(%3)\nreturn \"y\" = %4",
                               Cat("%4 = Relu(%3)\n", kNext)};
  std::vector<DeviceCase> cases;
  for (const Kind& kind : kinds) {
    for (const std::string& rest : rests) {
      DeviceCase one{Cat(kind.name, "\n", rest),
                     Parsed(kTransposed + rest),
                     {FiftyNumbers()},
                     {},
                     kind.numerics};
      std::map<int32_t, std::string> algorithms;
      for (int32_t node = 0; node < static_cast<int32_t>(one.graph.nodes().size()); ++node) {
        if (one.graph.node(node).op->name.starts_with("Conv")) algorithms[node] = kind.name;
      }
      auto program = LowerToDevice(
          one.graph, {.numerics = kind.numerics, .algorithms = algorithms, .libraries = libraries});
      ASSERT_TRUE(program.ok()) << one.description << program.status();
      one.program = *std::move(program);
      size_t calls = 0, conversions = 0;
      for (const DeviceLaunch& launch : one.program.launches) {
        calls += launch.call != nullptr ? 1 : 0;
        conversions += launch.info.nodes.empty() ? 1 : 0;
        const bool is_first = launch.call != nullptr && launch.info.nodes[0] == 3;
        if (is_first) {
          EXPECT_EQ(launch.pointers.back().bytes, kind.result_bytes) << one.description;
        }
        EXPECT_EQ(launch.info.requested_by.empty(), !launch.info.nodes.empty()) << one.description;
      }
      EXPECT_EQ(calls, algorithms.size()) << one.description;
      // Values are converted before the first call, and back once, but not in between.
      EXPECT_LE(conversions, 2u) << one.description;
      cases.push_back(std::move(one));
    }
  }
  ASSERT_TRUE(driver.Prepare(ModuleOf(cases)).ok());
  for (const DeviceCase& one : cases)
    EXPECT_EQ(FailureOn(driver.table(), &TextImage, one), "") << one.description;
  EXPECT_EQ(driver.Leaks() + fake.Leaks(), "");
}

/// A mutant by cuDNN is corrected in place before another convolution by cuDNN reads
/// it.
TEST(CudnnLibrary, MutantsAreCorrectedInPlace) {
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
  // With the channels last, the mutant is converted for its boxes, and the corrected value for its
  // reader.
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

/// cuDNN itself plans what MatchConvolution finds in random graphs.
TEST(CudnnLibrary, FormsOfProgramsArePlannedWithoutADevice) {
  const Cudnn* cudnn = cudnn_case::InstalledCudnn();
  if (cudnn == nullptr) GTEST_SKIP() << "cuDNN is not installed";
  std::map<std::string, int> planned;  // by kind
  int convolutions = 0, shortened = 0, finished = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const Graph graph = RandomConvolutions(seed, Numerics::kTf32).graph;
    const CudnnLibrary library(*cudnn, DevicePropertiesJson(*GpuOf(90)), kWorkspace);
    const std::vector<bool> constant = ConstantExpressions(graph),
                            none(graph.nodes().size(), false);
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
  std::printf("%d convolutions, %d calls with a shorter epilogue, %d finished by a kernel\n",
              convolutions, shortened, finished);
  for (const auto& [name, count] : planned) std::printf("%s: %d planned\n", name.c_str(), count);
  EXPECT_EQ(planned["cudnn"], convolutions);
  EXPECT_GT(planned["cudnn-tf32"], 0);
  EXPECT_GT(planned["cudnn-nhwc"], 0);
  EXPECT_GT(planned["cudnn-tf32-nhwc"], 0);
}

}  // namespace
}  // namespace mendel::cuda
