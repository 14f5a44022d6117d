#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "client/onnxruntime/capability.h"
#include "client/onnxruntime/context_blob.h"
#include "client/onnxruntime/partition.h"
#include "client/onnxruntime/runtime_api.h"

namespace mendel::ort {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A graph of f32 matrices 64x64 in which node k reads `reads[k]` and makes value k + 1; value 0 is
/// the graph's input and the last one its output.
GraphView Chain(const std::vector<std::string>& ops, const std::vector<std::vector<int>>& reads) {
  GraphView view;
  view.ir_version = 8;
  view.operator_sets = {{"", 17}};
  for (size_t k = 0; k <= ops.size(); ++k) {
    ViewValue value;
    value.name = std::string("value") + std::to_string(k);
    value.type = onnx::TensorProto::FLOAT;
    value.has_shape = true;
    value.shape = {64, 64};
    value.symbols = {"", ""};
    view.values.push_back(value);
  }
  for (size_t k = 0; k < ops.size(); ++k) {
    ViewNode node;
    node.proto.set_op_type(ops[k]);
    node.inputs = reads[k];
    node.outputs = {static_cast<int>(k) + 1};
    view.nodes.push_back(node);
  }
  view.values.back().graph_output = true;
  view.outputs = {static_cast<int>(ops.size())};
  return view;
}

TEST(Partition, PathThroughAnotherNodeSeparates) {
  const GraphView view = Chain({"Relu", "Other", "Add"}, {{0}, {1}, {1, 2}});
  EXPECT_THAT(Partition(view, {true, false, true}), ElementsAre(Part{0}, Part{2}));
  EXPECT_THAT(Partition(view, {true, true, true}), ElementsAre(Part{0, 1, 2}));
}

TEST(Partition, BoundaryHasWhatOthersRead) {
  const GraphView view = Chain({"Relu", "Relu", "Add"}, {{0}, {1}, {1, 2}});
  const Boundary boundary = BoundaryOf(view, {0, 1});
  EXPECT_THAT(boundary.inputs, ElementsAre(0));
  EXPECT_THAT(boundary.outputs, ElementsAre(1, 2));
}

TEST(Capability, LeavesTheNodeThatDoesNotImport) {
  const GraphView view = Chain({"MatMul", "Mystery", "MatMul"}, {{0, 0}, {1}, {2, 2}});
  const Capability capability = FindParts(view);
  EXPECT_THAT(capability.parts, ElementsAre(Part{0}, Part{2}));
  ASSERT_TRUE(capability.refused.contains(1));
  EXPECT_THAT(capability.refused.at(1), HasSubstr("Mystery"));
}

TEST(Capability, ASmallNodeIsNotWorthACall) {
  EXPECT_TRUE(FindParts(Chain({"Relu"}, {{0}})).parts.empty());
}

TEST(ContextBlob, RoundTripAndDamage) {
  const ContextBlob blob = {"model", {std::string("a\0\n", 3), "b"}};
  std::string bytes = EncodeContext(blob);
  const auto decoded = DecodeContext(bytes);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->model, blob.model);
  EXPECT_EQ(decoded->plans, blob.plans);
  bytes.back() ^= 1;
  EXPECT_THAT(std::string(DecodeContext(bytes).status().message()), HasSubstr("damaged"));
  EXPECT_THAT(std::string(DecodeContext("other").status().message()), HasSubstr("no part"));
}

TEST(RuntimeApi, OlderVersionIsNamed) {
  EXPECT_EQ(MinorVersion("1.23.2"), 23);
  EXPECT_EQ(MinorVersion("2.0"), -1);
  const ApiBase base = {[](uint32_t) -> const Table* { return nullptr; }, [] { return "1.22.1"; }};
  EXPECT_THAT(std::string(RuntimeApi::Open(&base).status().message()), HasSubstr("this is 1.22.1"));
}

}  // namespace
}  // namespace mendel::ort
