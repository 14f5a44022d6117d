#include "kernels/cuda/backend/outline.h"

#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/status.h"
#include "graph/rewrite.h"
#include "kernels/cuda/backend/beside.h"

namespace mendel::cuda {
namespace {

Outline WithoutCalls(const Graph& graph) {
  Outline outline{graph, ConstantExpressions(graph), {}, {}, {}, {}};
  outline.plan = PlanCorrections(graph, outline.constant);
  outline.elsewhere = outline.constant;
  for (const PlannedCorrection& correction : outline.plan.corrections) {
    outline.elsewhere[static_cast<size_t>(correction.patch)] = true;
  }
  for (size_t id = 0; id < outline.plan.unused.size(); ++id) {
    outline.elsewhere[id] = outline.elsewhere[id] || outline.plan.unused[id];
  }
  return outline;
}

}  // namespace

absl::StatusOr<std::vector<FusionGroup>> Outline::Groups() const {
  // What a call reads lies in memory whoever else reads it: it may be no input of any of its nodes, through views.
  std::set<ValueId> stored = plan.stored;
  for (const LibraryGroup& call : calls) {
    for (const auto* operands : {&call.operands, &call.finish.operands}) {
      for (const KernelOperand& operand : *operands) {
        if (operand.value.node >= 0 && !constant[static_cast<size_t>(operand.value.node)]) stored.insert(operand.value);
      }
    }
  }
  return GroupsOf(graph, elsewhere, {plan.unused, std::move(stored)});
}

absl::StatusOr<Outline> OutlineOf(const Graph& graph, std::map<int32_t, std::string> algorithms, Numerics numerics,
                                  std::span<const CallLibrary* const> libraries, const EnginesByNode& engines) {
  MENDEL_ASSIGN_OR_RETURN(std::set<int32_t> beside, TakeBeside(graph, algorithms));
  Outline outline = WithoutCalls(graph);
  MENDEL_ASSIGN_OR_RETURN(outline.calls,
                          FindLibraryGroups(graph, outline.constant, algorithms, numerics, libraries, outline.elsewhere, engines));
  if (HaveForms(outline.calls)) {
    MENDEL_ASSIGN_OR_RETURN(FormedGraph formed, WithStoredForms(graph, std::move(outline.calls), outline.elsewhere));
    outline = WithoutCalls(formed.graph);
    outline.calls = std::move(formed.calls);
    outline.origins = std::move(formed.origins);
    for (const LibraryGroup& call : outline.calls) {
      for (const int32_t member : call.nodes) outline.elsewhere[static_cast<size_t>(member)] = true;
    }
  }
  outline.beside = std::move(beside);
  return outline;
}

absl::Status CheckDevice(const EnginesByNode& engines, const std::string& device) {
  for (const auto& [node, engine] : engines) {
    if (engine.device == device) continue;
    return InvalidInput("the plan's engine of node ", node, " was made for '", engine.device, "', and this device is '", device,
                        "'; optimize the model here, or run with --retune");
  }
  return absl::OkStatus();
}

EnginesByNode EnginesOf(const Outline& outline, const std::string& device) {
  EnginesByNode engines;
  for (const LibraryGroup& call : outline.calls) {
    if (!call.engine.has_value()) continue;
    StoredEngine& engine = engines[outline.OriginOf(call.node).node] = *call.engine;
    engine.device = device;
  }
  return engines;
}

}  // namespace mendel::cuda
