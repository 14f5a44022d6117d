#include "kernels/cuda/backend/launch_graph.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "kernels/cuda/backend/corrected_copy.h"
#include "kernels/cuda/backend/correction_launch.h"
#include "kernels/cuda/backend/horizontal_fusion.h"
#include "kernels/cuda/fusion/fused_kernel.h"
#include "kernels/cuda/fusion/grouping.h"
#include "kernels/cuda/fusion/side_by_side.h"

namespace mendel::cuda {
namespace {

class LaunchGraphBuilder {
 public:
  LaunchGraphBuilder(const Partition& partition, FoldedValues& folded)
      : graph_(partition.graph), partition_(partition), folded_(folded) {}

  absl::StatusOr<LaunchGraph> Run() {
    MENDEL_ASSIGN_OR_RETURN(const std::vector<FusionGroup> groups, partition_.Groups());
    auto call = partition_.calls.begin();
    for (const FusionGroup& group : groups) {
      for (; call != partition_.calls.end() && call->result < group.result; ++call)
        MENDEL_RETURN_IF_ERROR(AddCall(*call));
      MENDEL_RETURN_IF_ERROR(AddCorrectionsBefore(group.result.node));
      if (const PlannedCorrection* const over = CorrectionOver(partition_, group);
          over != nullptr) {
        copies_[over->patch] = &group;
        continue;
      }
      MENDEL_RETURN_IF_ERROR(AddLaunch(group));
    }
    for (; call != partition_.calls.end(); ++call) MENDEL_RETURN_IF_ERROR(AddCall(*call));
    MENDEL_RETURN_IF_ERROR(AddCorrectionsBefore(static_cast<int32_t>(graph_.nodes().size())));
    MENDEL_RETURN_IF_ERROR(JoinKernels());
    return std::move(launch_graph_);
  }

 private:
  /// Adds the corrections of nodes before this one that are still missing.
  absl::Status AddCorrectionsBefore(int32_t node) {
    for (; corrected_ < partition_.plan.corrections.size() &&
           partition_.plan.corrections[corrected_].patch < node;
         ++corrected_) {
      const PlannedCorrection& correction = partition_.plan.corrections[corrected_];
      if (correction.in_place)
        launch_graph_.homes[correction.result()] = launch_graph_.Home(correction.base);
      if (const int64_t bytes = ScratchBytes(graph_, correction); bytes > 0)
        launch_graph_.scratch[ScratchOf(correction)] = bytes;
      const auto copied = copies_.find(correction.patch);
      const FusionGroup* const copy = copied == copies_.end() ? nullptr : copied->second;
      MENDEL_ASSIGN_OR_RETURN(
          auto launches,
          LaunchesOf(
              graph_, correction, [&](ValueId value) { return folded_.Of(value); }, copy));
      for (CorrectionLaunch& launch : launches) launch.info.nodes = OriginsOf(launch.info.nodes);
      if (copy != nullptr)
        AddStep(StepOf(copy->result.node, copy->result.node, copy->nodes, " with the copy"),
                launches.back().info);
      for (CorrectionLaunch& launch : launches) {
        Add({.kernel = std::move(launch.kernel),
             .shape = launch.shape,
             .info = std::move(launch.info)},
            std::move(launch.operands), launch.result, std::move(launch.text));
      }
    }
    return absl::OkStatus();
  }

  /// Adds `step` to the launch of `info`.
  static void AddStep(const Step& step, Step& info) {
    info.kernel += step.kernel;
    info.flops += step.flops;
    info.nodes.insert(info.nodes.end(), step.nodes.begin(), step.nodes.end());
  }

