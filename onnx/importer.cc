#include "onnx/importer.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "graph/running_sums.h"
#include "onnx/op_context.h"
#include "onnx/op_versions.h"
#include "onnx/tensor_decode.h"

namespace mendel {
namespace {

constexpr int kMaxFrames = 64;
/// Operators of earlier opsets may name inputs that they overwrite, which changes no value.
constexpr int64_t kFirstWithoutConsumed = 6;
constexpr int64_t kMaxNodes = 1'000'000;

std::string Label(const onnx::NodeProto& node, const Frame& frame) {
  const std::string& name =
      !node.name().empty() || node.output_size() == 0 ? node.name() : node.output(0);
  return Cat("node '", frame.prefix, name, "' (", node.op_type(), ")");
}

bool IsStandard(const std::string& domain) { return domain.empty() || domain == "ai.onnx"; }

std::string FunctionKey(const std::string& domain, const std::string& name,
                        const std::string& overload) {
  return Cat(IsStandard(domain) ? std::string() : domain, "\n", name, "\n", overload);
}

/// Adds the names that a node of a subgraph reads, those of nested subgraphs included.
void AddReads(const onnx::NodeProto& node, std::set<std::string>& names) {
  names.insert(node.input().begin(), node.input().end());
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    for (const onnx::NodeProto& inner : attribute.g().node()) AddReads(inner, names);
    for (const onnx::ValueInfoProto& output : attribute.g().output()) names.insert(output.name());
  }
}

/// Takes away the names that `graph` defines itself.
void EraseDefined(const onnx::GraphProto& graph, std::set<std::string>& names) {
  names.erase("");
  for (const onnx::ValueInfoProto& input : graph.input()) names.erase(input.name());
  for (const onnx::TensorProto& tensor : graph.initializer()) names.erase(tensor.name());
  for (const onnx::NodeProto& node : graph.node()) {
    for (const std::string& output : node.output()) names.erase(output);
  }
}

/// `node` with the attributes that refer to the caller's attributes resolved.
onnx::NodeProto Resolve(const onnx::NodeProto& node, const Frame& frame) {
  onnx::NodeProto resolved = node;
  resolved.clear_attribute();
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.ref_attr_name().empty()) {
      *resolved.add_attribute() = attribute;
      continue;
    }
    const auto argument = frame.arguments->find(attribute.ref_attr_name());
    if (argument == frame.arguments->end()) continue;  // absent for the caller, absent here
    *resolved.add_attribute() = *argument->second;
    resolved.mutable_attribute(resolved.attribute_size() - 1)->set_name(attribute.name());
  }
  return resolved;
}

}  // namespace

std::set<std::string> FreeNames(const onnx::GraphProto& graph) {
  std::set<std::string> names;
  for (const onnx::NodeProto& node : graph.node()) AddReads(node, names);
  for (const onnx::ValueInfoProto& output : graph.output()) names.insert(output.name());
  EraseDefined(graph, names);
  return names;
}

std::vector<bool> NeededNodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes,
                              std::set<std::string> wanted) {
  std::vector<bool> needed(static_cast<size_t>(nodes.size()), false);
  for (int k = nodes.size() - 1; k >= 0; --k) {
    const auto& outputs = nodes[k].output();
    if (std::none_of(outputs.begin(), outputs.end(),
                     [&](const std::string& name) { return wanted.count(name) != 0; }))
      continue;
    needed[static_cast<size_t>(k)] = true;
    AddReads(nodes[k], wanted);
    wanted.erase("");
  }
  return needed;
}

Importer::Importer(const ModelFile& file, const ImportOptions& options, std::string directory)
    : file_(file),
      options_(options),
      external_(std::move(directory)),
      builder_(file.model.graph().name()) {}

