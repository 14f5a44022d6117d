#include "kernels/cuda/backend/program_draft.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "kernels/cuda/backend/beside.h"
#include "kernels/cuda/backend/correction_launch.h"
#include "kernels/cuda/backend/mended_copy.h"
#include "kernels/cuda/fusion/fused_kernel.h"
#include "kernels/cuda/fusion/grouping.h"
#include "kernels/cuda/fusion/side_by_side.h"

namespace mendel::cuda {
namespace {

class Drafting {
 public:
  Drafting(const Outline& outline, FoldedValues& folded) : graph_(outline.graph), outline_(outline), folded_(folded) {}

  absl::StatusOr<ProgramDraft> Run() {
    MENDEL_ASSIGN_OR_RETURN(const std::vector<FusionGroup> groups, outline_.Groups());
    auto call = outline_.calls.begin();
    for (const FusionGroup& group : groups) {
      for (; call != outline_.calls.end() && call->result < group.result; ++call) MENDEL_RETURN_IF_ERROR(AddCall(*call));
      MENDEL_RETURN_IF_ERROR(AddCorrectionsBefore(group.result.node));
      if (const PlannedCorrection* const over = CorrectionOver(outline_, group); over != nullptr) {
        copies_[over->patch] = &group;
        continue;
      }
      MENDEL_RETURN_IF_ERROR(AddLaunch(group));
    }
    for (; call != outline_.calls.end(); ++call) MENDEL_RETURN_IF_ERROR(AddCall(*call));
    MENDEL_RETURN_IF_ERROR(AddCorrectionsBefore(static_cast<int32_t>(graph_.nodes().size())));
    MENDEL_RETURN_IF_ERROR(JoinKernels());
    return std::move(draft_);
  }

 private:
  /// The corrections that have not been added yet, of nodes before this one.
  absl::Status AddCorrectionsBefore(int32_t node) {
    for (; corrected_ < outline_.plan.corrections.size() && outline_.plan.corrections[corrected_].patch < node; ++corrected_) {
      const PlannedCorrection& correction = outline_.plan.corrections[corrected_];
      if (correction.in_place) draft_.homes[correction.result()] = draft_.Home(correction.base);
      if (const int64_t bytes = ScratchBytes(graph_, correction); bytes > 0) draft_.scratch[ScratchOf(correction)] = bytes;
      const auto copied = copies_.find(correction.patch);
      const FusionGroup* const copy = copied == copies_.end() ? nullptr : copied->second;
      MENDEL_ASSIGN_OR_RETURN(auto launches, LaunchesOf(
                                                 graph_, correction, [&](ValueId value) { return folded_.Of(value); }, copy));
      for (CorrectionLaunch& launch : launches) launch.info.nodes = OriginsOf(launch.info.nodes);
      if (copy != nullptr)
        AddStep(StepOf(copy->result.node, copy->result.node, copy->nodes, " with the copy"), launches.back().info);
      for (CorrectionLaunch& launch : launches) {
        Add({.kernel = std::move(launch.kernel), .shape = launch.shape, .info = std::move(launch.info)}, std::move(launch.operands),
            launch.result, std::move(launch.text));
      }
    }
    return absl::OkStatus();
  }

  /// `step` is done by the launch of `info`.
  static void AddStep(const Step& step, Step& info) {
    info.kernel += step.kernel;
    info.flops += step.flops;
    info.nodes.insert(info.nodes.end(), step.nodes.begin(), step.nodes.end());
  }

