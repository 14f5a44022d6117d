#include "client/onnxruntime/graph_view.h"

#include <map>

#include "client/onnxruntime/attributes.h"
#include "client/onnxruntime/tensor_facts.h"

namespace mendel::ort {
namespace {

/// First version that separates a scalar from a tensor without a known shape.
inline constexpr int kHasShapeMinor = 24;
inline constexpr Member<390, bool(const TensorInfo*)> kHasShape;

class Reader {
 public:
  explicit Reader(const RuntimeApi& api) : api_(api) {}

  absl::StatusOr<GraphView> Read(const Graph* graph) {
    MENDEL_RETURN_IF_ERROR(ReadVersions(graph));
    MENDEL_ASSIGN_OR_RETURN(const auto nodes, api_.List<Node>(kGraphNumNodes, kGraphNodes, graph));
    for (const Node* node : nodes) MENDEL_RETURN_IF_ERROR(ReadNode(node));
    MENDEL_ASSIGN_OR_RETURN(const auto outputs,
                            api_.List<ValueInfo>(kGraphNumOutputs, kGraphOutputs, graph));
    MENDEL_ASSIGN_OR_RETURN(view_.outputs, Numbers(outputs));
    for (const int output : view_.outputs)
      if (output >= 0) view_.values[static_cast<size_t>(output)].graph_output = true;
    return std::move(view_);
  }

 private:
  absl::Status ReadVersions(const Graph* graph) {
    MENDEL_ASSIGN_OR_RETURN(view_.ir_version, api_.Get<int64_t>(kGraphIrVersion, graph));
    MENDEL_ASSIGN_OR_RETURN(const size_t count, api_.Get<size_t>(kGraphNumOperatorSets, graph));
    std::vector<const char*> domains(count);
    std::vector<int64_t> versions(count);
    MENDEL_RETURN_IF_ERROR(
        api_.Take(kGraphOperatorSets(api_.main(), graph, domains.data(), versions.data(), count)));
    for (size_t k = 0; k < count; ++k) view_.operator_sets.emplace_back(domains[k], versions[k]);
    return absl::OkStatus();
  }

