// Bodies of loops: graphs of their own, with what no step changes computed around them.

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/status.h"
#include "onnx/importer.h"

namespace mendel {
namespace {

using Outer = std::map<int32_t, ValueId>;

/// Copies a body without the nodes that depend on values around it alone: those go around it.
class Hoist {
 public:
  /// `stepped`: inputs that steps change. `outer`: the values that the others stand for.
  Hoist(const Graph& body, size_t stepped, const Outer& outer, GraphBuilder& around)
      : body_(body), around_(around), outer_(body.nodes().size()), inner_(body.nodes().size()) {
    for (size_t k = 0; k < stepped; ++k) {
      const size_t id = static_cast<size_t>(body.inputs()[k]);
      inner_[id] = {result_.Input(Cat("x", k), body.nodes()[id].outputs[0])};
    }
    for (const auto& [id, value] : outer) outer_[static_cast<size_t>(id)] = {value};
  }

  absl::StatusOr<ImportedBody> Run() {
    for (size_t i = 0; i < body_.nodes().size(); ++i) {
      if (!IsInput(body_.nodes()[i])) MENDEL_RETURN_IF_ERROR(Copy(i));
    }
    for (size_t k = 0; k < body_.outputs().size(); ++k)
      result_.Output(Cat("y", k), Inner(body_.outputs()[k].value));
    ImportedBody imported;
    MENDEL_ASSIGN_OR_RETURN(imported.body, result_.Build());
    imported.invariants = std::move(invariants_);
    return imported;
  }

 private:
  absl::Status Copy(size_t i) {
    const Node& node = body_.nodes()[i];
    const bool fixed = std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId value) {
      return !outer_[static_cast<size_t>(value.node)].empty();
    });
    std::vector<ValueId> inputs;
    for (const ValueId value : node.inputs) {
      inputs.push_back(
          fixed ? outer_[static_cast<size_t>(value.node)][static_cast<size_t>(value.output)]
                : Inner(value));
    }
    MENDEL_ASSIGN_OR_RETURN(const int32_t id,
                            (fixed ? around_ : result_).CopyNode(node, std::move(inputs)));
    for (size_t k = 0; k < node.outputs.size(); ++k)
      (fixed ? outer_ : inner_)[i].push_back({id, static_cast<int32_t>(k)});
    return absl::OkStatus();
  }

  /// The value in the new body: a literal of one element, or an input, for one around it.
  ValueId Inner(ValueId value) {
    std::vector<ValueId>& inner = inner_[static_cast<size_t>(value.node)];
    const std::vector<ValueId>& outer = outer_[static_cast<size_t>(value.node)];
    if (outer.empty()) return inner[static_cast<size_t>(value.output)];
    const ValueId around = outer[static_cast<size_t>(value.output)];
    const Node& node = around_.node(around.node);
    if (IsConstant(node) && SymbolName(node).empty() && ConstantValue(node).size() == 1)
      return result_.Constant(ConstantValue(node));
    const auto known = inputs_.find(around);
    if (known != inputs_.end()) return known->second;
    const ValueId input = result_.Input(Cat("invariant", invariants_.size()), around_.type(around));
    invariants_.push_back(around);
    return inputs_[around] = input;
  }

  const Graph& body_;
  GraphBuilder& around_;
  std::vector<std::vector<ValueId>> outer_;  ///< by node: its values around the loop, if it has any
  std::vector<std::vector<ValueId>> inner_;  ///< by node: its values in the new body
  GraphBuilder result_;
  std::map<ValueId, ValueId> inputs_;  ///< inputs of the new body, by value around it
  std::vector<ValueId> invariants_;
};

}  // namespace

absl::Status Importer::CaptureNames(const onnx::GraphProto& graph, Scope& scope, const Frame& frame,
                                    GraphBuilder& body, Scope& inner,
                                    std::map<ValueId, ValueId>& outer) {
  const auto capture = [&](const std::string& name, ValueId value) {
    const Node& node = builder_.node(value.node);
    // A literal decides shapes and axes; it stays one within the body.
    const bool literal = IsConstant(node) && SymbolName(node).empty();
    const ValueId within =
        literal ? body.Constant(ConstantValue(node)) : body.Input("", builder_.type(value));
    if (!literal) outer[within] = value;
    return Define(name, {within, nullptr, ""}, inner);
  };
  const auto exists = [&](const std::string& name) {
    const Scope* at = &scope;
    while (at != nullptr && at->values.count(name) == 0) at = at->outer;
    return at != nullptr;
  };
  for (const std::string& name : FreeNames(graph)) {
    if (!exists(name)) continue;  // a graph within the body defines it, or reading it is an error
    MENDEL_ASSIGN_OR_RETURN(const ValueId value, Read(name, scope, frame));
    MENDEL_RETURN_IF_ERROR(capture(name, value));
  }
  for (const onnx::TensorProto& proto : graph.initializer()) {
    auto tensor = Decode(proto);
    if (!tensor.ok()) return Annotate(tensor.status(), Cat("tensor '", proto.name(), "'"));
    MENDEL_ASSIGN_OR_RETURN(const ValueId value,
                            AddConstant(*std::move(tensor), frame.prefix + proto.name()));
    MENDEL_RETURN_IF_ERROR(capture(proto.name(), value));
  }
  return absl::OkStatus();
}

