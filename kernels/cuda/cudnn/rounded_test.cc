// Tests of f32 convolutions by cuDNN with all tensors in f16 or bf16: the values that stay in the
// format between calls, and the engines that cuDNN has.

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
#include "graph/text.h"
#include "gtest/gtest.h"
#include "kernels/cuda/cudnn/library.h"
#include "kernels/cuda/cudnn/library_case.h"
#include "kernels/cuda/testing/convolution_case.h"
#include "kernels/cuda/testing/device_case.h"
#include "kernels/cuda/testing/fake/fake_cudnn.h"
#include "kernels/cuda/testing/fake/fake_driver.h"

namespace mendel::cuda {
namespace {

using cudnn_case::kDevice;
using cudnn_case::kWorkspace;
using cudnn_case::Parsed;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

struct Format {
  DType dtype;
  Numerics numerics;
  const char* kind;
};
constexpr Format kFormats[] = {{DType::kF16, Numerics::kF16, "cudnn-f16"},
                               {DType::kBF16, Numerics::kBf16, "cudnn-bf16"}};

constexpr char kConv[] = R"(%0 = Input() {name = "x", shape = [1, 2, 5, 5]}
    %1 = Constant() {symbol = "w", value = f32[2, 2, 1, 1]{1, -2, 3, 0.5}}
    %2 = Conv(%0, %1) {dilations = [1, 1], group = 1, pads = [0, 0, 0, 0], strides = [1, 1]}
    %3 = Constant() {symbol = "b", value = f32[2, 1, 1]{1, 2.001}}
)";
std::string Conv(int id, int from) {
  return Cat("%", id, " = Conv(%", from,
             ", %1) {dilations = [1, 1], group = 1, pads = [0, 0, 0, 0], strides = [1, 1]}\n");
}
constexpr int64_t kWholeBytes = 200, kRoundedBytes = 100;  // of a value of kConv

/// Multiples of 1/64 with more digits than either format has.
HostValue FiftyNumbers() {
  std::vector<double> values;
  for (int k = 0; k < 50; ++k) values.push_back(k % 7 - 3 + k * 0x1p-13);
  return HostValue::FromTensor(Tensor::FromDoubles({DType::kF32, {1, 2, 5, 5}}, values));
}

struct Rig {
  FakeDriver driver;
  FakeCudnn fake;
  CompiledEngines compiled{60, {}};
  CudnnLibrary library{fake.table(), kDevice, kWorkspace, kOffered, &compiled};
  const CallLibrary* libraries[1] = {&library};
  std::vector<DeviceCase> cases = {};

