#include "onnx/export.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/status.h"
#include "onnx/exporter.h"
#include "onnx/tensor_decode.h"

namespace mendel {
namespace {

constexpr int64_t kMaxInline = int64_t{1} << 30;
constexpr int64_t kExternalAlignment = 64;

/// Names of the values of one graph: inputs and first uses of outputs have the graph's names.
absl::Status ExportGraph(const Graph& graph, Exporter& exporter) {
  onnx::GraphProto& proto = exporter.proto();
  proto.set_name(graph.name().empty() ? "graph" : graph.name());
  std::vector<std::vector<std::string>> names(graph.nodes().size());
  for (int32_t id : graph.inputs())
    names[static_cast<size_t>(id)] = {exporter.UniqueName(InputName(graph.node(id)))};
  // Outputs first: their names are the caller's, inner names give way.
  std::vector<std::string> output_names;
  for (const GraphOutput& output : graph.outputs()) {
    output_names.push_back(exporter.UniqueName(output.name));
    if (output_names.back() != output.name)
      return InvalidInput("two inputs or outputs are named '", output.name, "'");
    SetType(*proto.add_output(), output.name, graph.type(output.value));
  }
  std::vector<bool> produced(graph.outputs().size(), false);
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (IsInput(node)) {
      SetType(*proto.add_input(), names[i][0], node.outputs[0]);
      continue;
    }
    if (IsConstant(node)) {
      names[i] = {exporter.AddTensor(ConstantValue(node),
                                     SymbolName(node).empty() ? "literal" : SymbolName(node))};
      continue;
    }
    ExportedNode exported{graph, node, {}, {}};
    for (ValueId input : node.inputs) {
      exported.inputs.push_back(
          names[static_cast<size_t>(input.node)][static_cast<size_t>(input.output)]);
    }
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      const ValueId value{static_cast<int32_t>(i), static_cast<int32_t>(k)};
      std::string name;
      for (size_t o = 0; o < graph.outputs().size() && name.empty(); ++o) {
        if (graph.outputs()[o].value != value) continue;
        name = output_names[o];
        produced[o] = true;
      }
      exported.outputs.push_back(
          name.empty() ? exporter.UniqueName(Cat("v", i, k == 0 ? "" : Cat("_", k))) : name);
    }
    names[i] = exported.outputs;
    const absl::Status done = ExportNode(exported, exporter);
    if (!done.ok()) return Annotate(done, Cat("node '", node.name, "' (", node.op->name, ")"));
  }
  for (size_t o = 0; o < graph.outputs().size(); ++o) {
    const ValueId value = graph.outputs()[o].value;
    if (!produced[o]) {
      exporter.AddNode("Identity",
                       {names[static_cast<size_t>(value.node)][static_cast<size_t>(value.output)]},
                       {output_names[o]});
    }
  }
  return absl::OkStatus();
}

/// Stores the initializers' elements in the message, or in `data` at aligned offsets.
absl::Status StoreTensors(const Exporter& exporter, const std::string& location,
                          std::ofstream* data, onnx::GraphProto& proto) {
  int64_t offset = 0;
  for (int k = 0; k < proto.initializer_size(); ++k) {
    const std::span<const std::byte> bytes = exporter.tensors()[static_cast<size_t>(k)].bytes();
    onnx::TensorProto& tensor = *proto.mutable_initializer(k);
    const int64_t size = static_cast<int64_t>(bytes.size());
    if (data == nullptr || size < 1024) {
      tensor.set_raw_data(bytes.data(), bytes.size());
      continue;
    }
    const int64_t padding = (kExternalAlignment - offset % kExternalAlignment) % kExternalAlignment;
    data->write(std::string(static_cast<size_t>(padding), '\0').data(), padding);
    data->write(reinterpret_cast<const char*>(bytes.data()), size);
    offset += padding;
    tensor.set_data_location(onnx::TensorProto::EXTERNAL);
    const std::pair<const char*, std::string> entries[] = {
        {"location", location}, {"offset", Cat(offset)}, {"length", Cat(size)}};
    for (const auto& [key, value] : entries) {
      auto& entry = *tensor.add_external_data();
      entry.set_key(key);
      entry.set_value(value);
    }
    offset += size;
  }
  return absl::OkStatus();
}

absl::Status Rename(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) return InvalidInput("cannot write '", to, "'");
  return absl::OkStatus();
}

}  // namespace

void SetType(onnx::ValueInfoProto& info, const std::string& name, const TensorType& type) {
  info.set_name(name);
  auto& tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(DTypeToOnnx(type.dtype));
  tensor.mutable_shape();
  for (int64_t extent : type.shape) tensor.mutable_shape()->add_dim()->set_dim_value(extent);
}

