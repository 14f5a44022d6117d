// Tests of pools and Resize between calls of cuDNN that keep values with the channels last or in 16
// bits: one launch, which converts nothing.

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cuda/cudnn/call_forms.h"
#include "kernels/cuda/cudnn/library.h"
#include "kernels/cuda/cudnn/library_case.h"
#include "kernels/cuda/nvrtc/architectures.h"
#include "kernels/cuda/nvrtc/compiler.h"
#include "kernels/cuda/nvrtc/expect_compiled.h"
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

constexpr char kAttributes[] =
    " {dilations = [1, 1], group = 1, pads = [0, 0, 0, 0], strides = [1, 1]}\n";
constexpr char kWindow[] =
    "{ceil_mode = 0, dilations = [1, 1], kernel_shape = [3, 2], pads = [1, 0, 1, 1], strides = [2, "
    "1]}\n";

/// Operators that compute %5 from %2.
const std::string kPools[] = {
    Cat("%5 = MaxPool(%2) ", kWindow),
    Cat("%5 = AveragePool(%2) ", kWindow),
    Cat("%5 = LpPool(%2) ", kWindow),
    "%5 = Resize(%2) {mode = \"linear\", output_sizes = [1, 2, 10, 5], scales = [1.0, 1.0, 2.0, "
    "1.0]}\n",
};

struct Rig {
  FakeDriver driver;
  FakeCudnn fake;
  CudnnLibrary library{fake.table(), kDevice, kWorkspace};
  std::vector<DeviceCase> cases = {};

  /// Launches of the graph with these last lines, every convolution by `algorithm`: the operators
  /// of each, "convert" where it only converts.
  std::vector<std::string> Launches(const std::string& rest, const std::string& algorithm,
                                    Numerics numerics) {
    const CallLibrary* const libraries[] = {&library};
    DeviceCase one{
        Cat(algorithm, "\n", rest), Parsed(kConv + rest), {FiftyNumbers()}, {}, numerics};
    std::map<int32_t, std::string> algorithms;
    for (int32_t node = 0; node < static_cast<int32_t>(one.graph.nodes().size()); ++node) {
      if (one.graph.node(node).op->name == "Conv") algorithms[node] = algorithm;
    }
    auto program = LowerToDevice(
        one.graph, {.numerics = numerics, .algorithms = algorithms, .libraries = libraries});
    EXPECT_TRUE(program.ok()) << one.description << program.status();
    std::vector<std::string> launches;
    if (!program.ok()) return launches;
    one.program = *std::move(program);
    for (const DeviceLaunch& launch : one.program.launches) {
      std::string description;
      for (const int32_t node : launch.info.nodes)
        description += Cat(description.empty() ? "" : " ", one.graph.node(node).op->name);
      launches.push_back(description.empty() ? "convert" : description);
    }
    cases.push_back(std::move(one));
    return launches;
  }
  void ExpectRight() {
    const absl::Status prepared = driver.Prepare(ModuleOf(cases));
    ASSERT_TRUE(prepared.ok()) << std::string(prepared.message()).substr(0, 4000);
    for (const DeviceCase& one : cases)
      EXPECT_EQ(FailureOn(driver.table(), &TextImage, one), "") << one.description;
    EXPECT_EQ(driver.Leaks() + fake.Leaks(), "");
  }
};

TEST(CudnnPools, StayInTheFormOfTheirNeighbors) {
  Rig rig;
  for (const CallForm& form : kCallForms) {
    for (const std::string& pool : kPools) {
      const std::string op = pool.substr(5, pool.find('(') - 5);
      const std::string rest = Cat(pool, "%6 = Conv(%5, %1)", kAttributes, "return \"y\" = %6");
      EXPECT_THAT(rig.Launches(rest, form.algorithm, form.numerics),
                  ElementsAre("convert", "Conv", op, "Conv", "convert"));
      const DeviceProgram& program = rig.cases.back().program;
      ASSERT_EQ(program.launches.size(), 5u);
      const std::vector<DeviceBuffer>& pointers = program.launches[2].pointers;
      const auto read = std::find_if(
          pointers.begin(), pointers.end() - 1,
          [](const DeviceBuffer& buffer) { return buffer.allocation != 0; });  // Resize has tables
      EXPECT_EQ(read->bytes, 50 * form.bytes) << rig.cases.back().description;
      const std::vector<Node>& nodes = rig.cases.back().graph.nodes();
      const auto pooled = std::find_if(nodes.begin(), nodes.end(),
                                       [&](const Node& node) { return node.op->name == op; });
      ASSERT_NE(pooled, nodes.end());
      EXPECT_EQ(NumElements(pooled->outputs[0]) * form.bytes, pointers.back().bytes);
    }
  }
  rig.ExpectRight();
}