absl::StatusOr<ImportResult> Importer::Run() {
  const onnx::GraphProto& graph = file_.model.graph();
  for (const onnx::FunctionProto& function : file_.model.functions()) {
    const bool fresh =
        functions_
            .emplace(FunctionKey(function.domain(), function.name(), function.overload()),
                     &function)
            .second;
    if (!fresh) return InvalidInput("the model defines function '", function.name(), "' twice");
  }
  Scope scope;
  Frame frame;
  MENDEL_ASSIGN_OR_RETURN(frame.opset, StandardOpset(file_.model.opset_import()));
  MENDEL_RETURN_IF_ERROR(ImportInputs(scope));
  MENDEL_RETURN_IF_ERROR(DeclareInitializers(graph, scope));
  std::set<std::string> wanted;
  for (const onnx::ValueInfoProto& output : graph.output()) {
    if (!wanted.insert(output.name()).second)
      return InvalidInput("the model has two outputs '", output.name(), "'");
  }
  if (wanted.empty()) return InvalidInput("the model has no outputs");
  MENDEL_RETURN_IF_ERROR(
      ImportNodes(graph.node(), NeededNodes(graph.node(), wanted), scope, frame));
  for (const onnx::ValueInfoProto& output : graph.output()) {
    auto value = Read(output.name(), scope, frame);
    if (!value.ok()) return Annotate(value.status(), Cat("output '", output.name(), "'"));
    builder_.Output(output.name(), *value);
  }
  if (options_.every_value) AddEveryValue(graph.node(), wanted, scope);
  MENDEL_ASSIGN_OR_RETURN(result_.graph, builder_.Build());
  return std::move(result_);
}

void Importer::AddEveryValue(const Nodes& nodes, const std::set<std::string>& outputs,
                             const Scope& scope) {
  for (const onnx::NodeProto& node : nodes) {
    for (const std::string& name : node.output()) {
      const auto found = scope.values.find(name);
      if (name.empty() || outputs.count(name) != 0 || found == scope.values.end()) continue;
      const std::optional<ValueId>& value = found->second.value;
      if (!value.has_value() || IsConstant(builder_.node(value->node)) || Evaluated(*value))
        continue;
      builder_.Output(name, *value);
    }
  }
}

absl::Status Importer::CountNode() {
  if (added_nodes_++ != options_.failing_node) return absl::OkStatus();
  return InvalidInput("this node fails for a test");
}

absl::Status Importer::ImportInputs(Scope& scope) {
  MENDEL_ASSIGN_OR_RETURN(const std::vector<ResolvedInput> inputs,
                          ResolveInputs(file_.model.graph(), options_, result_));
  for (const ResolvedInput& input : inputs) {
    MENDEL_RETURN_IF_ERROR(
        Define(input.name, {builder_.Input(input.name, input.type), nullptr, ""}, scope));
  }
  for (const auto& [name, tensor] : options_.bindings) {
    MENDEL_ASSIGN_OR_RETURN(const ValueId value, AddConstant(tensor, name));
    MENDEL_RETURN_IF_ERROR(Define(name, {value, nullptr, ""}, scope));
  }
  return absl::OkStatus();
}

absl::Status Importer::DeclareInitializers(const onnx::GraphProto& graph, Scope& scope) {
  for (const onnx::TensorProto& tensor : graph.initializer()) {
    if (scope.outer == nullptr && options_.bindings.count(tensor.name()) != 0) continue;
    MENDEL_RETURN_IF_ERROR(Define(tensor.name(), {std::nullopt, &tensor, ""}, scope));
  }
  for (const onnx::SparseTensorProto& tensor : graph.sparse_initializer()) {
    NamedValue value{std::nullopt, nullptr, "a sparse tensor, which is not supported"};
    MENDEL_RETURN_IF_ERROR(Define(tensor.values().name(), std::move(value), scope));
  }
  return absl::OkStatus();
}