  /// Lowers one more program, whose last lines these are; every convolution is by `algorithm`.
  absl::StatusOr<DeviceProgram> Lower(const std::string& rest, Numerics numerics,
                                      const std::string& algorithm) {
    DeviceCase one{
        Cat(algorithm, "\n", rest), Parsed(kConv + rest), {FiftyNumbers()}, {}, numerics};
    std::map<int32_t, std::string> algorithms;
    for (int32_t node = 0; node < static_cast<int32_t>(one.graph.nodes().size()); ++node) {
      if (one.graph.node(node).op->name == "Conv") algorithms[node] = algorithm;
    }
    MENDEL_ASSIGN_OR_RETURN(one.program,
                            LowerToDevice(one.graph, {.reuse_memory = cases.size() % 2 == 0,
                                                      .numerics = numerics,
                                                      .algorithms = algorithms,
                                                      .libraries = libraries}));
    cases.push_back(std::move(one));
    return cases.back().program;
  }
  /// The operators of each of its launches, and the bytes of the values that the launch reads and
  /// writes, constants left out.
  std::vector<std::string> Launches(const std::string& rest, const Format& format,
                                    const std::string& layout = "-nhwc") {
    const auto program = Lower(rest, format.numerics, format.kind + layout);
    EXPECT_TRUE(program.ok()) << program.status();
    std::vector<std::string> launches;
    if (!program.ok()) return launches;
    for (const DeviceLaunch& launch : program->launches) {
      std::string description = launch.call == nullptr ? "kernel" : "cudnn";
      for (const int32_t node : launch.info.nodes)
        description += Cat(" ", cases.back().graph.node(node).op->name);
      for (const DeviceBuffer& buffer : launch.pointers) {
        const bool is_value = buffer.bytes == kWholeBytes || buffer.bytes == kRoundedBytes;
        if (is_value) description += buffer.bytes == kWholeBytes ? " 32" : " 16";
      }
      launches.push_back(std::move(description));
    }
    return launches;
  }
  void ExpectRight() {
    ASSERT_TRUE(driver.Prepare(ModuleOf(cases)).ok());
    for (const DeviceCase& one : cases)
      EXPECT_EQ(FailureOn(driver.table(), &TextImage, one), "") << one.description;
    EXPECT_EQ(driver.Leaks() + fake.Leaks(), "");
  }
};

TEST(CudnnRounded, ValuesStayInTheFormatBetweenCalls) {
  Rig rig;
  for (const Format& format : kFormats) {
    const auto launches = [&](const std::string& rest) { return rig.Launches(rest, format); };
    EXPECT_THAT(launches("return \"y\" = %2"),
                ElementsAre("kernel 32 16", "cudnn Conv 16 16", "kernel 16 32"));
    EXPECT_THAT(launches("%4 = Add(%2, %3)\n%5 = Relu(%4)\n" + Conv(6, 5) + "return \"y\" = %6"),
                ElementsAre("kernel 32 16", "cudnn Conv Add Relu 16 16", "cudnn Conv 16 16",
                            "kernel 16 32"));
    // Elementwise operators between two calls read and write the format.
    EXPECT_THAT(launches("%4 = Sigmoid(%2)\n%5 = Mul(%2, %4)\n" + Conv(6, 5) + "return \"y\" = %6"),
                ElementsAre("kernel 32 16", "cudnn Conv 16 16", "kernel Sigmoid Mul 16 16",
                            "cudnn Conv 16 16", "kernel 16 32"));
    EXPECT_THAT(launches("%4 = Sin(%2)\n%5 = Mul(%0, %4)\n" + Conv(6, 5) + "return \"y\" = %6"),
                ElementsAre("kernel 32 16", "cudnn Conv 16 16", "kernel Sin Mul 32 16 16",
                            "cudnn Conv 16 16", "kernel 16 32"));
    // A residual is read as the call before has left it, whichever launch adds it.
    EXPECT_THAT(launches("%4 = Relu(%2)\n" + Conv(5, 4) +
                         "%6 = Add(%5, %4)\n%7 = Relu(%6)\nreturn \"y\" = %7"),
                ElementsAre("kernel 32 16", "cudnn Conv Relu 16 16", "cudnn Conv Add Relu 16 16 16",
                            "kernel 16 32"));
    // Other readers each convert the value themselves.
    EXPECT_THAT(launches("%4 = Sigmoid(%2)\n%5 = Sin(%2)\n" + Conv(6, 2) +
                         "return \"y\" = %4, \"z\" = %5, \"u\" = %6"),
                ElementsAre("kernel 32 16", "cudnn Conv 16 16", "kernel Sigmoid 16 32",
                            "kernel Sin 16 32", "cudnn Conv 16 16", "kernel 16 32"));
    // An output of the graph lies in both dtypes.
    EXPECT_THAT(launches(Conv(4, 2) + "return \"y\" = %4, \"z\" = %2"),
                ElementsAre("kernel 32 16", "cudnn Conv 16 16", "cudnn Conv 16 16", "kernel 16 32",
                            "kernel 16 32"));
    // The values lie in the graph's own order.
    EXPECT_THAT(rig.Launches("%4 = Sin(%2)\n" + Conv(5, 4) + "return \"y\" = %5", format, ""),
                ElementsAre("kernel 32 16", "cudnn Conv 16 16", "kernel Sin 16 16",
                            "cudnn Conv 16 16", "kernel 16 32"));
    EXPECT_THAT(launches("%4 = MaxPool(%2) {ceil_mode = 0, dilations = [1, 1], kernel_shape = [3, "
                         "3], pads = [1, 1, 1, 1], strides = [1, 1]}\n" +
                         Conv(5, 4) + "return \"y\" = %5"),
                Contains("kernel MaxPool 16 16"));
  }
  rig.ExpectRight();
  EXPECT_GT(rig.fake.ConvolutionsOf(DType::kF16), 0);
  EXPECT_GT(rig.fake.ConvolutionsOf(DType::kBF16), 0);
  EXPECT_EQ(rig.fake.ConvolutionsOf(DType::kF32), 0);
}

/// Lowers one convolution of fifty such numbers in each format, and prepares both programs.
void LowerAll(Rig& rig, const std::vector<double>& numbers) {
  for (const Format& format : kFormats) {
    ASSERT_TRUE(rig.Lower("return \"y\" = %2", format.numerics, format.kind).ok());
    const std::vector<double> values(50, numbers[rig.cases.size() - 1]);
    rig.cases.back().inputs = {
        HostValue::FromTensor(Tensor::FromDoubles({DType::kF32, {1, 2, 5, 5}}, values))};
  }
  ASSERT_TRUE(rig.driver.Prepare(ModuleOf(rig.cases)).ok());
}

/// Rounding errors exceed the bounds of stricter classes.
TEST(CudnnRounded, RoundsToTheFormat) {
  Rig rig;
  // A little less than halfway to the next number of the format.
  LowerAll(rig, {1 + 0x1p-11 - 0x1p-20, 1 + 0x1p-8 - 0x1p-20});
  for (DeviceCase& one : rig.cases) {
    EXPECT_EQ(FailureOn(rig.driver.table(), &TextImage, one), "");
    one.numerics = Numerics::kHigh;
    EXPECT_THAT(FailureOn(rig.driver.table(), &TextImage, one),
                HasSubstr("output 0: element 0 is -1, not -1.00"));
  }
}

TEST(CudnnRounded, AnF16OverflowIsInfinite) {
  Rig rig;
  LowerAll(rig, {32768, 32768});
  EXPECT_EQ(FailureOn(rig.driver.table(), &TextImage, rig.cases[0]),
            "output 0: element 25 is inf, not 114688");
  EXPECT_EQ(FailureOn(rig.driver.table(), &TextImage, rig.cases[1]), "");
}

TEST(CudnnRounded, IsOfferedWhereTheClassAllowsIt) {
  Rig rig;
  const Graph graph = Parsed(std::string(kConv) + "return \"y\" = %2");
  for (const Numerics numerics : kAllNumerics) {
    const auto names = LibraryAlgorithms(graph, 2, numerics, rig.libraries);
    for (const Format& format : kFormats) {
      for (const std::string layout : {"", "-nhwc"}) {
        const std::string name = format.kind + layout;
        if (numerics == format.numerics) {
          // Engines that transform their operands are left out.
          for (const char* rank : {"", ":1", ":2", ":3"}) EXPECT_THAT(names, Contains(name + rank));
          continue;
        }
        EXPECT_THAT(names, Not(Contains(HasSubstr(format.kind))));
        const auto refused = rig.Lower("return \"y\" = %2", numerics, name);
        EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
        EXPECT_THAT(std::string(refused.status().message()),
                    HasSubstr(Cat("(Conv 2) has no algorithm '", name, "' here")));
      }
    }
    EXPECT_EQ(rig.library.Multiplies(numerics),
              OperandRounding(numerics) > 0 && numerics != Numerics::kHigh);
  }
  // Values of 16 bits use the first names, and f64 has no engines.
  for (const char* rest : {"%4 = Cast(%2) {to = \"f16\"}\n%5 = Cast(%1) {to = \"f16\"}\n%6 = "
                           "Conv(%4, %5) {dilations = [1, 1], group "
                           "= 1, pads = [0, 0, 0, 0], strides = [1, 1]}\nreturn \"y\" = %6",
                           "%4 = Cast(%2) {to = \"f64\"}\n%5 = Cast(%1) {to = \"f64\"}\n%6 = "
                           "Conv(%4, %5) {dilations = [1, 1], group "
                           "= 1, pads = [0, 0, 0, 0], strides = [1, 1]}\nreturn \"y\" = %6"}) {
    const Graph other = Parsed(std::string(kConv) + rest);
    const int32_t last = other.outputs()[0].value.node;
    EXPECT_THAT(LibraryAlgorithms(other, last, Numerics::kF16, rig.libraries),
                Not(Contains(HasSubstr("cudnn-f16"))))
        << rest;
  }
}

TEST(CudnnRounded, BiasesBeyondTheFormatAreAddedInF32) {
  Rig rig;
  const std::string rest =
      "%4 = Constant() {symbol = \"c\", value = f32[2, 1, 1]{1, -65505}}\n%5 = Add(%2, %4)\nreturn "
      "\"y\" = %5";
  EXPECT_THAT(rig.Launches(rest, kFormats[0]),
              ElementsAre("kernel 32 16", "cudnn Conv 16 16", "kernel Add 16 32"));
  EXPECT_THAT(rig.Launches(rest, kFormats[1]),
              ElementsAre("kernel 32 16", "cudnn Conv Add 16 16", "kernel 16 32"));
  rig.ExpectRight();
  // The convolution's own bias cannot be left to a kernel.
  const auto names = [&](const std::string& number, const Format& format) {
    const Graph graph =
        Parsed(Cat(kConv, "%4 = Constant() {symbol = \"c\", value = f32[2]{1, ", number,
                   "}}\n%5 = Conv(%0, %1, %4) {dilations = [1, 1], group = 1, pads = [0, 0, 0, 0], "
                   "strides = [1, "
                   "1]}\nreturn \"y\" = %5"));
    return LibraryAlgorithms(graph, graph.outputs()[0].value.node, format.numerics, rig.libraries);
  };
  EXPECT_THAT(names("65504", kFormats[0]), Contains("cudnn-f16"));
  EXPECT_THAT(names("65505", kFormats[0]), Not(Contains(HasSubstr("cudnn-f16"))));
  EXPECT_THAT(names("65505", kFormats[1]), Contains("cudnn-bf16"));
  EXPECT_THAT(names("3.4e38", kFormats[1]), Not(Contains(HasSubstr("cudnn-bf16"))));
}

/// A mutant by cuDNN in the format is corrected in f32 before another convolution reads it
/// rounded.
TEST(CudnnRounded, MutantsAreCorrected) {
  Rig rig;
  for (const Format& format : kFormats) {
    const auto program = rig.Lower(R"(%4 = Sin(%0)
    %5 = Conv(%4, %1) {dilations = [1, 1], group = 1, pads = [0, 0, 0, 0], strides = [1, 1]}
    %6 = Slice(%0) {ends = [1, 2, 3, 5], starts = [0, 0, 2, 0], steps = [1, 1, 1, 1]}
    %7 = Conv(%6, %1) {dilations = [1, 1], group = 1, pads = [0, 0, 0, 0], strides = [1, 1]}
    %8 = Relu(%7)
    %9 = Patch(%5, %8) {boxes = [[0:1, 0:2, 0:1, 0:5]]}
    %10 = Conv(%9, %1) {dilations = [1, 1], group = 1, pads = [0, 0, 0, 0], strides = [1, 1]}
    return "y" = %10, "z" = %2)",
                                   format.numerics, Cat(format.kind, "-nhwc"));
    ASSERT_TRUE(program.ok()) << program.status();
    std::string kernels;
    for (const DeviceLaunch& launch : program->launches) kernels += launch.info.kernel + "\n";
    EXPECT_THAT(kernels, HasSubstr("1 box in place"));
  }
  rig.ExpectRight();
}