  absl::Status ReadNode(const Node* node) {
    ViewNode read;
    read.handle = node;
    MENDEL_ASSIGN_OR_RETURN(const char* const name, api_.Get<const char*>(kNodeName, node));
    MENDEL_ASSIGN_OR_RETURN(const char* const type, api_.Get<const char*>(kNodeOperator, node));
    MENDEL_ASSIGN_OR_RETURN(const char* const domain, api_.Get<const char*>(kNodeDomain, node));
    read.proto.set_name(name);
    read.proto.set_op_type(type);
    read.proto.set_domain(domain);
    MENDEL_ASSIGN_OR_RETURN(const size_t graphs, api_.Get<size_t>(kNodeNumSubgraphs, node));
    read.subgraphs = graphs > 0;
    MENDEL_ASSIGN_OR_RETURN(const auto inputs,
                            api_.List<ValueInfo>(kNodeNumInputs, kNodeInputs, node));
    MENDEL_ASSIGN_OR_RETURN(const auto outputs,
                            api_.List<ValueInfo>(kNodeNumOutputs, kNodeOutputs, node));
    MENDEL_ASSIGN_OR_RETURN(const auto implicit, api_.List<ValueInfo>(kNodeNumImplicitInputs,
                                                                      kNodeImplicitInputs, node));
    MENDEL_ASSIGN_OR_RETURN(read.inputs, Numbers(inputs));
    MENDEL_ASSIGN_OR_RETURN(read.outputs, Numbers(outputs));
    MENDEL_ASSIGN_OR_RETURN(read.implicit, Numbers(implicit));
    MENDEL_RETURN_IF_ERROR(ReadAttributes(api_, node, read.proto));
    view_.nodes.push_back(std::move(read));
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<int>> Numbers(const std::vector<const ValueInfo*>& infos) {
    std::vector<int> numbers;
    for (const ValueInfo* info : infos) {
      MENDEL_ASSIGN_OR_RETURN(const int number, Number(info));
      numbers.push_back(number);
    }
    return numbers;
  }

  absl::StatusOr<int> Number(const ValueInfo* info) {
    if (info == nullptr) return -1;
    MENDEL_ASSIGN_OR_RETURN(const char* const name, api_.Get<const char*>(kGetValueInfoName, info));
    if (*name == '\0') return -1;
    const auto [at, added] = numbers_.try_emplace(name, static_cast<int>(view_.values.size()));
    if (added) {
      ViewValue value;
      value.name = name;
      MENDEL_RETURN_IF_ERROR(ReadType(info, value));
      MENDEL_RETURN_IF_ERROR(ReadConstant(info, value));
      view_.values.push_back(std::move(value));
    }
    return at->second;
  }

  absl::Status ReadType(const ValueInfo* info, ViewValue& value) {
    MENDEL_ASSIGN_OR_RETURN(const TypeInfo* const type,
                            api_.Get<const TypeInfo*>(kGetValueInfoTypeInfo, info));
    if (type == nullptr) return absl::OkStatus();
    MENDEL_ASSIGN_OR_RETURN(const TensorInfo* const tensor,
                            api_.Get<const TensorInfo*>(kCastTypeInfoToTensorInfo, type));
    if (tensor == nullptr) return absl::OkStatus();
    MENDEL_ASSIGN_OR_RETURN(value.type, api_.Get<int>(kGetTensorElementType, tensor));
    MENDEL_ASSIGN_OR_RETURN(const size_t rank, api_.Get<size_t>(kGetDimensionsCount, tensor));
    value.has_shape =
        rank > 0 || (api_.minor() >= kHasShapeMinor && kHasShape(api_.main(), tensor));
    if (rank == 0) return absl::OkStatus();
    value.shape.resize(rank);
    std::vector<const char*> symbols(rank);
    MENDEL_RETURN_IF_ERROR(
        api_.Take(kGetDimensions(api_.main(), tensor, value.shape.data(), rank)));
    MENDEL_RETURN_IF_ERROR(
        api_.Take(kGetSymbolicDimensions(api_.main(), tensor, symbols.data(), rank)));
    for (const char* symbol : symbols) value.symbols.emplace_back(symbol == nullptr ? "" : symbol);
    return absl::OkStatus();
  }

  absl::Status ReadConstant(const ValueInfo* info, ViewValue& value) {
    MENDEL_ASSIGN_OR_RETURN(value.constant, api_.Get<bool>(kIsConstantInitializer, info));
    if (!value.constant) return absl::OkStatus();
    MENDEL_ASSIGN_OR_RETURN(const Value* const data,
                            api_.Get<const Value*>(kGetInitializerValue, info));
    value.constant = data != nullptr && KnownType(value.type);
    if (!value.constant) return absl::OkStatus();
    MENDEL_ASSIGN_OR_RETURN(const TensorFacts facts, FactsOf(api_, data));
    value.has_shape = true;
    value.shape = facts.shape;
    value.symbols.assign(facts.shape.size(), "");
    MENDEL_ASSIGN_OR_RETURN(value.data, BytesOf(api_, data));
    return absl::OkStatus();
  }

  const RuntimeApi& api_;
  GraphView view_;
  std::map<std::string, int> numbers_;
};

absl::StatusOr<std::vector<std::string>> Names(const RuntimeApi& api,
                                               const std::vector<const ValueInfo*>& infos) {
  std::vector<std::string> names;
  for (const ValueInfo* info : infos) {
    const char* name = "";
    if (info != nullptr) {
      MENDEL_ASSIGN_OR_RETURN(name, api.Get<const char*>(kGetValueInfoName, info));
    }
    names.emplace_back(name);
  }
  return names;
}

}  // namespace

absl::StatusOr<GraphView> ReadGraph(const RuntimeApi& api, const Graph* graph) {
  return Reader(api).Read(graph);
}

absl::StatusOr<NodeInterface> ReadInterface(const RuntimeApi& api, const Node* node) {
  NodeInterface interface;
  MENDEL_ASSIGN_OR_RETURN(const auto inputs,
                          api.List<ValueInfo>(kNodeNumInputs, kNodeInputs, node));
  MENDEL_ASSIGN_OR_RETURN(const auto outputs,
                          api.List<ValueInfo>(kNodeNumOutputs, kNodeOutputs, node));
  MENDEL_ASSIGN_OR_RETURN(interface.inputs, Names(api, inputs));
  MENDEL_ASSIGN_OR_RETURN(interface.outputs, Names(api, outputs));
  return interface;
}

}  // namespace mendel::ort
