// Every operator, every kind of fusion and random graphs against the operators' own definitions in
// double.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <string_view>

#include "base/status.h"
#include "gmock/gmock.h"
#include "graph/evaluate.h"
#include "graph/random_graph.h"
#include "graph/sample_node.h"
#include "graph/text.h"
#include "gtest/gtest.h"
#include "kernels/cpu/testing/test_support.h"

namespace mendel::cpu {
namespace {

using testing::HasSubstr;

/// The node as a graph; the inputs in `constants` are weights.
absl::StatusOr<Graph> GraphOfNode(const SampledNode& node, const std::vector<HostValue>& values,
                                  uint64_t constants) {
  GraphBuilder builder;
  std::vector<ValueId> inputs;
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    const bool constant = ((constants >> k) & 1) != 0;
    inputs.push_back(constant ? builder.Constant(values[k].ToTensor(), Cat("w", k))
                              : builder.Input(Cat("x", k), node.inputs[k]));
  }
  MENDEL_ASSIGN_OR_RETURN(const int32_t id, builder.AddNode(node.op->name, inputs, node.attrs));
  for (size_t k = 0; k < node.outputs.size(); ++k)
    builder.Output(Cat("y", k), {id, static_cast<int32_t>(k)});
  return builder.Build();
}

/// True when a kernel of the backend should compute the node: f32 goes in or comes out, and no
/// other floats.
bool IsF32(const SampledNode& node) {
  bool f32 = false;
  bool other = false;
  for (const std::vector<TensorType>& types : {node.inputs, node.outputs}) {
    for (const TensorType& type : types) {
      f32 = f32 || type.dtype == DType::kF32;
      other = other || (IsFloat(type.dtype) && type.dtype != DType::kF32);
    }
  }
  return f32 && !other;
}

TEST(CpuBackend, EveryOperatorMeansItsDefinition) {
  std::set<std::string_view> by_definition;
  for (const OpDefinition* op : AllOps()) {
    if (op->sample == nullptr) continue;
    for (uint64_t seed = 1; seed <= 40; ++seed) {
      SCOPED_TRACE(testing::Message() << op->name << " seed " << seed);
      Rng rng(seed);
      absl::StatusOr<SampledNode> node = SampleNode(*op, rng);
      ASSERT_TRUE(node.ok()) << node.status();
      SCOPED_TRACE(DescribeNode(*node));
      std::vector<HostValue> values = SampleInputs(*node, rng);
      for (HostValue& value : values) value = HostValue::FromTensor(value.ToTensor());
      // At least one input stays an input, so that there is something to run.
      const uint64_t constants = rng.Flip() ? 0 : rng.Next() << 1;
      absl::StatusOr<Graph> graph = GraphOfNode(*node, values, constants);
      ASSERT_TRUE(graph.ok()) << graph.status();
      std::vector<HostValue> inputs;
      for (int32_t input : graph->inputs())
        inputs.push_back(values[std::stoul(InputName(graph->node(input)).substr(1))]);
      CompileOptions options;
      options.threads = seed % 3 == 0 ? 2 : 1;
      const std::vector<std::string> kernels = ExpectMatches(*graph, inputs, options);
      if (testing::Test::HasFatalFailure() || testing::Test::HasNonfatalFailure()) return;
      if (IsF32(*node) && std::count(kernels.begin(), kernels.end(), "definition") != 0)
        by_definition.insert(op->name);
    }
  }
  EXPECT_THAT(by_definition, testing::IsEmpty())
      << "f32 nodes without a kernel are slow, and allocate";
}

TEST(CpuBackend, RandomGraphs) {
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    Rng rng(seed);
    const Graph graph = RandomGraph(rng, static_cast<int>(rng.Between(2, 14)));
    SCOPED_TRACE(testing::Message() << "seed " << seed << "\n" << PrintGraph(graph));
    CompileOptions options;
    options.threads = seed % 4 == 0 ? 2 : 1;
    ExpectMatches(graph, RandomInputs(rng, graph), options);
    if (testing::Test::HasNonfatalFailure() || testing::Test::HasFatalFailure()) return;
  }
}

Graph Parse(std::string_view text) {
  absl::StatusOr<Graph> graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *graph;
}

TEST(CpuBackend, RefusesWrongBuffers) {
  const Graph graph = Parse(R"(graph "g" {
    %0 = Input() {dtype = "f32", name = "x", shape = [2, 3]}
    %1 = Relu(%0)
    return "y" = %1
  })");
  absl::StatusOr<std::unique_ptr<Executable>> executable = FindBackend("cpu")->Compile(graph, {});
  ASSERT_TRUE(executable.ok()) << executable.status();
  std::vector<std::byte> bytes(24), small(20);
  const std::vector<std::span<const std::byte>> good = {bytes}, bad = {small}, none;
  const std::vector<std::span<std::byte>> out = {bytes}, bad_out = {small};
  EXPECT_EQ((*executable)->Run(bad, out).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ((*executable)->Run(none, out).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ((*executable)->Run(good, bad_out).code(), absl::StatusCode::kInvalidArgument);
  const std::vector<std::span<const std::byte>> crooked = {
      std::span<const std::byte>(bytes).subspan(1)};
  EXPECT_EQ((*executable)->Run(crooked, out).code(), absl::StatusCode::kInvalidArgument);
}

TEST(CpuBackend, PadMayCutAllOfItsInput) {
  for (const char* pads : {"[0, -4, 0, 6]", "[0, 6, 0, -4]", "[-2, 0, 3, 0]"}) {
    SCOPED_TRACE(pads);
    const Graph graph = Parse(Cat(R"(graph "g" {
      %0 = Input() {dtype = "f32", name = "x", shape = [2, 4]}
      %1 = Pad(%0) {pads = )",
                                  pads, R"(, value = 3.0}
      return "y" = %1
    })"));
    Rng rng(1);
    ExpectMatches(graph, RandomInputs(rng, graph), {});
  }
}

TEST(CpuBackend, IdentityIsStable) {
  EXPECT_THAT(FindBackend("cpu")->Identity(), HasSubstr("oneDNN"));
  EXPECT_EQ(FindBackend("cpu")->Identity(), FindBackend("cpu")->Identity());
  EXPECT_TRUE(FindBackend("cpu")->Probe().ok());
}

}  // namespace
}  // namespace mendel::cpu