/// Mutants are computed from a value that another call has left in its form. The boxes read and add
/// that value from memory in f32.
TEST(CudnnRounded, MutantsOfKeptResultsAreCorrected) {
  Rig rig;
  for (const char* algorithm : {"cudnn-f16", "cudnn-f16-nhwc", "cudnn-nhwc"}) {
    const auto program = rig.Lower(R"(%4 = Relu(%2)
    %5 = Conv(%4, %1) {dilations = [1, 1], group = 1, pads = [0, 0, 0, 0], strides = [1, 1]}
    %6 = Add(%5, %4)
    %7 = Slice(%4) {ends = [1, 2, 3, 5], starts = [0, 0, 2, 0], steps = [1, 1, 1, 1]}
    %8 = Conv(%7, %1) {dilations = [1, 1], group = 1, pads = [0, 0, 0, 0], strides = [1, 1]}
    %9 = Slice(%4) {ends = [1, 2, 1, 5], starts = [0, 0, 0, 0], steps = [1, 1, 1, 1]}
    %10 = Add(%8, %9)
    %11 = Patch(%6, %10) {boxes = [[0:1, 0:2, 0:1, 0:5]]}
    %12 = Conv(%11, %1) {dilations = [1, 1], group = 1, pads = [0, 0, 0, 0], strides = [1, 1]}
    return "y" = %12)",
                                   Numerics::kF16, algorithm);
    ASSERT_TRUE(program.ok()) << program.status();
    std::string kernels;
    for (const DeviceLaunch& launch : program->launches) kernels += launch.info.kernel + "\n";
    EXPECT_THAT(kernels, HasSubstr("1 box in place")) << algorithm;
    EXPECT_THAT(kernels, Not(HasSubstr("boxes copied"))) << algorithm;
  }
  rig.ExpectRight();
}

