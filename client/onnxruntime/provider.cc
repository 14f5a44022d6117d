#include "client/onnxruntime/provider.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "client/onnxruntime/capability.h"
#include "client/onnxruntime/compute.h"
#include "client/onnxruntime/context_node.h"
#include "client/onnxruntime/graph_view.h"
#include "client/onnxruntime/part_model.h"
#include "client/onnxruntime/part_runner.h"

namespace mendel::ort {
namespace {

struct Provider : Ep {
  const RuntimeApi* api = nullptr;
  Settings settings;
  const Logger* logger = nullptr;
  bool leaves_nodes = false;  ///< ONNX Runtime's own nodes run between the parts
};

absl::Status Fuse(const RuntimeApi& api, GraphSupport* support, const GraphView& view,
                  const Part& part) {
  std::vector<const Node*> nodes;
  for (const int n : part) nodes.push_back(view.nodes[static_cast<size_t>(n)].handle);
  const FusionOptions options;
  return api.Take(kAddNodesToFuse(api.ep(), support, nodes.data(), nodes.size(), &options));
}

absl::Status TakeNodes(Provider& provider, const Graph* graph, GraphSupport* support) {
  const RuntimeApi& api = *provider.api;
  MENDEL_ASSIGN_OR_RETURN(const GraphView view, ReadGraph(api, graph));
  size_t taken = 0;
  for (size_t n = 0; n < view.nodes.size(); ++n) {
    if (!IsContextNode(view.nodes[n])) continue;
    MENDEL_RETURN_IF_ERROR(Fuse(api, support, view, {static_cast<int>(n)}));
    ++taken;
  }
  const Capability capability = FindParts(view);
  for (const Part& part : capability.parts) {
    MENDEL_RETURN_IF_ERROR(Fuse(api, support, view, part));
    taken += part.size();
  }
  if (taken < view.nodes.size()) provider.leaves_nodes = true;
  api.Log(provider.logger, kLogInfo,
          Cat("Mendel takes ", taken, " of ", view.nodes.size(), " nodes in ",
              capability.parts.size(), " parts"));
  for (const auto& [n, why] : capability.refused) {
    const onnx::NodeProto& node = view.nodes[static_cast<size_t>(n)].proto;
    api.Log(provider.logger, kLogInfo,
            Cat("Mendel leaves '", node.name(), "' (", node.op_type(), "): ", why));
  }
  return absl::OkStatus();
}

/// A part with the names of its inputs and outputs in the session's graph.
struct NamedPart {
  ContextBlob blob;
  NodeInterface interface;
};

absl::StatusOr<NamedPart> ReadPart(const RuntimeApi& api, const Graph* graph,
                                   const NodeInterface& fused, const std::string& model_path) {
  MENDEL_ASSIGN_OR_RETURN(const GraphView view, ReadGraph(api, graph));
  NamedPart named;
  if (view.nodes.size() == 1 && IsContextNode(view.nodes[0])) {
    MENDEL_ASSIGN_OR_RETURN(named.blob, ReadContext(view.nodes[0], model_path));
    named.interface = fused;
    return named;
  }
  Part part;
  for (size_t n = 0; n < view.nodes.size(); ++n) part.push_back(static_cast<int>(n));
  Boundary boundary = BoundaryOf(view, part);
  // The order of the fused node, which an EPContext node keeps.
  std::map<std::string, int> inputs, outputs;
  for (const int value : boundary.inputs)
    inputs[view.values[static_cast<size_t>(value)].name] = value;
  for (const int value : view.outputs)
    outputs[view.values[static_cast<size_t>(value)].name] = value;
  boundary = {};
  for (const std::string& name : fused.inputs) {
    if (!inputs.contains(name)) return InternalError("the part has no input '", name, "'");
    boundary.inputs.push_back(inputs[name]);
  }
  if (inputs.size() != fused.inputs.size())
    return InternalError("the part reads ", inputs.size(), " values and has ", fused.inputs.size());
  for (const std::string& name : fused.outputs) {
    if (!outputs.contains(name)) return InternalError("the part has no output '", name, "'");
    boundary.outputs.push_back(outputs[name]);
  }
  named.interface = fused;
  MENDEL_ASSIGN_OR_RETURN(named.blob.model, PartModel(view, part, boundary, Constants::kAll));
  return named;
}

absl::StatusOr<ComputeInfo*> CompilePart(const Provider& provider, const Graph* graph,
                                         const Node* fused_node, Node** context_node) {
  const RuntimeApi& api = *provider.api;
  MENDEL_ASSIGN_OR_RETURN(const NodeInterface fused, ReadInterface(api, fused_node));
  MENDEL_ASSIGN_OR_RETURN(const char* const path, api.Get<const char*>(kGraphModelPath, graph));
  const std::string model_path = path == nullptr ? "" : path;
  MENDEL_ASSIGN_OR_RETURN(NamedPart part, ReadPart(api, graph, fused, model_path));
  Wiring wiring;
  for (size_t k = 0; k < fused.inputs.size(); ++k) wiring.inputs.push_back(k);
  for (size_t k = 0; k < fused.outputs.size(); ++k) wiring.outputs.push_back(k);
  const Logger* const logger = provider.logger;
  auto runner = std::make_unique<PartRunner>(
      api, std::move(part.blob), provider.settings,
      [&api, logger](const std::string& line) { api.Log(logger, kLogWarning, "Mendel: " + line); });
  if (provider.settings.write_context) {
    MENDEL_ASSIGN_OR_RETURN(const ContextBlob compiled, runner->Compiled());
    MENDEL_ASSIGN_OR_RETURN(const char* const name, api.Get<const char*>(kNodeName, fused_node));
    MENDEL_ASSIGN_OR_RETURN(
        *context_node, WriteContext(api, compiled, name, fused, provider.settings, model_path));
  }
  const bool park = provider.leaves_nodes && provider.settings.pool_spins;
  return NewCompute(api, std::move(runner), std::move(wiring), park);
}

Status* Compile(Ep* self, const Graph** graphs, const Node** fused_nodes, size_t count,
                ComputeInfo** infos, Node** context_nodes) {
  const auto& provider = *static_cast<const Provider*>(self);
  for (size_t k = 0; k < count; ++k) {
    const auto info = CompilePart(provider, graphs[k], fused_nodes[k],
                                  context_nodes == nullptr ? nullptr : &context_nodes[k]);
    if (!info.ok()) return provider.api->Give(info.status());
    infos[k] = *info;
  }
  return nullptr;
}

}  // namespace

Ep* NewProvider(const RuntimeApi& api, Settings settings, const Logger* logger) {
  auto provider = std::make_unique<Provider>();
  provider->api = &api;
  provider->settings = std::move(settings);
  provider->logger = logger;
  provider->get_name = [](const Ep*) { return static_cast<const char*>(kProviderName); };
  provider->get_capability = [](Ep* self, const Graph* graph, GraphSupport* support) {
    auto& own = *static_cast<Provider*>(self);
    return own.api->Give(TakeNodes(own, graph, support));
  };
  provider->compile = Compile;
  provider->release_compute_infos = [](Ep*, ComputeInfo** infos, size_t count) {
    for (size_t k = 0; k < count; ++k) FreeCompute(infos[k]);
  };
  return provider.release();
}

void FreeProvider(Ep* ep) { delete static_cast<Provider*>(ep); }

}  // namespace mendel::ort
