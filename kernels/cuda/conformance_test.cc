// Every operator of the registry as emitted text, in the emulator, against its own meaning.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "gmock/gmock.h"
#include "graph/random_graph.h"
#include "graph/sample_node.h"
#include "graph/text.h"
#include "gtest/gtest.h"
#include "kernels/cuda/device_case.h"
#include "kernels/cuda/fusion/operator_text.h"
#include "kernels/cuda/fusion/preamble.h"
#include "kernels/cuda/nvrtc/compiler.h"

namespace mendel::cuda {
namespace {

struct Case {
  std::string told;
  Graph graph;
  std::vector<HostValue> inputs;
  DeviceProgram program;
};

int SeedsOf(const char* variable, int fallback) {
  const char* text = std::getenv(variable);
  return text == nullptr ? fallback : std::atoi(text);
}

/// The sampled node as a graph; inputs whose bit is set in `constants` are stored tensors.
absl::StatusOr<Case> CaseOf(const OpDefinition& op, uint64_t seed, bool reuse_memory) {
  Rng rng(seed);
  MENDEL_ASSIGN_OR_RETURN(const SampledNode node, SampleNode(op, rng));
  Case one{Cat(DescribeNode(node), ", seed ", seed), {}, {}, {}};
  const uint64_t constants = rng.Flip() ? 0 : rng.Next() << 1;
  GraphBuilder builder;
  std::vector<ValueId> inputs;
  for (HostValue& sampled : SampleInputs(node, rng)) {
    const size_t k = inputs.size();
    const Tensor tensor = sampled.ToTensor();
    if ((constants >> k & 1) != 0) {
      inputs.push_back(builder.Constant(tensor, IsFloat(tensor.dtype()) ? Cat("w", k) : ""));
    } else {
      inputs.push_back(builder.Input(Cat("x", k), tensor.type()));
      one.inputs.push_back(HostValue::FromTensor(tensor));
    }
  }
  MENDEL_ASSIGN_OR_RETURN(const int32_t id, builder.AddNode(op.name, inputs, node.attrs));
  for (size_t k = 0; k < node.outputs.size(); ++k) builder.Output(Cat("y", k), {id, static_cast<int32_t>(k)});
  MENDEL_ASSIGN_OR_RETURN(one.graph, builder.Build());
  MENDEL_ASSIGN_OR_RETURN(one.program, LowerToDevice(one.graph, {.reuse_memory = reuse_memory}));
  return one;
}

/// All kernels of all cases in one module.
std::string ModuleOf(const std::vector<Case>& cases) {
  std::string text = PreambleText();
  std::set<std::string> seen;
  for (const Case& one : cases) {
    for (const std::string& kernel : one.program.texts) {
      if (seen.insert(kernel).second) text += kernel;
    }
  }
  return text;
}

/// Runs twice, the second time step by step; both must be right.
std::string Failure(FakeDriver& driver, const Case& one) {
  const auto expected = Evaluate(one.graph, one.inputs);
  if (!expected.ok()) return std::string(expected.status().message());
  const auto executable = MakeExecutable(driver.table(), one.program, &TextImage);
  if (!executable.ok()) return std::string(executable.status().message());
  std::vector<Tensor> inputs;
  for (const HostValue& input : one.inputs) inputs.push_back(input.ToTensor());
  const auto results = RunOnTensors(**executable, one.graph, inputs);
  if (!results.ok()) return std::string(results.status().message());
  for (size_t k = 0; k < results->size(); ++k) {
    const std::string difference = Difference((*expected)[k], (*results)[k], ToleranceOf((*results)[k].dtype()));
    if (!difference.empty()) return Cat("output ", k, ": ", difference);
  }
  return "";
}

void ExpectAllRight(const std::vector<Case>& cases) {
  FakeDriver driver;
  const absl::Status prepared = driver.Prepare(ModuleOf(cases));
  ASSERT_TRUE(prepared.ok()) << std::string(prepared.message()).substr(0, 4000);
  int wrong = 0;
  for (const Case& one : cases) {
    const std::string failure = Failure(driver, one);
    EXPECT_EQ(failure, "") << one.told << "\n" << (one.program.texts.empty() ? "" : one.program.texts[0]);
    if (!failure.empty() && ++wrong == 12) FAIL() << "and so on";
  }
  EXPECT_EQ(driver.Leaks(), "");
}

/// The sampled instances of every operator that some kernel computes.
std::vector<Case> OperatorCases(uint64_t seeds, int& operators, int& refused) {
  std::vector<Case> cases;
  for (const OpDefinition* op : AllOps()) {
    if (op->sample == nullptr) continue;
    ++operators;
    EXPECT_NE(FindOperatorText(op->name), nullptr) << op->name << " has no CUDA text";
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
      auto one = CaseOf(*op, seed, seed % 2 == 0);
      if (absl::IsUnimplemented(one.status())) {
        ++refused;
        continue;
      }
      EXPECT_TRUE(one.ok()) << op->name << " seed " << seed << ": " << one.status();
      if (one.ok()) cases.push_back(*std::move(one));
    }
  }
  return cases;
}

TEST(CudaConformance, EveryOperatorMeansItsDefinition) {
  int operators = 0, refused = 0;
  const std::vector<Case> cases = OperatorCases(static_cast<uint64_t>(SeedsOf("MENDEL_CUDA_SEEDS", 3)), operators, refused);
  size_t launches = 0, vectors = 0;
  for (const Case& one : cases) {
    launches += one.program.launches.size();
    for (const DeviceLaunch& launch : one.program.launches) vectors += launch.info.kernel.find("_by_") != std::string::npos;
  }
  ExpectAllRight(cases);
  std::printf("%d operators, %zu instances (%d refused by name), %zu launches, %zu of them by vectors\n", operators, cases.size(),
              refused, launches, vectors);
  EXPECT_GT(vectors, 0u);
}

/// NVRTC takes what the host's compiler took.
TEST(CudaConformance, EveryOperatorCompilesForAGpu) {
  const auto compiler = Compiler::Get();
  if (!compiler.ok()) {
    EXPECT_FALSE(std::filesystem::exists("/usr/local/cuda")) << compiler.status();
    GTEST_SKIP() << compiler.status();
  }
  int operators = 0, refused = 0;
  const std::vector<Case> cases = OperatorCases(1, operators, refused);
  const auto compiled = (*compiler)->Compile(ModuleOf(cases), "operators", 90);
  ASSERT_TRUE(compiled.ok()) << std::string(compiled.status().message()).substr(0, 4000);
  EXPECT_EQ(compiled->usage.spilled_bytes, 0);
  std::printf("%zu kernels for sm_90: %zu bytes\n", cases.size(), compiled->cubin.size());
}

TEST(CudaConformance, RandomGraphs) {
  const uint64_t seeds = static_cast<uint64_t>(SeedsOf("MENDEL_CUDA_SEEDS", 3) * 8);
  std::vector<Case> cases;
  size_t nodes = 0, launches = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    Rng rng(seed);
    Case one{Cat("seed ", seed), RandomGraph(rng, static_cast<int>(rng.Between(2, 14))), {}, {}};
    one.told += "\n" + PrintGraph(one.graph);
    one.inputs = RandomInputs(rng, one.graph);
    for (HostValue& input : one.inputs) input = HostValue::FromTensor(input.ToTensor());
    auto program = LowerToDevice(one.graph, {.reuse_memory = seed % 2 == 0});
    ASSERT_TRUE(program.ok()) << one.told << program.status();
    one.program = *std::move(program);
    for (const DeviceLaunch& launch : one.program.launches) nodes += launch.info.nodes.size();
    launches += one.program.launches.size();
    cases.push_back(std::move(one));
  }
  ExpectAllRight(cases);
  std::printf("%zu graphs: %zu nodes in %zu launches\n", cases.size(), nodes, launches);
  EXPECT_LT(launches, nodes);
}

}  // namespace
}  // namespace mendel::cuda