  absl::Status AddLaunch(const FusionGroup& group) {
    MENDEL_ASSIGN_OR_RETURN(FusedKernel kernel, WriteKernel(graph_, group));
    const std::string told = Cat(kernel.kind, group.nodes.size() > 1 ? Cat("_of_", group.nodes.size()) : "",
                                 kernel.lanes > 1 ? Cat("_by_", kernel.lanes) : "");
    Add({.kernel = kernel.name,
         .shape = kernel.launch,
         .info = StepOf(group.row >= 0 ? group.row : group.result.node, group.result.node, group.nodes, told)},
        std::move(kernel.operands), group.result, std::move(kernel.text));
    const NodeOrigin origin = OriginOf(group.result.node);
    if (!origin.conversion && outline_.beside.count(origin.node) > 0 && MayStandBeside(graph_, group))
      draft_.launches.back().beside = group;
    return absl::OkStatus();
  }

  absl::Status AddCall(const LibraryGroup& group) {
    MENDEL_RETURN_IF_ERROR(AddCorrectionsBefore(group.result.node));
    Step step = StepOf(group.node, group.result.node, group.nodes,
                       group.call == nullptr ? Cat(group.algorithm, "_of_", group.nodes.size()) : group.call->name());
    std::stable_partition(step.nodes.begin(), step.nodes.end(), [&](int32_t id) { return id == OriginOf(group.node).node; });
    if (group.scratch_bytes > 0) return AddDividedSums(group, std::move(step));
    if (group.call == nullptr) {
      const FusedKernel& kernel = group.kernel;
      Add({.kernel = kernel.name, .shape = kernel.launch, .info = std::move(step)}, group.operands, group.result, kernel.text);
      return absl::OkStatus();
    }
    Add({.call = group.call, .info = std::move(step)}, group.operands, group.result);
    const FusedKernel& finish = group.finish;
    if (finish.name.empty()) return absl::OkStatus();
    Step info = draft_.launches.back().launch.info;
    info.kernel = "epilogue in place";
    info.flops = 0;  // the call's step has them
    Add({.kernel = finish.name, .shape = finish.launch, .info = std::move(info)}, finish.operands, group.result, finish.text);
    return absl::OkStatus();
  }

  /// The kernel that sums parts, and the one that totals them.
  absl::Status AddDividedSums(const LibraryGroup& group, Step step) {
    const ValueId scratch{group.result.node, static_cast<int32_t>(graph_.node(group.result.node).outputs.size())};
    draft_.scratch[scratch] = group.scratch_bytes;
    Step total = step;
    total.kernel = "totals of divided sums";
    total.flops = 0;  // the sums' step has them
    Add({.kernel = group.kernel.name, .shape = group.kernel.launch, .info = std::move(step)}, group.operands, scratch,
        group.kernel.text);
    std::vector<KernelOperand> operands = group.finish.operands;
    operands.push_back({scratch});
    Add({.kernel = group.finish.name, .shape = group.finish.launch, .info = std::move(total)}, std::move(operands), group.result,
        group.finish.text);
    return absl::OkStatus();
  }

  /// `text`: of a kernel.
  void Add(DeviceLaunch launch, std::vector<KernelOperand> operands, ValueId result, std::string text = "") {
    draft_.launches.push_back({std::move(launch), std::move(operands), {result}, std::move(text)});
  }

  /// Kernels that may stand beside others and have company become one.
  absl::Status JoinKernels() {
    if (outline_.beside.empty()) return absl::OkStatus();
    std::vector<ValueUse> uses;
    std::vector<size_t> pointers;
    for (const LaunchDraft& draft : draft_.launches) {
      uses.push_back(draft_.UseOf(draft, outline_.constant));
      pointers.push_back(draft.beside.has_value() ? draft.operands.size() + draft.results.size() : 0);
    }
    std::vector<LaunchDraft> launches;
    for (const std::vector<size_t>& joined : JoinDrafts(uses, pointers, {kMostBeside, kMaxPointers})) {
      launches.push_back(std::move(draft_.launches[joined[0]]));
      if (joined.size() > 1) MENDEL_RETURN_IF_ERROR(StandBeside({joined.begin() + 1, joined.end()}, launches.back()));
    }
    draft_.launches = std::move(launches);
    return absl::OkStatus();
  }

