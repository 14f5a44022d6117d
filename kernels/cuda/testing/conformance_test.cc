// Every operator of the registry as emitted text, in the emulator, against its own meaning.

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/random.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "graph/random_graph.h"
#include "graph/text.h"
#include "gtest/gtest.h"
#include "kernels/cuda/fusion/operator_text.h"
#include "kernels/cuda/nvrtc/architectures.h"
#include "kernels/cuda/nvrtc/compiler.h"
#include "kernels/cuda/nvrtc/expect_compiled.h"
#include "kernels/cuda/testing/device_case.h"
#include "kernels/cuda/testing/expect_right.h"
#include "kernels/cuda/testing/fake/fake_driver.h"

namespace mendel::cuda {
namespace {

uint64_t Seeds() {
  const char* text = std::getenv("MENDEL_CUDA_SEEDS");
  return text == nullptr ? 3 : std::strtoull(text, nullptr, 10);
}

TEST(CudaConformance, EveryOperatorMeansItsDefinition) {
  const auto sampled = SampleOperators(Seeds());
  ASSERT_TRUE(sampled.ok()) << sampled.status();
  for (const OpDefinition* op : AllOps()) {
    const bool unrolled = op->name == "Loop";  // its steps have the texts of their operators
    EXPECT_TRUE(op->sample == nullptr || unrolled || FindOperatorText(op->name) != nullptr)
        << op->name << " has no CUDA text";
  }
  size_t launches = 0, vectors = 0;
  for (const DeviceCase& one : sampled->cases) {
    launches += one.program.launches.size();
    for (const DeviceLaunch& launch : one.program.launches)
      vectors += launch.info.kernel.find("_by_") != std::string::npos ? 1 : 0;
  }
  ExpectAllRight(sampled->cases);
  std::printf(
      "%d operators, %zu instances (%zu refused by name), %zu launches, %zu of them by vectors\n",
      sampled->operators, sampled->cases.size(), sampled->refused.size(), launches, vectors);
  EXPECT_GT(vectors, 0u);
  EXPECT_LT(sampled->refused.size(), sampled->cases.size() / 20);
}

/// The emulator runs the integer form; cuda_gpu_test runs the same cases on a GPU's instructions.
TEST(CudaConformance, AllPatternsOfHalfPrecision) {
  const auto cases = HalfPrecisionCases();
  ASSERT_TRUE(cases.ok()) << cases.status();
  ExpectAllRight(*cases);
}

/// NVRTC takes what the host's compiler took.
TEST(CudaConformance, EveryOperatorCompilesForAGpu) {
  const Compiler* const compiler = FoundCompiler();
  if (compiler == nullptr) return;
  const auto sampled = SampleOperators(1);
  ASSERT_TRUE(sampled.ok()) << sampled.status();
  const size_t count = kCompiledArchitectures.size();
  // Otherwise each instance is compiled for one of them.
  const bool all = std::getenv("MENDEL_CUDA_SEEDS") != nullptr;
  for (size_t k = 0; k < count; ++k) {
    const int architecture = kCompiledArchitectures[k];
    if (!compiler->Supports(architecture)) continue;
    std::vector<DeviceCase> cases;
    for (size_t number = 0; number < sampled->cases.size(); ++number) {
      if (all || number % count == k) cases.push_back(sampled->cases[number]);
    }
    const auto compiled =
        CompiledWithoutSpills(*compiler, ModuleOf(cases), "operators", architecture);
    if (!compiled.has_value()) continue;
    int most = 0;
    for (const auto& [name, usage] : compiled->entries) most = std::max(most, usage.registers);
    EXPECT_GT(most, 0);
    std::printf(
        "sm_%d: %zu kernels of %zu operators' instances, at most %d registers a thread, %d bytes "
        "spilled\n",
        architecture, compiled->entries.size(), cases.size(), most, compiled->usage.spilled_bytes);
  }
}

TEST(CudaConformance, RandomGraphs) {
  std::vector<DeviceCase> cases;
  size_t nodes = 0, launches = 0;
  for (uint64_t seed = 1; seed <= 8 * Seeds(); ++seed) {
    Rng rng(seed);
    DeviceCase one{
        Cat("seed ", seed), RandomGraph(rng, static_cast<int>(rng.Between(2, 14))), {}, {}};
    one.description += "\n" + PrintGraph(one.graph);
    for (const HostValue& input : RandomInputs(rng, one.graph))
      one.inputs.push_back(HostValue::FromTensor(input.ToTensor()));
    auto program = LowerToDevice(one.graph, {.reuse_memory = seed % 2 == 0});
    ASSERT_TRUE(program.ok()) << one.description << program.status();
    one.program = *std::move(program);
    for (const DeviceLaunch& launch : one.program.launches) nodes += launch.info.nodes.size();
    launches += one.program.launches.size();
    cases.push_back(std::move(one));
  }
  ExpectAllRight(cases);
  std::printf("%zu graphs: %zu nodes in %zu launches\n", cases.size(), nodes, launches);
  EXPECT_LT(launches, nodes);
}

/// The graph's one kernel with `right` replaced by `wrong` everywhere.
std::string WithFault(const std::string& body, const std::string& right, const std::string& wrong) {
  const auto graph = ParseGraph("graph \"g\" {\n" + body + "\n}");
  EXPECT_TRUE(graph.ok()) << graph.status();
  Rng rng(1);
  DeviceCase one{"planted", *graph, {}, *LowerToDevice(*graph, {.reuse_memory = false})};
  for (const HostValue& input : RandomInputs(rng, one.graph))
    one.inputs.push_back(HostValue::FromTensor(input.ToTensor()));
  const auto image = [&](const std::string& text) -> absl::StatusOr<std::vector<char>> {
    std::string changed = text;
    size_t places = 0;
    for (size_t at = changed.find(right); at != std::string::npos;
         at = changed.find(right, at + wrong.size())) {
      changed.replace(at, right.size(), wrong);
      ++places;
    }
    EXPECT_GT(places, 0u) << right;
    return TextImage(changed);
  };
  FakeDriver driver;
  return FailureOn(driver.table(), image, one);
}

TEST(CudaConformance, PlantedFaultsAreFound) {
  const std::string chain = R"(%0 = Input() {name = "x", shape = [3, 7]}
    %1 = Exp(%0)
    return "y" = %1)";
  const std::string rows = R"(%0 = Input() {name = "x", shape = [3, 70]}
    %1 = Softmax(%0) {axis = 1}
    return "y" = %1)";
  EXPECT_EQ(WithFault(chain, "first", "first"), "");
  EXPECT_THAT(WithFault(chain, "first + 4 <= 21", "first + 4 <= 24"),
              testing::HasSubstr("out of bounds"));
  EXPECT_THAT(WithFault(chain, "Exp(v", "Expm1(v"), testing::HasSubstr("element 0"));
  EXPECT_THAT(WithFault(chain, "f < 21", "f < 20"), testing::HasSubstr("element 20"));
  EXPECT_EQ(WithFault(rows, "k < 70", "k < 70"), "");
  EXPECT_THAT(WithFault(rows, "k < 70", "k < 69"), testing::HasSubstr("element"));
  EXPECT_THAT(WithFault(rows, "value, width)", "value, 2 * width)"), testing::HasSubstr("element"));
  const std::string store = "  if (thread % kWarp == 0) shared[thread / kWarp] = value;\n";
  EXPECT_THAT(WithFault(rows, store + "  __syncthreads();", store), testing::HasSubstr("race"));
  EXPECT_THAT(WithFault(rows, "  __syncthreads();\n" + store, store), testing::HasSubstr("race"));
}

}  // namespace
}  // namespace mendel::cuda