std::string Exporter::UniqueName(const std::string& wanted) {
  if (outer_ != nullptr) return outer_->UniqueName(wanted);
  std::string name = wanted.empty() ? "value" : wanted;
  for (int suffix = 2; !names_.insert(name).second; ++suffix)
    name = Cat(wanted.empty() ? "value" : wanted, "_", suffix);
  return name;
}

std::string Exporter::AddTensor(const Tensor& tensor, const std::string& wanted) {
  const std::string name = UniqueName(wanted);
  onnx::TensorProto& proto = *proto_.add_initializer();
  proto.set_name(name);
  proto.set_data_type(DTypeToOnnx(tensor.dtype()));
  for (int64_t extent : tensor.shape()) proto.add_dims(extent);
  tensors_.push_back(tensor);
  return name;
}

onnx::NodeProto& Exporter::AddNode(std::string_view op, const std::vector<std::string>& inputs,
                                   const std::vector<std::string>& outputs) {
  onnx::NodeProto& node = *proto_.add_node();
  node.set_op_type(std::string(op));
  node.set_name(Cat(op, "_", proto_.node_size()));
  for (const std::string& input : inputs) node.add_input(input);
  for (const std::string& output : outputs) node.add_output(output);
  return node;
}

void SetAttribute(onnx::NodeProto& proto, const std::string& name, int64_t value) {
  onnx::AttributeProto& attribute = *proto.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INT);
  attribute.set_i(value);
}

void SetAttribute(onnx::NodeProto& proto, const std::string& name, const Ints& values) {
  onnx::AttributeProto& attribute = *proto.add_attribute();
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INTS);
  for (int64_t value : values) attribute.add_ints(value);
}

absl::Status SetAttribute(onnx::NodeProto& proto, const std::string& name, const AttrValue& value) {
  if (const auto* integer = std::get_if<int64_t>(&value)) {
    SetAttribute(proto, name, *integer);
    return absl::OkStatus();
  }
  if (const auto* ints = std::get_if<Ints>(&value)) {
    SetAttribute(proto, name, *ints);
    return absl::OkStatus();
  }
  onnx::AttributeProto& attribute = *proto.add_attribute();
  attribute.set_name(name);
  if (const auto* real = std::get_if<double>(&value)) {
    attribute.set_type(onnx::AttributeProto::FLOAT);
    attribute.set_f(static_cast<float>(*real));
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    attribute.set_type(onnx::AttributeProto::STRING);
    attribute.set_s(*text);
  } else if (const auto* reals = std::get_if<std::vector<double>>(&value)) {
    attribute.set_type(onnx::AttributeProto::FLOATS);
    for (double element : *reals) attribute.add_floats(static_cast<float>(element));
  } else {
    return InternalError("attribute '", name, "' has no ONNX form");
  }
  return absl::OkStatus();
}

absl::Status ExportOnnx(const Graph& graph, const std::string& path) {
  bool newest = false;
  for (const Node& node : graph.nodes()) newest = newest || NeedsNewestOpset(graph, node);
  onnx::ModelProto model;
  model.set_ir_version(newest ? 10 : 8);
  model.set_producer_name("mendel");
  onnx::OperatorSetIdProto& opset = *model.add_opset_import();
  opset.set_domain("");
  opset.set_version(newest ? 21 : 17);
  Exporter exporter(*model.mutable_graph(), newest ? 21 : 17);
  MENDEL_RETURN_IF_ERROR(ExportGraph(graph, exporter));
  int64_t bytes = 0;
  for (const Tensor& tensor : exporter.tensors())
    bytes += static_cast<int64_t>(tensor.bytes().size());
  const std::string data_path = path + ".data";
  const std::string location = std::filesystem::path(data_path).filename().string();
  std::ofstream data;
  if (bytes > kMaxInline) data.open(data_path + ".tmp", std::ios::binary | std::ios::trunc);
  const bool external = data.is_open();
  if (bytes > kMaxInline && !external) return InvalidInput("cannot write '", data_path, "'");
  MENDEL_RETURN_IF_ERROR(
      StoreTensors(exporter, location, external ? &data : nullptr, *model.mutable_graph()));
  std::ofstream file(path + ".tmp", std::ios::binary | std::ios::trunc);
  if (!model.SerializeToOstream(&file)) return InvalidInput("cannot write '", path, "'");
  file.close();
  data.close();
  if (file.fail() || (external && data.fail())) return InvalidInput("cannot write '", path, "'");
  if (external) MENDEL_RETURN_IF_ERROR(Rename(data_path + ".tmp", data_path));
  return Rename(path + ".tmp", path);
}

}  // namespace mendel