  absl::Status AddLaunch(const FusionGroup& group) {
    MENDEL_ASSIGN_OR_RETURN(FusedKernel kernel, WriteKernel(graph_, group));
    const std::string description =
        Cat(kernel.kind, group.nodes.size() > 1 ? Cat("_of_", group.nodes.size()) : "",
            kernel.lanes > 1 ? Cat("_by_", kernel.lanes) : "");
    Add({.kernel = kernel.name,
         .shape = kernel.launch,
         .info = StepOf(group.row >= 0 ? group.row : group.result.node, group.result.node,
                        group.nodes, description)},
        std::move(kernel.operands), group.result, std::move(kernel.text));
    const NodeOrigin origin = OriginOf(group.result.node);
    if (!origin.conversion && partition_.horizontal_fusion.count(origin.node) > 0 &&
        MayFuseHorizontally(graph_, group))
      launch_graph_.launches.back().horizontal_fusion = group;
    return absl::OkStatus();
  }

  absl::Status AddCall(const LibraryGroup& group) {
    MENDEL_RETURN_IF_ERROR(AddCorrectionsBefore(group.result.node));
    Step step = StepOf(group.node, group.result.node, group.nodes,
                       group.call == nullptr ? Cat(group.algorithm, "_of_", group.nodes.size())
                                             : group.call->name());
    std::stable_partition(step.nodes.begin(), step.nodes.end(),
                          [&](int32_t id) { return id == OriginOf(group.node).node; });
    if (group.scratch_bytes > 0) return AddDividedSums(group, std::move(step));
    if (group.call == nullptr) {
      const FusedKernel& kernel = group.kernel;
      Add({.kernel = kernel.name, .shape = kernel.launch, .info = std::move(step)}, group.operands,
          group.result, kernel.text);
      return absl::OkStatus();
    }
    Add({.call = group.call, .info = std::move(step)}, group.operands, group.result);
    const FusedKernel& finish = group.finish;
    if (finish.name.empty()) return absl::OkStatus();
    Step info = launch_graph_.launches.back().launch.info;
    info.kernel = "epilogue in place";
    info.flops = 0;  // the call's step has them
    Add({.kernel = finish.name, .shape = finish.launch, .info = std::move(info)}, finish.operands,
        group.result, finish.text);
    return absl::OkStatus();
  }

  /// Adds the kernel that sums parts, and the one that totals them.
  absl::Status AddDividedSums(const LibraryGroup& group, Step step) {
    const ValueId scratch{group.result.node,
                          static_cast<int32_t>(graph_.node(group.result.node).outputs.size())};
    launch_graph_.scratch[scratch] = group.scratch_bytes;
    Step total = step;
    total.kernel = "totals of divided sums";
    total.flops = 0;  // the sums' step has them
    Add({.kernel = group.kernel.name, .shape = group.kernel.launch, .info = std::move(step)},
        group.operands, scratch, group.kernel.text);
    std::vector<KernelOperand> operands = group.finish.operands;
    operands.push_back({scratch});
    Add({.kernel = group.finish.name, .shape = group.finish.launch, .info = std::move(total)},
        std::move(operands), group.result, group.finish.text);
    return absl::OkStatus();
  }

  /// Adds a launch. `text` is its kernel's.
  void Add(DeviceLaunch launch, std::vector<KernelOperand> operands, ValueId result,
           std::string text = "") {
    launch_graph_.launches.push_back(
        {std::move(launch), std::move(operands), {result}, std::move(text)});
  }

  /// Joins kernels that may be fused horizontally and have company.
  absl::Status JoinKernels() {
    if (partition_.horizontal_fusion.empty()) return absl::OkStatus();
    std::vector<ValueUse> uses;
    std::vector<size_t> pointers;
    for (const LaunchNode& node : launch_graph_.launches) {
      uses.push_back(launch_graph_.UseOf(node, partition_.constant));
      pointers.push_back(
          node.horizontal_fusion.has_value() ? node.operands.size() + node.results.size() : 0);
    }
    std::vector<LaunchNode> launches;
    for (const std::vector<size_t>& joined :
         JoinNodes(uses, pointers, {kMostFusedKernels, kMaxPointers})) {
      launches.push_back(std::move(launch_graph_.launches[joined[0]]));
      if (joined.size() > 1)
        MENDEL_RETURN_IF_ERROR(
            FuseHorizontally({joined.begin() + 1, joined.end()}, launches.back()));
    }
    launch_graph_.launches = std::move(launches);
    return absl::OkStatus();
  }

