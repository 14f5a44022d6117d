#include "graph/graph.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/status.h"

namespace mendel {
namespace {

std::string Describe(const Node& node) {
  return node.name.empty() ? Cat("operator ", node.op->name)
                           : Cat("node '", node.name, "' (", node.op->name, ")");
}

/// Fills in defaults and refuses unknown, missing and wrongly typed attributes.
absl::Status CompleteAttributes(const OpDefinition& op, Attributes& attrs) {
  for (const auto& [name, value] : attrs.values()) {
    // An init-capture, because clang before 16 captures no structured bindings.
    const auto spec = std::find_if(op.attributes.begin(), op.attributes.end(),
                                   [&name = name](const auto& s) { return s.name == name; });
    if (spec == op.attributes.end())
      return InvalidInput("operator ", op.name, " has no attribute '", name, "'");
    if (spec->default_value.index() != value.index()) {
      return InvalidInput("operator ", op.name, ": attribute '", name, "' is of the wrong kind");
    }
  }
  for (const AttributeSpec& spec : op.attributes) {
    if (attrs.Has(spec.name)) continue;
    if (spec.required)
      return InvalidInput("operator ", op.name, " needs attribute '", spec.name, "'");
    attrs.Set(spec.name, spec.default_value);
  }
  return absl::OkStatus();
}

/// Type and first bytes: few different literals have the same.
std::string LiteralKey(const Tensor& value) {
  constexpr size_t kBytes = 64;
  const auto bytes = value.bytes().first(std::min(kBytes, value.bytes().size()));
  std::string key = TypeString(value.type());
  key.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return key;
}

absl::Status CheckType(const TensorType& type) {
  if (type.shape.size() > static_cast<size_t>(kMaxRank)) {
    return Unsupported("rank ", type.shape.size(), " exceeds the limit of ", kMaxRank);
  }
  int64_t count = 1;
  for (int64_t extent : type.shape) {
    if (extent < 0) return InvalidInput("negative extent in shape ", ShapeString(type.shape));
    if (extent > 0 && count > kMaxElements / extent) {
      return InvalidInput("shape ", ShapeString(type.shape), " has more than 2^40 elements");
    }
    count *= extent;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<TensorType>> InferTypes(const OpDefinition& op,
                                                   std::span<const TensorType> inputs,
                                                   const Attributes& attrs) {
  const int count = static_cast<int>(inputs.size());
  if (count < op.min_inputs || count > op.max_inputs) {
    return InvalidInput("operator ", op.name, " takes ", op.min_inputs, " to ", op.max_inputs,
                        " inputs, not ", count);
  }
  for (const TensorType& type : inputs) {
    const StorageTypes needed =
        IsFloat8(type.dtype)
            ? StorageTypes::kAll
            : (IsStorageOnly(type.dtype) ? StorageTypes::kU64 : StorageTypes::kNone);
    if (op.storage < needed) {
      return Unsupported("operator ", op.name, " does not take ", DTypeName(type.dtype),
                         ", which is a type for storage: Cast leads to one that it computes with");
    }
  }
  MENDEL_ASSIGN_OR_RETURN(std::vector<TensorType> outputs, op.infer(inputs, attrs));
  for (const TensorType& type : outputs) MENDEL_RETURN_IF_ERROR(CheckType(type));
  return outputs;
}

}  // namespace

std::vector<TensorType> Graph::InputTypes(int32_t id) const {
  std::vector<TensorType> types;
  for (ValueId value : node(id).inputs) types.push_back(type(value));
  return types;
}

bool IsInput(const Node& node) { return node.op->name == "Input"; }
bool IsConstant(const Node& node) { return node.op->name == "Constant"; }
const std::string& InputName(const Node& node) { return node.attrs.Str("name"); }
const Tensor& ConstantValue(const Node& node) { return node.attrs.TensorValue("value"); }
const std::string& SymbolName(const Node& node) { return node.attrs.Str("symbol"); }

ValueId GraphBuilder::Input(std::string name, TensorType type) {
  Attributes attrs{
      {"name", name}, {"dtype", std::string(DTypeName(type.dtype))}, {"shape", type.shape}};
  const auto node = AddNode("Input", {}, std::move(attrs), std::move(name));
  MENDEL_CHECK(node.ok());
  return {*node, 0};
}

ValueId GraphBuilder::Constant(Tensor value, std::string symbol) {
  if (IsIntegral(value.dtype())) symbol.clear();
  if (!symbol.empty()) {
    const auto it = symbols_.find(symbol);
    if (it != symbols_.end()) {
      MENDEL_CHECK(type({it->second, 0}) == value.type());
      return {it->second, 0};
    }
  }
  std::vector<int32_t>* alike = nullptr;
  if (symbol.empty()) {
    alike = &literals_[LiteralKey(value)];
    for (int32_t id : *alike) {
      if (ConstantValue(node(id)) == value) return {id, 0};
    }
  }
  const auto id =
      AddNode("Constant", {}, {{"symbol", symbol}, {"value", std::move(value)}}, symbol);
  MENDEL_CHECK(id.ok());
  if (alike != nullptr) alike->push_back(*id);
  if (!symbol.empty()) symbols_[symbol] = *id;
  return {*id, 0};
}

absl::StatusOr<ValueId> GraphBuilder::Add(std::string_view op, std::vector<ValueId> inputs,
                                          Attributes attrs, std::string name) {
  MENDEL_ASSIGN_OR_RETURN(const int32_t id,
                          AddNode(op, std::move(inputs), std::move(attrs), std::move(name)));
  if (node(id).outputs.size() != 1)
    return InvalidInput("operator ", op, " has ", node(id).outputs.size(), " outputs, not one");
  return ValueId{id, 0};
}

absl::StatusOr<int32_t> GraphBuilder::AddNode(std::string_view op, std::vector<ValueId> inputs,
                                              Attributes attrs, std::string name) {
  Node node;
  node.op = FindOp(op);
  if (node.op == nullptr) return Unsupported("unknown operator '", op, "'");
  node.name = std::move(name);
  node.attrs = std::move(attrs);
  node.inputs = std::move(inputs);
  const absl::Status complete = CompleteAttributes(*node.op, node.attrs);
  if (!complete.ok()) return Annotate(complete, Describe(node));
  std::vector<TensorType> types;
  for (ValueId value : node.inputs) {
    const bool known = value.node >= 0 && static_cast<size_t>(value.node) < data_.nodes.size() &&
                       value.output >= 0 &&
                       static_cast<size_t>(value.output) <
                           data_.nodes[static_cast<size_t>(value.node)].outputs.size();
    if (!known) return InvalidInput(Describe(node), ": input value does not exist");
    types.push_back(type(value));
  }
  auto outputs = InferTypes(*node.op, types, node.attrs);
  if (!outputs.ok()) return Annotate(outputs.status(), Describe(node));
  node.outputs = *std::move(outputs);
  const int32_t id = static_cast<int32_t>(data_.nodes.size());
  if (IsInput(node)) data_.inputs.push_back(id);
  data_.nodes.push_back(std::move(node));
  return id;
}

absl::StatusOr<int32_t> GraphBuilder::CopyNode(const Node& node, std::vector<ValueId> inputs) {
  if (IsConstant(node)) return Constant(ConstantValue(node), SymbolName(node)).node;
  return AddNode(node.op->name, std::move(inputs), node.attrs, node.name);
}

absl::StatusOr<Graph> GraphBuilder::Build() {
  std::vector<bool> needed(data_.nodes.size(), false);
  for (const GraphOutput& output : data_.outputs)
    needed[static_cast<size_t>(output.value.node)] = true;
  for (size_t i = data_.nodes.size(); i-- > 0;) {
    if (!needed[i]) continue;
    for (ValueId value : data_.nodes[i].inputs) needed[static_cast<size_t>(value.node)] = true;
  }
  auto data = std::make_shared<Graph::Data>();
  data->name = data_.name;
  std::vector<int32_t> renumbered(data_.nodes.size(), -1);
  for (size_t i = 0; i < data_.nodes.size(); ++i) {
    Node& node = data_.nodes[i];
    if (!needed[i] && !IsInput(node)) continue;
    const int32_t id = static_cast<int32_t>(data->nodes.size());
    renumbered[i] = id;
    for (ValueId& value : node.inputs) value.node = renumbered[static_cast<size_t>(value.node)];
    if (IsInput(node)) data->inputs.push_back(id);
    data->nodes.push_back(std::move(node));
  }
  data->users.resize(data->nodes.size());
  data->is_output.resize(data->nodes.size());
  data->constant.resize(data->nodes.size());
  for (size_t i = 0; i < data->nodes.size(); ++i) {
    data->constant[i] = !IsInput(data->nodes[i]);
    for (ValueId value : data->nodes[i].inputs) {
      data->constant[i] = data->constant[i] && data->constant[static_cast<size_t>(value.node)];
      auto& users = data->users[static_cast<size_t>(value.node)];
      if (users.empty() || users.back() != static_cast<int32_t>(i))
        users.push_back(static_cast<int32_t>(i));
    }
  }
  for (GraphOutput& output : data_.outputs) {
    output.value.node = renumbered[static_cast<size_t>(output.value.node)];
    data->is_output[static_cast<size_t>(output.value.node)] = true;
    data->outputs.push_back(std::move(output));
  }
  data_ = {};
  return Graph(std::move(data));
}

absl::Status CheckGraph(const Graph& graph) {
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    for (ValueId value : node.inputs) {
      if (value.node < 0 || static_cast<size_t>(value.node) >= i)
        return InternalError(Describe(node), " stands before its input");
      if (value.output < 0 ||
          static_cast<size_t>(value.output) >= graph.node(value.node).outputs.size()) {
        return InternalError(Describe(node), " reads an output that does not exist");
      }
    }
    Attributes attrs = node.attrs;
    MENDEL_RETURN_IF_ERROR(CompleteAttributes(*node.op, attrs));
    if (!(attrs == node.attrs)) return InternalError(Describe(node), " has incomplete attributes");
    const std::vector<TensorType> inputs = graph.InputTypes(static_cast<int32_t>(i));
    MENDEL_ASSIGN_OR_RETURN(const std::vector<TensorType> outputs,
                            InferTypes(*node.op, inputs, node.attrs));
    if (outputs != node.outputs)
      return InternalError(Describe(node), " has types that do not follow from its inputs");
  }
  for (const GraphOutput& output : graph.outputs()) {
    if (output.value.node < 0 || static_cast<size_t>(output.value.node) >= graph.nodes().size()) {
      return InternalError("output '", output.name, "' does not exist");
    }
  }
  return absl::OkStatus();
}

}  // namespace mendel