absl::StatusOr<Importer::Step> Importer::ImportSteps(const onnx::GraphProto& graph, Scope& scope,
                                                     const Frame& frame, const std::string& name,
                                                     const std::string& relation_name) {
  auto initializers = std::make_shared<Scope>();
  initializers->outer = &scope;
  MENDEL_RETURN_IF_ERROR(DeclareInitializers(graph, *initializers));
  Frame within = frame;
  within.depth = frame.depth + 1;
  within.relation_prefix = Cat(relation_name, "/");
  within.in_step = true;
  int64_t number = 0;
  return Step([this, &graph, initializers, within, name, number](
                  std::vector<ValueId> inputs) mutable -> absl::StatusOr<std::vector<ValueId>> {
    if (graph.input_size() != static_cast<int>(inputs.size()))
      return InvalidInput("the body has ", graph.input_size(), " inputs, not ", inputs.size());
    Scope inner;
    inner.outer = initializers.get();
    for (size_t k = 0; k < inputs.size(); ++k) {
      MENDEL_RETURN_IF_ERROR(
          Define(graph.input(static_cast<int>(k)).name(), {inputs[k], nullptr, ""}, inner));
    }
    within.prefix = Cat(name, "/", number++, "/");
    return ImportOutputs(graph, inner, within);
  });
}

absl::StatusOr<ImportedBody> Importer::ImportBody(const onnx::GraphProto& graph,
                                                  const std::vector<TensorType>& inputs,
                                                  Scope& scope, const Frame& frame) {
  if (graph.input_size() != static_cast<int>(inputs.size()))
    return InvalidInput("the body has ", graph.input_size(), " inputs, not ", inputs.size());
  if (graph.sparse_initializer_size() > 0)
    return Unsupported("the body has a sparse tensor, which is not supported");
  GraphBuilder body;
  Scope inner;
  for (size_t k = 0; k < inputs.size(); ++k) {
    MENDEL_RETURN_IF_ERROR(Define(graph.input(static_cast<int>(k)).name(),
                                  {body.Input("", inputs[k]), nullptr, ""}, inner));
  }
  std::map<ValueId, ValueId> captured;
  MENDEL_RETURN_IF_ERROR(CaptureNames(graph, scope, frame, body, inner, captured));
  Frame within = frame;
  within.depth = frame.depth + 1;
  std::map<int32_t, std::vector<Tensor>> evaluated;
  std::swap(builder_, body);
  evaluated_.swap(evaluated);
  const absl::Status imported = [&]() -> absl::Status {
    std::set<std::string> wanted;
    for (const onnx::ValueInfoProto& output : graph.output()) wanted.insert(output.name());
    MENDEL_RETURN_IF_ERROR(
        ImportNodes(graph.node(), NeededNodes(graph.node(), wanted), inner, within));
    for (const onnx::ValueInfoProto& output : graph.output()) {
      MENDEL_ASSIGN_OR_RETURN(const ValueId value, Read(output.name(), inner, within));
      builder_.Output("", value);
    }
    return absl::OkStatus();
  }();
  evaluated_.swap(evaluated);
  std::swap(builder_, body);
  MENDEL_RETURN_IF_ERROR(imported);
  // Inputs keep their order, but not their numbers, when a graph is built.
  std::vector<ValueId> given;
  for (const auto& [value, around] : captured) given.push_back(around);
  MENDEL_ASSIGN_OR_RETURN(const Graph built, body.Build());
  Outer outer;
  for (size_t k = 0; k < given.size(); ++k) outer[built.inputs()[inputs.size() + k]] = given[k];
  return Hoist(built, inputs.size(), outer, builder_).Run();
}

}  // namespace mendel
