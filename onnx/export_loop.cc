// The operator Loop as ONNX's Scan.

#include <memory>
#include <utility>

#include "base/status.h"
#include "graph/loop.h"
#include "onnx/exporter.h"

namespace mendel {
namespace {

using Names = std::vector<std::vector<std::string>>;

/// Writes the nodes of `body`. `names` has the inputs' names and receives all others.
absl::Status ExportNodes(const Graph& body, Names& names, Exporter& exporter) {
  for (size_t i = 0; i < body.nodes().size(); ++i) {
    const Node& node = body.nodes()[i];
    if (IsInput(node)) continue;
    if (IsConstant(node)) {
      names[i] = {exporter.AddTensor(ConstantValue(node), "literal")};
      continue;
    }
    ExportedNode exported{body, node, {}, {}};
    for (const ValueId input : node.inputs) {
      exported.inputs.push_back(
          names[static_cast<size_t>(input.node)][static_cast<size_t>(input.output)]);
    }
    for (size_t k = 0; k < node.outputs.size(); ++k)
      exported.outputs.push_back(exporter.UniqueName("step"));
    names[i] = exported.outputs;
    MENDEL_RETURN_IF_ERROR(ExportNode(exported, exporter));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ExportLoop(const ExportedNode& node, Exporter& exporter) {
  const Attributes& attrs = node.node.attrs;
  const std::shared_ptr<const Graph> body = LoopBodyOf(attrs);
  const size_t carried = static_cast<size_t>(attrs.Int("carried"));
  const size_t stepped = carried + static_cast<size_t>(attrs.Int("scanned"));
  std::vector<std::string> inputs(node.inputs.begin(),
                                  node.inputs.begin() + static_cast<int64_t>(stepped));
  onnx::GraphProto proto;
  proto.set_name(exporter.UniqueName("step"));
  Exporter inner(proto, exporter);
  Names names(body->nodes().size());
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    const int32_t id = body->inputs()[k];
    std::string name = node.inputs[k];  // an invariant: read from the graph around the body
    if (k < stepped) {
      name = exporter.UniqueName(k < carried ? "carried" : "scanned");
      SetType(*proto.add_input(), name, body->node(id).outputs[0]);
    }
    names[static_cast<size_t>(id)] = {std::move(name)};
  }
  if (stepped == carried) {  // Scan counts its steps by an input
    const TensorType counter{DType::kF32, {attrs.Int("steps")}};
    inputs.push_back(exporter.AddTensor(
        Tensor::FromDoubles(counter, std::vector<double>(static_cast<size_t>(counter.shape[0]))),
        "steps"));
    SetType(*proto.add_input(), exporter.UniqueName("scanned"), {DType::kF32, {}});
  }
  MENDEL_RETURN_IF_ERROR(ExportNodes(*body, names, inner));
  for (const GraphOutput& output : body->outputs()) {
    const std::string name = exporter.UniqueName("result");
    inner.AddNode(
        "Identity",
        {names[static_cast<size_t>(output.value.node)][static_cast<size_t>(output.value.output)]},
        {name});
    SetType(*proto.add_output(), name, body->type(output.value));
  }
  for (int k = 0; k < proto.initializer_size(); ++k) {
    const std::span<const std::byte> bytes = inner.tensors()[static_cast<size_t>(k)].bytes();
    proto.mutable_initializer(k)->set_raw_data(bytes.data(), bytes.size());
  }
  onnx::NodeProto& scan = exporter.AddNode("Scan", inputs, node.outputs);
  const Ints directions(inputs.size() - carried, attrs.Int("reverse"));
  SetAttribute(scan, "num_scan_inputs", static_cast<int64_t>(directions.size()));
  SetAttribute(scan, "scan_input_directions", directions);
  if (node.outputs.size() > carried) {
    SetAttribute(scan, "scan_output_directions",
                 Ints(node.outputs.size() - carried, attrs.Int("reverse")));
  }
  onnx::AttributeProto& attribute = *scan.add_attribute();
  attribute.set_name("body");
  attribute.set_type(onnx::AttributeProto::GRAPH);
  *attribute.mutable_g() = std::move(proto);
  return absl::OkStatus();
}

}  // namespace mendel