void RunPrograms(const Format& format, uint64_t seeds) {
  const char* more = std::getenv("MENDEL_CUDA_SEEDS");
  if (more != nullptr) seeds = 25 * std::strtoull(more, nullptr, 10);
  Rig rig;
  size_t rounded = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    DeviceCase one = RandomConvolutions(seed, format.numerics);
    std::map<int32_t, std::string> algorithms;
    for (int32_t node = 0; node < static_cast<int32_t>(one.graph.nodes().size()); ++node) {
      std::vector<std::string> names =
          LibraryAlgorithms(one.graph, node, format.numerics, rig.libraries);
      std::erase_if(names, [&](const std::string& name) {
        return name.find(format.kind) == std::string::npos && seed % 4 != 0;
      });
      if (names.empty()) continue;
      algorithms[node] = names[(seed + static_cast<uint64_t>(node)) % names.size()];
      rounded += algorithms[node].find(format.kind) == 0 ? 1 : 0;
    }
    auto program = LowerToDevice(one.graph, {.reuse_memory = seed % 2 == 0,
                                             .numerics = format.numerics,
                                             .algorithms = algorithms,
                                             .libraries = rig.libraries});
    ASSERT_TRUE(program.ok()) << one.description << program.status();
    one.program = *std::move(program);
    rig.cases.push_back(std::move(one));
  }
  rig.ExpectRight();
  EXPECT_GT(rounded, rig.cases.size() / 3);
  std::printf("%zu graphs, %zu convolutions rounded to %s\n", rig.cases.size(), rounded,
              std::string(DTypeName(format.dtype)).c_str());
}
TEST(CudnnRounded, ProgramsInF16MeanTheirGraphs) { RunPrograms(kFormats[0], 24); }
TEST(CudnnRounded, ProgramsInBf16MeanTheirGraphs) { RunPrograms(kFormats[1], 24); }