/// The form goes through chains, several readers, and elementwise operators around pools.
TEST(CudnnPools, AreReadAsTheyLie) {
  Rig rig;
  const std::string pools = Cat("%5 = MaxPool(%2) ", kWindow, "%6 = AveragePool(%5) ", kWindow);
  const std::string ends =
      Cat("%7 = Conv(%6, %1)", kAttributes, "%8 = Add(%7, %6)\nreturn \"y\" = %8");
  const std::string around =
      Cat("%5 = Sigmoid(%2)\n%6 = MaxPool(%5) ", kWindow, "%7 = Sin(%6)\n%8 = Conv(%7, %1)",
          kAttributes, "return \"y\" = %8");
  for (const CallForm& form : kCallForms) {
    EXPECT_THAT(rig.Launches(pools + ends, form.algorithm, form.numerics),
                ElementsAre("convert", "Conv", "MaxPool", "AveragePool", "Conv Add", "convert"))
        << form.algorithm;
    const auto launches = rig.Launches(around, form.algorithm, form.numerics);
    EXPECT_EQ(std::count(launches.begin(), launches.end(), "convert"), 2) << form.algorithm;
  }
  rig.ExpectRight();
}

/// Pools are right, and converted, where nothing reads the form of the call before, or where that
/// call leaves another form.
TEST(CudnnPools, AreRightWhereFormsEnd) {
  Rig rig;
  for (const CallForm& form : kCallForms) {
    for (const std::string& pool : kPools) {
      rig.Launches(Cat(pool, "return \"y\" = %5"), form.algorithm, form.numerics);
      rig.Launches(
          Cat(pool, "%6 = Conv(%5, %1)", kAttributes, "return \"y\" = %6, \"z\" = %5, \"u\" = %2"),
          form.algorithm, form.numerics);
    }
    rig.Launches(
        Cat("%5 = MaxPool(%0) ", kWindow, "%6 = Conv(%5, %1)", kAttributes, "return \"y\" = %6"),
        form.algorithm, form.numerics);
  }
  rig.ExpectRight();
}

/// NVRTC compiles what the host's compiler compiles.
TEST(CudnnPools, CompileWithoutADevice) {
  const Compiler* const compiler = FoundCompiler();
  if (compiler == nullptr) return;
  // Each pool in each form is compiled for one of the architectures.
  std::vector<std::vector<DeviceCase>> cases(kCompiledArchitectures.size());
  size_t number = 0;
  for (const CallForm& form : kCallForms) {
    for (const std::string& pool : kPools) {
      Rig rig;
      rig.Launches(Cat(pool, "%6 = Conv(%5, %1)", kAttributes, "return \"y\" = %6"), form.algorithm,
                   form.numerics);
      cases[number++ % cases.size()].push_back(std::move(rig.cases[0]));
    }
  }
  for (size_t k = 0; k < cases.size(); ++k) {
    CompiledWithoutSpills(*compiler, ModuleOf(cases[k]), "pools", kCompiledArchitectures[k]);
  }
}

/// A mean over the image, and what follows in the form, are a launch; a Reshape is part of it, too.
TEST(CudnnPools, GlobalPoolsConvertAsTheyReadAndWrite) {
  Rig rig;
  const std::string mean = "%5 = ReduceMean(%2) {axes = [2, 3], keepdims = 1}\n";
  for (const CallForm& form : kCallForms) {
    EXPECT_THAT(rig.Launches(Cat(mean, "%6 = Conv(%5, %1)", kAttributes, "return \"y\" = %6"),
                             form.algorithm, form.numerics),
                ElementsAre("convert", "Conv", "ReduceMean", "Conv", "convert"))
        << form.algorithm;
    EXPECT_THAT(rig.Launches(
                    Cat(mean, "%6 = Reshape(%5) {shape = [1, 2]}\n%7 = Sin(%6)\nreturn \"y\" = %7"),
                    form.algorithm, form.numerics),
                ElementsAre("convert", "Conv", "ReduceMean Reshape Sin"))
        << form.algorithm;
  }
  rig.ExpectRight();
}

}  // namespace
}  // namespace mendel::cuda
