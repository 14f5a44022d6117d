#include "onnx/export.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "graph/evaluate.h"
#include "graph/graph.h"
#include "graph/sample_node.h"
#include "gtest/gtest.h"
#include "onnx/import.h"
#include "onnx/import_case.h"

namespace mendel {
namespace {

TEST(Export, ComesBackEqual) {
  const Folder folder;
  const auto original = Import(Varied());
  ASSERT_TRUE(original.ok()) << original.status();
  const std::string path = (folder / "out.onnx").string();
  ASSERT_TRUE(ExportOnnx(original->graph, path).ok());
  const auto again = ImportOnnxFile(path);
  ASSERT_TRUE(again.ok()) << again.status();
  Rng rng(7);
  std::vector<double> x(192);
  for (double& value : x) value = rng.Uniform(-1, 1);
  const std::vector<HostValue> inputs = {HostValue::FromTensor(Floats({1, 3, 8, 8}, x))};
  EXPECT_EQ(Evaluate(original->graph, inputs).value()[0].scalars,
            Evaluate(again->graph, inputs).value()[0].scalars);
}

TEST(Export, PatchIsSlicesAndConcats) {
  GraphBuilder builder;
  const ValueId x = builder.Input("x", {DType::kF32, {4, 5, 6}});
  const ValueId p = builder.Input("p", {DType::kF32, {2, 3, 6}});
  const ValueId q = builder.Input("q", {DType::kF32, {4, 1, 1}});
  const Boxes boxes = {{{1, 1, 0}, {3, 4, 6}}, {{0, 4, 5}, {4, 5, 6}}};
  builder.Output("y", builder.Add("Patch", {x, p, q}, {{"boxes", boxes}}).value());
  const Graph graph = builder.Build().value();
  const Folder folder;
  const std::string path = (folder / "patch.onnx").string();
  const absl::Status written = ExportOnnx(graph, path);
  ASSERT_TRUE(written.ok()) << written;
  const auto again = ImportOnnxFile(path);
  ASSERT_TRUE(again.ok()) << again.status();
  const auto filled = [](Shape shape, double value) {
    return HostValue::FromTensor(Tensor::Filled({DType::kF32, shape}, value));
  };
  const std::vector<HostValue> inputs = {filled({4, 5, 6}, 1), filled({2, 3, 6}, 2),
                                         filled({4, 1, 1}, 3)};
  EXPECT_EQ(Evaluate(graph, inputs).value()[0].scalars,
            Evaluate(again->graph, inputs).value()[0].scalars);
}

/// Without saturation, and in an opset that has the operators and types.
TEST(Export, StorageTypesComeBack) {
  GraphBuilder builder;
  const ValueId x = builder.Input("x", {DType::kF32, {2, 3}});
  const ValueId bits = builder.Input("bits", {DType::kU16, {4}});
  const auto cast = [&](ValueId v, std::string to) {
    return builder.Add("Cast", {v}, {{"to", std::move(to)}}).value();
  };
  const ValueId stored =
      builder.Add("Transpose", {cast(x, "f8e4m3fn")}, {{"perm", Ints{1, 0}}}).value();
  const ValueId shifted =
      builder.Add("BitShift", {bits, bits}, {{"direction", std::string("RIGHT")}}).value();
  builder.Output("y", cast(stored, "f32"));
  builder.Output("z", cast(builder.Add("BitwiseXor", {shifted, bits}).value(), "u64"));
  const Graph graph = builder.Build().value();
  const Folder folder;
  const std::string path = (folder / "storage.onnx").string();
  const absl::Status written = ExportOnnx(graph, path);
  ASSERT_TRUE(written.ok()) << written;
  const auto again = ImportOnnxFile(path);
  ASSERT_TRUE(again.ok()) << again.status();
  const std::vector<HostValue> inputs = {
      HostValue::FromTensor(Floats({2, 3}, {0.3, -17, 1000, 448, 0, 1})),
      HostValue::FromTensor(Tensor::FromInts({DType::kU16, {4}}, Ints{1, 2, 3, 65535}))};
  const auto before = Evaluate(graph, inputs).value(),
             after = Evaluate(again->graph, inputs).value();
  for (size_t k = 0; k < 2; ++k)
    EXPECT_TRUE(before[k].ToTensor() == after[k].ToTensor()) << "output " << k;
  EXPECT_TRUE(std::isnan(after[0].scalars[4])) << "1000 is no f8e4m3fn";
}

/// Scan, and back: bitwise the same, whatever the loop has.
TEST(Export, LoopsAreScans) {
  const Folder folder;
  const std::string path = (folder / "loop.onnx").string();
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Rng rng(seed);
    const SampledNode node = SampleNode(GetOp("Loop"), rng).value();
    SCOPED_TRACE(DescribeNode(node));
    GraphBuilder builder;
    std::vector<ValueId> inputs;
    for (const TensorType& type : node.inputs)
      inputs.push_back(builder.Input(Cat("x", inputs.size()), type));
    const int32_t id = builder.AddNode("Loop", inputs, node.attrs).value();
    for (size_t k = 0; k < node.outputs.size(); ++k)
      builder.Output(Cat("y", k), {id, static_cast<int32_t>(k)});
    const Graph graph = builder.Build().value();
    const absl::Status written = ExportOnnx(graph, path);
    ASSERT_TRUE(written.ok()) << written;
    const auto again = ImportOnnxFile(path);
    ASSERT_TRUE(again.ok()) << again.status();
    const std::vector<HostValue> values = SampleInputs(node, rng);
    const auto want = Evaluate(graph, values), got = Evaluate(again->graph, values);
    ASSERT_TRUE(got.ok()) << got.status();
    for (size_t k = 0; k < want->size(); ++k) EXPECT_EQ((*got)[k].scalars, (*want)[k].scalars);
  }
}

}  // namespace
}  // namespace mendel