/// cuDNN itself plans the calls of random graphs. Most have an engine with the whole epilogue, and
/// none has an f32 result.
TEST(CudnnRounded, FormsArePlannedWithoutADevice) {
  const Cudnn* cudnn = cudnn_case::InstalledCudnn();
  if (cudnn == nullptr) GTEST_SKIP() << "cuDNN is not installed";
  const CudnnLibrary library(*cudnn, DevicePropertiesJson(*GpuOf(90)), kWorkspace);
  for (const Format& format : kFormats) {
    std::map<std::string, int> planned;  // by kind
    int convolutions = 0;
    for (uint64_t seed = 1; seed <= 30; ++seed) {
      const Graph graph = RandomConvolutions(seed, format.numerics).graph;
      const std::vector<bool> constant = ConstantExpressions(graph),
                              none(graph.nodes().size(), false);
      const GroupingScope scope{graph, constant, none};
      for (int32_t node = 0; node < static_cast<int32_t>(graph.nodes().size()); ++node) {
        const bool is_f32 = graph.node(node).outputs[0].dtype == DType::kF32;
        if (graph.node(node).op->name != "Conv" || !is_f32 ||
            MatchConvolution(scope, node, format.numerics).empty())
          continue;
        ++convolutions;
        for (const std::string& name : library.Algorithms(scope, node, format.numerics)) {
          if (name.find(format.kind) != 0 || name.find(':') != std::string::npos) continue;
          const auto group = library.Group(scope, node, name, format.numerics);
          ASSERT_TRUE(group.ok()) << seed << " " << group.status();
          EXPECT_EQ(group->result_form.rounded, format.dtype);
          ++planned[name];
        }
      }
    }
    for (const auto& [name, count] : planned)
      std::printf("%s: %d of %d planned\n", name.c_str(), count, convolutions);
    EXPECT_EQ(planned[format.kind], convolutions);
    EXPECT_GT(planned[Cat(format.kind, "-nhwc")], convolutions / 2);
  }
}

