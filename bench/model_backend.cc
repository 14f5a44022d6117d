#include "bench/model_backend.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/status.h"
#include "graph/graph.h"
#include "onnx/import.h"
#include "onnx/model.pb.h"

namespace mendel {
namespace {

bool IsDilated(const onnx::NodeProto& node) {
  return node.op_type() == "Conv" &&
         std::any_of(node.attribute().begin(), node.attribute().end(), [](const auto& attribute) {
           return attribute.name() == "dilations" &&
                  std::any_of(attribute.ints().begin(), attribute.ints().end(),
                              [](int64_t dilation) { return dilation > 1; });
         });
}

/// The shape that the first dilated convolution reads.
absl::StatusOr<Shape> ShapeRead(const std::string& path) {
  MENDEL_ASSIGN_OR_RETURN(const ImportResult imported, ImportOnnxFile(path));
  for (const Node& node : imported.graph.nodes()) {
    if (node.op->name != "Conv") continue;
    const Ints& dilations = node.attrs.IntList("dilations");
    if (std::any_of(dilations.begin(), dilations.end(),
                    [](int64_t dilation) { return dilation > 1; }))
      return imported.graph.type(node.inputs[0]).shape;
  }
  return absl::NotFoundError(Cat(path, ": no convolution is dilated"));
}

/// Replaces `list` by its elements for which `keep` is true.
template <class List, class Keep>
void Retain(List& list, const Keep& keep) {
  List kept;
  for (auto& one : list) {
    if (keep(one)) *kept.Add() = std::move(one);
  }
  list.Swap(&kept);
}

}  // namespace

absl::Status CutBackEnd(const std::string& path, onnx::ModelProto& model) {
  MENDEL_ASSIGN_OR_RETURN(const Shape shape, ShapeRead(path));
  onnx::GraphProto& graph = *model.mutable_graph();
  const auto first = std::find_if(graph.node().begin(), graph.node().end(), IsDilated);
  if (first == graph.node().end())
    return absl::NotFoundError(Cat(path, ": no convolution is dilated"));
  const std::string cut = first->input(0);
  // Backwards from the outputs: nodes stand behind what they read.
  std::set<std::string> needed;
  for (const onnx::ValueInfoProto& output : graph.output()) needed.insert(output.name());
  std::set<const onnx::NodeProto*> nodes;
  for (int k = graph.node_size(); k-- > 0;) {
    const onnx::NodeProto& node = graph.node(k);
    const auto reaches = [&](const std::string& name) {
      return name != cut && needed.count(name) > 0;
    };
    if (std::none_of(node.output().begin(), node.output().end(), reaches)) continue;
    nodes.insert(&node);
    needed.insert(node.input().begin(), node.input().end());
  }
  Retain(*graph.mutable_initializer(),
         [&](const onnx::TensorProto& tensor) { return needed.count(tensor.name()) > 0; });
  std::set<std::string> stored;
  for (const onnx::TensorProto& tensor : graph.initializer()) stored.insert(tensor.name());
  for (const onnx::ValueInfoProto& input : graph.input()) {
    if (input.name() != cut && needed.count(input.name()) > 0 && stored.count(input.name()) == 0)
      return InvalidInput(path, ": the outputs need '", input.name(), "' besides '", cut, "'");
  }
  Retain(*graph.mutable_node(),
         [&](const onnx::NodeProto& node) { return nodes.count(&node) > 0; });
  graph.clear_input();
  graph.clear_value_info();
  onnx::ValueInfoProto& input = *graph.add_input();
  input.set_name(cut);
  input.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  for (const int64_t extent : shape)
    input.mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(extent);
  return absl::OkStatus();
}

}  // namespace mendel