absl::Status Importer::Define(const std::string& name, NamedValue value, Scope& scope) {
  if (name.empty()) return InvalidInput("the model defines a value without a name");
  if (!scope.values.emplace(name, std::move(value)).second)
    return InvalidInput("value '", name, "' is defined twice");
  return absl::OkStatus();
}

absl::StatusOr<ValueId> Importer::Read(const std::string& name, Scope& scope, const Frame& frame) {
  MENDEL_ASSIGN_OR_RETURN(const std::optional<ValueId> value, ReadOptional(name, scope, frame));
  if (!value.has_value())
    return InvalidInput("reads '", name, "', an input that the call leaves out");
  return *value;
}

absl::StatusOr<std::optional<ValueId>> Importer::ReadOptional(const std::string& name, Scope& scope,
                                                              const Frame& frame) {
  for (Scope* within = &scope; within != nullptr; within = within->outer) {
    const auto found = within->values.find(name);
    if (found == within->values.end()) continue;
    NamedValue& named = found->second;
    if (named.value.has_value() || named.absent) return named.value;
    if (named.initializer == nullptr) return Unsupported("reads '", name, "', ", named.missing);
    auto tensor = Decode(*named.initializer);
    if (!tensor.ok()) return Annotate(tensor.status(), Cat("tensor '", name, "'"));
    MENDEL_ASSIGN_OR_RETURN(const ValueId value,
                            AddConstant(*std::move(tensor), frame.prefix + name));
    named.value = value;
    named.initializer = nullptr;
    return value;
  }
  return InvalidInput("reads '", name, "', which no input, initializer or earlier node defines");
}

absl::StatusOr<std::optional<ValueId>> Importer::ReadPacked(const std::string& name, Scope& scope,
                                                            const Frame& frame) {
  for (Scope* within = &scope; within != nullptr; within = within->outer) {
    const auto found = within->values.find(name);
    if (found == within->values.end()) continue;
    NamedValue& named = found->second;
    const onnx::TensorProto* const proto = named.initializer;
    if (named.unpacked.has_value() || proto == nullptr || !IsPacked(proto->data_type()))
      return named.unpacked;
    auto tensor = DecodePacked(*proto, file_, external_);
    if (!tensor.ok()) return Annotate(tensor.status(), Cat("tensor '", name, "'"));
    MENDEL_ASSIGN_OR_RETURN(named.unpacked, AddConstant(*std::move(tensor), frame.prefix + name));
    return named.unpacked;
  }
  return std::nullopt;
}

absl::StatusOr<Tensor> Importer::Decode(const onnx::TensorProto& proto) {
  return DecodeTensor(proto, file_, external_);
}

absl::StatusOr<ValueId> Importer::AddConstant(Tensor value, const std::string& name) {
  MENDEL_RETURN_IF_ERROR(CheckShape(value.shape()));
  if (IsIntegral(value.dtype()) || value.size() <= 1 || IsTriangle(value))
    return builder_.Constant(std::move(value));
  std::string symbol = name;
  for (int suffix = 2; !symbols_.insert(symbol).second; ++suffix) symbol = Cat(name, "#", suffix);
  return builder_.Constant(std::move(value), symbol);
}

absl::Status Importer::ImportNodes(const Nodes& nodes, const std::vector<bool>& needed,
                                   Scope& scope, const Frame& frame) {
  if (frame.depth > kMaxFrames)
    return Unsupported("functions and branches are nested more than ", kMaxFrames, " levels deep");
  for (int k = 0; k < nodes.size(); ++k) {
    if (!needed[static_cast<size_t>(k)]) continue;
    if (++imported_nodes_ > kMaxNodes)
      return Unsupported("the model has more than ", kMaxNodes, " nodes after inlining");
    if (options_.interrupted != nullptr && options_.interrupted->load())
      return absl::CancelledError("interrupted during the import");
    if (frame.arguments == nullptr) {
      MENDEL_RETURN_IF_ERROR(ImportNode(nodes[k], scope, frame));
    } else {
      MENDEL_RETURN_IF_ERROR(ImportNode(Resolve(nodes[k], frame), scope, frame));
    }
  }
  return absl::OkStatus();
}