  /// `launch` computes what `others` do, too.
  absl::Status StandBeside(const std::vector<size_t>& others, LaunchDraft& launch) {
    std::vector<FusionGroup> groups = {*launch.beside};
    Step& info = launch.launch.info;
    for (const size_t k : others) {
      groups.push_back(*draft_.launches[k].beside);
      launch.results.push_back(groups.back().result);
      const Step& other = draft_.launches[k].launch.info;
      info.flops += other.flops;
      for (const int32_t node : other.nodes) {
        if (std::find(info.nodes.begin(), info.nodes.end(), node) == info.nodes.end()) info.nodes.push_back(node);
      }
    }
    info.kernel = Cat(kBeside, "_of_", groups.size());
    for (const FusionGroup& group : groups) info.kernel += CopiedTold(group.nodes);
    MENDEL_ASSIGN_OR_RETURN(FusedKernel kernel, WriteSideBySide(graph_, groups));
    launch.launch.kernel = std::move(kernel.name);
    launch.launch.shape = kernel.launch;
    launch.operands = std::move(kernel.operands);
    launch.text = std::move(kernel.text);
    return absl::OkStatus();
  }

  /// Of the nodes: whose boxes no emitted correction computes, and why.
  std::string CopiedTold(const std::set<int32_t>& nodes) const {
    std::string told;
    for (const int32_t node : nodes) {
      const auto refused = outline_.plan.refused.find(node);
      if (refused != outline_.plan.refused.end()) told += Cat("; boxes copied (", refused->second, ")");
    }
    return told;
  }

  NodeOrigin OriginOf(int32_t id) const { return outline_.OriginOf(id); }

  /// As nodes of the graph that is lowered, without conversions.
  std::vector<int32_t> OriginsOf(const std::vector<int32_t>& nodes) const {
    std::vector<int32_t> origins;
    for (const int32_t id : nodes) {
      if (!OriginOf(id).conversion) origins.push_back(OriginOf(id).node);
    }
    return origins;
  }

  /// `id`: the node that gives the step its name, or the operator where it has none. Nodes are those of the graph that is lowered;
  /// conversions are none.
  Step StepOf(int32_t id, int32_t result, const std::set<int32_t>& nodes, std::string kernel) const {
    const Node& node = graph_.node(id);
    Step step;
    step.name = node.name.empty() ? Cat(node.op->name, " ", OriginOf(result).node) : node.name;
    step.kernel = std::move(kernel) + CopiedTold(nodes);
    std::set<int32_t> asking;
    for (int32_t member : nodes) {
      if (const NodeOrigin origin = OriginOf(member); origin.conversion) {
        asking.insert(origin.asked_by.begin(), origin.asked_by.end());
        continue;
      }
      step.nodes.push_back(OriginOf(member).node);
      step.flops += WithView(graph_, member, [&](const NodeView& view) { return CostOf(*graph_.node(member).op, view).flops; });
    }
    if (step.nodes.empty()) step.asked_by.assign(asking.begin(), asking.end());
    return step;
  }

  const Graph& graph_;
  const Outline& outline_;
  FoldedValues& folded_;
  size_t corrected_ = 0;                          // of the plan's corrections
  std::map<int32_t, const FusionGroup*> copies_;  // that corrections take along, by their Patch
  ProgramDraft draft_;
};

}  // namespace

ValueUse ProgramDraft::UseOf(const LaunchDraft& launch, const std::vector<bool>& constant) const {
  ValueUse use;
  for (const KernelOperand& operand : launch.operands) {
    if (operand.value.node >= 0 && !constant[static_cast<size_t>(operand.value.node)]) use.reads.insert(Home(operand.value));
  }
  for (const ValueId result : launch.results) use.writes.insert(Home(result));
  return use;
}

absl::StatusOr<ProgramDraft> DraftLaunches(const Outline& outline, FoldedValues& folded) { return Drafting(outline, folded).Run(); }

}  // namespace mendel::cuda