TEST(CudnnRounded, EveryCallMayFail) {
  Rig rig;
  const std::string rest =
      "%4 = Add(%2, %3)\n%5 = Sin(%4)\n" + Conv(6, 5) + "%7 = Relu(%6)\nreturn \"y\" = %7";
  bool prepared = false;
  const auto run = [&]() -> std::string {
    const CudnnLibrary library(rig.fake.table(), kDevice, kWorkspace, 1);
    const CallLibrary* const libraries[] = {&library};
    DeviceCase one{"", Parsed(kConv + rest), {FiftyNumbers()}, {}, Numerics::kF16};
    auto program =
        LowerToDevice(one.graph, {.numerics = Numerics::kF16,
                                  .algorithms = {{2, "cudnn-f16-nhwc"}, {6, "cudnn-f16-nhwc:2"}},
                                  .libraries = libraries});
    if (!program.ok()) return std::string(program.status().message());
    one.program = *std::move(program);
    if (!prepared) prepared = rig.driver.Prepare(one.program.ModuleText()).ok();
    return FailureOn(rig.driver.table(), &TextImage, one);
  };
  rig.fake.FailAt(0);
  ASSERT_EQ(run(), "");
  const int64_t calls = rig.fake.Calls();
  int description = 0;
  for (int64_t call = 1; call <= calls; ++call) {
    rig.fake.FailAt(call, 4004);  // memory: nothing is tried instead
    const std::string failure = run();
    const bool gives_back =
        rig.fake.FailedCall() == "BackendDestroyDescriptor" || rig.fake.FailedCall() == "Destroy";
    EXPECT_EQ(failure.empty(), gives_back) << call << " " << rig.fake.FailedCall();
    EXPECT_THAT(failure, HasSubstr(gives_back ? "" : "injected (4004)"));
    EXPECT_EQ(rig.fake.Leaks() + rig.driver.Leaks(), "") << call << " " << rig.fake.FailedCall();
    description += failure.empty() ? 0 : 1;
  }
  EXPECT_GT(description, 50);
}

}  // namespace
}  // namespace mendel::cuda