absl::Status Importer::ImportNode(const onnx::NodeProto& node, Scope& scope, const Frame& frame) {
  const std::string label = Label(node, frame);
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (frame.arguments == nullptr && !attribute.ref_attr_name().empty()) {
      return InvalidInput(label, ": attribute '", attribute.name(),
                          "' refers to a function's attribute outside a function");
    }
  }
  std::vector<std::optional<ValueId>> inputs;
  for (const std::string& name : node.input()) {
    if (name.empty()) {
      inputs.push_back(std::nullopt);
      continue;
    }
    auto value = node.op_type() == "DequantizeLinear" ? ReadPacked(name, scope, frame)
                                                      : std::optional<ValueId>();
    if (value.ok() && !value->has_value()) value = ReadOptional(name, scope, frame);
    if (!value.ok()) return Annotate(value.status(), label);
    inputs.push_back(*value);
  }
  const onnx::FunctionProto* function = FindFunction(node);
  if (function != nullptr) {
    const absl::Status called = CallFunction(node, *function, inputs, scope, frame);
    // The label of the innermost node is enough; a call adds its own only to errors of the call
    // itself.
    return called.message().find("node '") == absl::string_view::npos ? Annotate(called, label)
                                                                      : called;
  }
  return ImportOperator(node, label, inputs, scope, frame);
}

absl::Status Importer::ImportOperator(const onnx::NodeProto& node, const std::string& label,
                                      const std::vector<std::optional<ValueId>>& inputs,
                                      Scope& scope, const Frame& frame) {
  const bool standard = IsStandard(node.domain());
  const OpImport* import =
      FindOpImport(standard ? node.op_type() : Cat(node.domain(), ".", node.op_type()));
  int64_t version = 1;
  if (standard) {
    const auto in_force = VersionInForce(node.op_type(), frame.opset);
    if (!in_force.ok()) return Annotate(in_force.status(), label);
    version = *in_force;
  } else if (import == nullptr) {
    return Unsupported(label, ": operator '", node.op_type(), "' of domain '", node.domain(),
                       "' is not supported");
  }
  OpContext context(*this, node, inputs, scope, frame, version);
  if (standard && version < kFirstWithoutConsumed) context.Ignore("consumed_inputs");
  if (import != nullptr) {
    const int count = context.input_count();
    bool enough = count >= import->min_inputs && count <= import->max_inputs;
    for (int k = 0; k < import->min_inputs && enough; ++k) enough = context.Has(k);
    if (!enough)
      return InvalidInput(label, ": has ", count, " inputs, which does not fit the operator");
  }
  const absl::Status imported = import != nullptr ? import->import(context) : ImportDirect(context);
  if (!imported.ok())
    return imported.message().find("node '") == absl::string_view::npos ? Annotate(imported, label)
                                                                        : imported;
  const absl::Status attributes = context.CheckAttributes();
  if (!attributes.ok()) return Annotate(attributes, label);
  for (int k = 0; k < node.output_size(); ++k) {
    if (node.output(k).empty()) continue;
    const size_t output = static_cast<size_t>(k);
    NamedValue value{output < context.outputs().size() ? context.outputs()[output] : std::nullopt,
                     nullptr, ""};
    if (!value.value.has_value())
      value.missing = Cat("output ", k, " of ", label, ", which is not supported");
    const absl::Status defined = Define(node.output(k), std::move(value), scope);
    if (!defined.ok()) return Annotate(defined, label);
  }
  return absl::OkStatus();
}

const onnx::FunctionProto* Importer::FindFunction(const onnx::NodeProto& node) const {
  const auto found = functions_.find(FunctionKey(node.domain(), node.op_type(), node.overload()));
  return found == functions_.end() ? nullptr : found->second;
}

