#include "kernels/cuda/backend/partition.h"

#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/status.h"
#include "graph/rewrite.h"
#include "kernels/cuda/backend/horizontal_fusion.h"

namespace mendel::cuda {
namespace {

Partition WithoutCalls(const Graph& graph) {
  Partition partition{graph, ConstantExpressions(graph), {}, {}, {}, {}};
  partition.plan = PlanCorrections(graph, partition.constant);
  partition.elsewhere = partition.constant;
  for (const PlannedCorrection& correction : partition.plan.corrections) {
    partition.elsewhere[static_cast<size_t>(correction.patch)] = true;
  }
  for (size_t id = 0; id < partition.plan.unused.size(); ++id) {
    partition.elsewhere[id] = partition.elsewhere[id] || partition.plan.unused[id];
  }
  return partition;
}

}  // namespace

absl::StatusOr<std::vector<FusionGroup>> Partition::Groups() const {
  // Operands of calls lie in memory, whoever else reads them. Views may stand between an operand
  // and the call's nodes.
  std::set<ValueId> stored = plan.stored;
  for (const LibraryGroup& call : calls) {
    for (const auto* operands : {&call.operands, &call.finish.operands}) {
      for (const KernelOperand& operand : *operands) {
        if (operand.value.node >= 0 && !constant[static_cast<size_t>(operand.value.node)])
          stored.insert(operand.value);
      }
    }
  }
  return GroupsOf(graph, elsewhere, {plan.unused, std::move(stored)});
}

absl::StatusOr<Partition> PartitionOf(const Graph& graph, std::map<int32_t, std::string> algorithms,
                                      Numerics numerics,
                                      std::span<const CallLibrary* const> libraries,
                                      const EnginesByNode& engines) {
  MENDEL_ASSIGN_OR_RETURN(std::set<int32_t> horizontal_fusion,
                          TakeHorizontalFusion(graph, algorithms));
  Partition partition = WithoutCalls(graph);
  MENDEL_ASSIGN_OR_RETURN(
      partition.calls, FindLibraryGroups(graph, partition.constant, algorithms, numerics, libraries,
                                         partition.elsewhere, engines));
  if (HaveForms(partition.calls)) {
    MENDEL_ASSIGN_OR_RETURN(FormedGraph formed, WithMemoryFormats(graph, std::move(partition.calls),
                                                                  partition.elsewhere));
    partition = WithoutCalls(formed.graph);
    partition.calls = std::move(formed.calls);
    partition.origins = std::move(formed.origins);
    for (const LibraryGroup& call : partition.calls) {
      for (const int32_t member : call.nodes)
        partition.elsewhere[static_cast<size_t>(member)] = true;
    }
  }
  partition.horizontal_fusion = std::move(horizontal_fusion);
  return partition;
}

absl::Status CheckDevice(const EnginesByNode& engines, const std::string& device) {
  for (const auto& [node, engine] : engines) {
    if (engine.device == device) continue;
    return InvalidInput("the plan's engine of node ", node, " was made for '", engine.device,
                        "', and this device is '", device,
                        "'; optimize the model here, or run with --retune");
  }
  return absl::OkStatus();
}

EnginesByNode EnginesOf(const Partition& partition, const std::string& device) {
  EnginesByNode engines;
  for (const LibraryGroup& call : partition.calls) {
    if (!call.engine.has_value()) continue;
    StoredEngine& engine = engines[partition.OriginOf(call.node).node] = *call.engine;
    engine.device = device;
  }
  return engines;
}

}  // namespace mendel::cuda