  /// Lets `launch` compute what `others` compute, too.
  absl::Status FuseHorizontally(const std::vector<size_t>& others, LaunchNode& launch) {
    std::vector<FusionGroup> groups = {*launch.horizontal_fusion};
    Step& info = launch.launch.info;
    for (const size_t k : others) {
      groups.push_back(*launch_graph_.launches[k].horizontal_fusion);
      launch.results.push_back(groups.back().result);
      const Step& other = launch_graph_.launches[k].launch.info;
      info.flops += other.flops;
      for (const int32_t node : other.nodes) {
        if (std::find(info.nodes.begin(), info.nodes.end(), node) == info.nodes.end())
          info.nodes.push_back(node);
      }
    }
    info.kernel = Cat(kHorizontalFusion, "_of_", groups.size());
    for (const FusionGroup& group : groups) info.kernel += CopiedReported(group.nodes);
    MENDEL_ASSIGN_OR_RETURN(FusedKernel kernel, WriteSideBySide(graph_, groups));
    launch.launch.kernel = std::move(kernel.name);
    launch.launch.shape = kernel.launch;
    launch.operands = std::move(kernel.operands);
    launch.text = std::move(kernel.text);
    return absl::OkStatus();
  }

  /// Reports which of the nodes have boxes that no emitted correction computes, and why.
  std::string CopiedReported(const std::set<int32_t>& nodes) const {
    std::string description;
    for (const int32_t node : nodes) {
      const auto refused = partition_.plan.refused.find(node);
      if (refused != partition_.plan.refused.end())
        description += Cat("; boxes copied (", refused->second, ")");
    }
    return description;
  }

  NodeOrigin OriginOf(int32_t id) const { return partition_.OriginOf(id); }

  /// The nodes' numbers in the graph that is lowered, without conversions.
  std::vector<int32_t> OriginsOf(const std::vector<int32_t>& nodes) const {
    std::vector<int32_t> origins;
    for (const int32_t id : nodes) {
      if (!OriginOf(id).conversion) origins.push_back(OriginOf(id).node);
    }
    return origins;
  }

  /// `id`: the node that gives the step its name, or the operator where it has none. Nodes are
  /// those of the graph that is lowered; conversions are none.
  Step StepOf(int32_t id, int32_t result, const std::set<int32_t>& nodes,
              std::string kernel) const {
    const Node& node = graph_.node(id);
    Step step;
    step.name = node.name.empty() ? Cat(node.op->name, " ", OriginOf(result).node) : node.name;
    step.kernel = std::move(kernel) + CopiedReported(nodes);
    std::set<int32_t> asking;
    for (int32_t member : nodes) {
      if (const NodeOrigin origin = OriginOf(member); origin.conversion) {
        asking.insert(origin.requested_by.begin(), origin.requested_by.end());
        continue;
      }
      step.nodes.push_back(OriginOf(member).node);
      step.flops += WithView(graph_, member, [&](const NodeView& view) {
        return CostOf(*graph_.node(member).op, view).flops;
      });
    }
    if (step.nodes.empty()) step.requested_by.assign(asking.begin(), asking.end());
    return step;
  }

  const Graph& graph_;
  const Partition& partition_;
  FoldedValues& folded_;
  size_t corrected_ = 0;                          // of the plan's corrections
  std::map<int32_t, const FusionGroup*> copies_;  // that corrections take along, by their Patch
  LaunchGraph launch_graph_;
};

}  // namespace

ValueUse LaunchGraph::UseOf(const LaunchNode& launch, const std::vector<bool>& constant) const {
  ValueUse use;
  for (const KernelOperand& operand : launch.operands) {
    if (operand.value.node >= 0 && !constant[static_cast<size_t>(operand.value.node)])
      use.reads.insert(Home(operand.value));
  }
  for (const ValueId result : launch.results) use.writes.insert(Home(result));
  return use;
}

absl::StatusOr<LaunchGraph> BuildLaunchGraph(const Partition& partition, FoldedValues& folded) {
  return LaunchGraphBuilder(partition, folded).Run();
}

}  // namespace mendel::cuda