absl::Status Importer::CallFunction(const onnx::NodeProto& node,
                                    const onnx::FunctionProto& function,
                                    const std::vector<std::optional<ValueId>>& inputs, Scope& scope,
                                    const Frame& frame) {
  if (node.input_size() > function.input_size() || node.output_size() > function.output_size()) {
    return InvalidInput("has more inputs or outputs than function '", function.name(), "'");
  }
  std::map<std::string, const onnx::AttributeProto*> arguments;
  for (const onnx::AttributeProto& value : function.attribute_proto())
    arguments[value.name()] = &value;
  for (const onnx::AttributeProto& value : node.attribute()) {
    const bool known =
        arguments.count(value.name()) != 0 ||
        std::count(function.attribute().begin(), function.attribute().end(), value.name()) != 0;
    if (!known)
      return InvalidInput("function '", function.name(), "' has no attribute '", value.name(), "'");
    arguments[value.name()] = &value;
  }
  Frame body = frame;
  if (function.opset_import_size() > 0) {
    MENDEL_ASSIGN_OR_RETURN(const int64_t opset, StandardOpset(function.opset_import()));
    if (opset != 0) body.opset = opset;  // a function may use no standard operator at all
  }
  body.arguments = &arguments;
  const std::string& first = node.output_size() > 0 ? node.output(0) : node.name();
  body.prefix = Cat(frame.prefix, node.name().empty() ? first : node.name(), "/");
  body.relation_prefix = Cat(frame.relation_prefix, first, "/");
  body.depth = frame.depth + 1;
  Scope names;
  for (int k = 0; k < function.input_size(); ++k) {
    const bool given =
        static_cast<size_t>(k) < inputs.size() && inputs[static_cast<size_t>(k)].has_value();
    NamedValue value{given ? inputs[static_cast<size_t>(k)] : std::nullopt, nullptr, "", !given};
    MENDEL_RETURN_IF_ERROR(Define(function.input(k), std::move(value), names));
  }
  std::set<std::string> wanted;
  for (int k = 0; k < node.output_size(); ++k) {
    if (!node.output(k).empty()) wanted.insert(function.output(k));
  }
  MENDEL_RETURN_IF_ERROR(
      ImportNodes(function.node(), NeededNodes(function.node(), wanted), names, body));
  for (int k = 0; k < node.output_size(); ++k) {
    if (node.output(k).empty()) continue;
    MENDEL_ASSIGN_OR_RETURN(const ValueId value, Read(function.output(k), names, body));
    MENDEL_RETURN_IF_ERROR(Define(node.output(k), {value, nullptr, ""}, scope));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ValueId>> Importer::ImportBranch(const onnx::GraphProto& graph,
                                                            Scope& scope, const Frame& frame,
                                                            std::string relation_prefix) {
  if (graph.input_size() > 0) return InvalidInput("a branch may not have inputs");
  Scope inner;
  inner.outer = &scope;
  Frame body = frame;
  body.depth = frame.depth + 1;
  body.relation_prefix = std::move(relation_prefix);
  MENDEL_RETURN_IF_ERROR(DeclareInitializers(graph, inner));
  return ImportOutputs(graph, inner, body);
}

absl::StatusOr<std::vector<ValueId>> Importer::ImportOutputs(const onnx::GraphProto& graph,
                                                             Scope& inner, const Frame& body) {
  std::set<std::string> wanted;
  for (const onnx::ValueInfoProto& output : graph.output()) wanted.insert(output.name());
  MENDEL_RETURN_IF_ERROR(ImportNodes(graph.node(), NeededNodes(graph.node(), wanted), inner, body));
  std::vector<ValueId> outputs;
  for (const onnx::ValueInfoProto& output : graph.output()) {
    MENDEL_ASSIGN_OR_RETURN(const ValueId value, Read(output.name(), inner, body));
    outputs.push_back(value);
  }
  return outputs;
}

}  // namespace mendel
