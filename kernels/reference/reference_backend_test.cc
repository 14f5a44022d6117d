#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/parallel.h"
#include "graph/text.h"
#include "kernels/reference/reference_program.h"
#include "runtime/backend.h"

namespace mendel {
namespace {

Graph Parse(const std::string& text) {
  auto graph = ParseGraph(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

constexpr char kNet[] = R"(graph "net" {
  %0 = Input() {name = "x", shape = [2]}
  %1 = Constant() {symbol = "w", value = f32[2]{1, -2}}
  %2 = Mul(%1, %1)
  %3 = Add(%2, %1)
  %4 = Mul(%0, %3) "scale"
  %5 = Relu(%4)
  return "y" = %5, "z" = %4, "w" = %3, "x" = %0
})";

TEST(ReferenceProgram, FoldsWeightsAndKeepsOutputs) {
  const ReferenceProgram program(Parse(kNet));
  EXPECT_EQ(program.steps().size(), 2u);
  EXPECT_EQ(program.weight_bytes(), 16);  // only the sum is kept
  const HostValue x =
      HostValue::FromTensor(Tensor::FromDoubles({DType::kF32, {2}}, std::vector<double>{3, -5}));
  std::vector<double> seconds;
  const auto results = program.Run(std::vector<HostValue>{x}, &seconds);
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_THAT((*results)[0].scalars, testing::ElementsAre(6, 0));
  EXPECT_THAT((*results)[1].scalars, testing::ElementsAre(6, -10));
  EXPECT_THAT((*results)[2].scalars, testing::ElementsAre(2, 2));
  EXPECT_THAT((*results)[3].scalars, testing::ElementsAre(3, -5));
  EXPECT_EQ(seconds.size(), 2u);
  EXPECT_EQ(program.Run({}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(ReferenceBackend, RunsOnBuffers) {
  const Backend* backend = FindBackend("reference");
  ASSERT_NE(backend, nullptr);
  const Graph graph = Parse(kNet);
  const auto executable = backend->Compile(graph, {});
  ASSERT_TRUE(executable.ok());
  ASSERT_EQ((*executable)->steps().size(), 2u);
  EXPECT_EQ((*executable)->steps()[0].name, "scale");
  const Tensor x = Tensor::FromDoubles({DType::kF32, {2}}, std::vector<double>{3, -5});
  const auto results = RunOnTensors(**executable, graph, std::vector<Tensor>{x});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_THAT((*results)[1].ToDoubles(), testing::ElementsAre(6, -10));
  const Tensor wrong = Tensor::FromDoubles({DType::kF32, {1}}, std::vector<double>{3});
  EXPECT_EQ(RunOnTensors(**executable, graph, std::vector<Tensor>{wrong}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

/// Large outputs are computed in chunks on several threads; every element must be where one thread
/// would put it.
TEST(ReferenceProgram, ChunksAgreeWithOneThread) {
  const Graph graph = Parse(R"(graph "large" {
    %0 = Input() {name = "x", shape = [7, 31, 401]}
    %1 = Transpose(%0) {perm = [2, 0, 1]}
    %2 = Add(%1, %1)
    return "y" = %2
  })");
  HostValue x;
  x.type = TensorType{DType::kF32, {7, 31, 401}};
  for (int64_t k = 0; k < NumElements(x.type); ++k)
    x.scalars.push_back(std::sin(static_cast<double>(k)));
  const int before = Parallelism();
  SetParallelism(3);
  const auto results = EvaluateReference(graph, std::vector<HostValue>{x});
  SetParallelism(before);
  ASSERT_TRUE(results.ok());
  const HostValue& y = (*results)[0];
  for (int64_t k = 0; k < 7 * 31 * 401; ++k) {
    const int64_t source = k % (7 * 31) * 401 + k / (7 * 31);
    ASSERT_EQ(y.scalars[static_cast<size_t>(k)], 2 * x.scalars[static_cast<size_t>(source)]) << k;
  }
}

}  // namespace
}  // namespace mendel
