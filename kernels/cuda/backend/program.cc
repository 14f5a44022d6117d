#include "kernels/cuda/backend/program.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "base/status.h"
#include "graph/evaluate.h"
#include "graph/rewrite.h"
#include "kernels/cuda/backend/beside.h"
#include "kernels/cuda/backend/correction_launch.h"
#include "kernels/cuda/backend/launch_draft.h"
#include "kernels/cuda/backend/stored_forms.h"
#include "kernels/cuda/emit/correction_plan.h"
#include "kernels/cuda/fusion/grouping.h"
#include "kernels/cuda/fusion/preamble.h"
#include "kernels/cuda/fusion/side_by_side.h"
#include "runtime/memory_planner.h"

namespace mendel::cuda {
namespace {

int64_t Aligned(int64_t bytes) { return (bytes + kDeviceAlignment - 1) / kDeviceAlignment * kDeviceAlignment; }

/// Who computes what.
struct Outline {
  explicit Outline(const Graph& graph) : constant(ConstantExpressions(graph)), plan(PlanCorrections(graph, constant)) {
    elsewhere = constant;
    for (const PlannedCorrection& correction : plan.corrections) elsewhere[static_cast<size_t>(correction.patch)] = true;
    for (size_t id = 0; id < plan.unused.size(); ++id) elsewhere[id] = elsewhere[id] || plan.unused[id];
  }

  std::vector<bool> constant;
  CorrectionPlan plan;
  std::vector<bool> elsewhere;  ///< constants, and what corrections and calls compute, or nobody
  std::vector<LibraryGroup> calls = {};
  std::vector<NodeOrigin> origins = {};  ///< by node; empty: each is its own
  std::set<int32_t> beside = {};         ///< nodes, before conversions, whose kernels may stand beside others
};

class Lowering {
 public:
  Lowering(const Graph& graph, const ProgramOptions& options, Outline outline)
      : graph_(graph),
        options_(options),
        constant_(std::move(outline.constant)),
        plan_(std::move(outline.plan)),
        elsewhere_(std::move(outline.elsewhere)),
        calls_(std::move(outline.calls)),
        origins_(std::move(outline.origins)),
        beside_(std::move(outline.beside)) {}

  absl::StatusOr<DeviceProgram> Run() {
    MENDEL_ASSIGN_OR_RETURN(const std::vector<FusionGroup> groups, GroupsOf(graph_, elsewhere_, {plan_.unused, Stored()}));
    auto call = calls_.begin();
    for (const FusionGroup& group : groups) {
      for (; call != calls_.end() && call->result < group.result; ++call) MENDEL_RETURN_IF_ERROR(AddCall(*call));
      MENDEL_RETURN_IF_ERROR(AddCorrectionsBefore(group.result.node));
      MENDEL_RETURN_IF_ERROR(AddLaunch(group));
    }
    for (; call != calls_.end(); ++call) MENDEL_RETURN_IF_ERROR(AddCall(*call));
    MENDEL_RETURN_IF_ERROR(AddCorrectionsBefore(static_cast<int32_t>(graph_.nodes().size())));
    MENDEL_RETURN_IF_ERROR(JoinKernels());
    for (const LaunchDraft& draft : drafts_) AddText(draft.launch.kernel, draft.text);
    ArrangeLaunches();
    PlaceValues();
    AddCopies();
    if (options_.reuse_memory && !program_.weights.empty()) {
      program_.allocations[0] = static_cast<int64_t>(program_.weights.size());
      program_.uploads = {{{0, 0, program_.allocations[0]}, 0}};
    }
    program_.order = options_.order;
    return std::move(program_);
  }

 private:
  /// What lies in memory whoever else reads it: a call may read a value that is no input of any of its nodes, through views.
  std::set<ValueId> Stored() const {
    std::set<ValueId> stored = plan_.stored;
    for (const LibraryGroup& call : calls_) {
      for (const auto* operands : {&call.operands, &call.finish.operands}) {
        for (const KernelOperand& operand : *operands) {
          if (operand.value.node >= 0 && !constant_[static_cast<size_t>(operand.value.node)]) stored.insert(operand.value);
        }
      }
    }
    return stored;
  }

  /// `value` is alive at `step`.
  void Life(ValueId value, int step) {
    const ValueId home = Home(value);
    const int64_t bytes = BytesOf(home);
    if (bytes == 0) return;
    const auto [life, is_new] = lives_.try_emplace(home, BufferLifetime{Aligned(bytes), step, step});
    life->second.last = std::max(life->second.last, step);
  }

  /// The value in whose memory `value` lies: its own, or what a correction has written over.
  ValueId Home(ValueId value) const {
    const auto home = homes_.find(value);
    return home == homes_.end() ? value : home->second;
  }
  int64_t BytesOf(ValueId value) const {
    const auto scratch = scratch_.find(value);
    return scratch == scratch_.end() ? ByteSize(graph_.type(value)) : scratch->second;
  }

  /// The corrections that have not been added yet, of nodes before this one.
  absl::Status AddCorrectionsBefore(int32_t node) {
    for (; corrected_ < plan_.corrections.size() && plan_.corrections[corrected_].patch < node; ++corrected_) {
      const PlannedCorrection& correction = plan_.corrections[corrected_];
      if (correction.in_place) homes_[correction.result()] = Home(correction.base);
      if (const int64_t bytes = ScratchBytes(graph_, correction); bytes > 0) scratch_[ScratchOf(correction)] = bytes;
      MENDEL_ASSIGN_OR_RETURN(auto launches, LaunchesOf(graph_, correction, [&](ValueId value) { return Folded(value); }));
      for (CorrectionLaunch& launch : launches) {
        Add({.kernel = std::move(launch.kernel), .shape = launch.shape, .info = std::move(launch.info)}, std::move(launch.operands),
            launch.result, std::move(launch.text));
      }
    }
    return absl::OkStatus();
  }

  /// Of an entry that is a kernel's, once.
  void AddText(const std::string& entry, const std::string& text) {
    if (text.empty() || !names_.insert(entry).second) return;
    program_.texts.push_back(text);
    program_.entries.push_back(entry);
  }

  absl::Status AddLaunch(const FusionGroup& group) {
    MENDEL_ASSIGN_OR_RETURN(FusedKernel kernel, WriteKernel(graph_, group));
    const std::string told =
        Cat(group.row >= 0 ? "rows" : "elements", group.nodes.size() > 1 ? Cat("_of_", group.nodes.size()) : "",
            kernel.lanes > 1 ? Cat("_by_", kernel.lanes) : "");
    Add({.kernel = kernel.name,
         .shape = kernel.launch,
         .info = StepOf(group.row >= 0 ? group.row : group.result.node, group.result.node, group.nodes, told)},
        std::move(kernel.operands), group.result, std::move(kernel.text));
    const NodeOrigin origin = OriginOf(group.result.node);
    if (!origin.conversion && beside_.count(origin.node) > 0 && MayStandBeside(graph_, group)) drafts_.back().beside = group;
    return absl::OkStatus();
  }

  absl::Status AddCall(const LibraryGroup& group) {
    MENDEL_RETURN_IF_ERROR(AddCorrectionsBefore(group.result.node));
    Step step = StepOf(group.node, group.result.node, group.nodes,
                       group.call == nullptr ? Cat(group.algorithm, "_of_", group.nodes.size()) : group.call->name());
    std::stable_partition(step.nodes.begin(), step.nodes.end(), [&](int32_t id) { return id == OriginOf(group.node).node; });
    if (group.call == nullptr) {
      const FusedKernel& kernel = group.kernel;
      Add({.kernel = kernel.name, .shape = kernel.launch, .info = std::move(step)}, group.operands, group.result, kernel.text);
      return absl::OkStatus();
    }
    Add({.call = group.call, .info = std::move(step)}, group.operands, group.result);
    const FusedKernel& finish = group.finish;
    if (finish.name.empty()) return absl::OkStatus();
    Step info = drafts_.back().launch.info;
    info.kernel = "epilogue in place";
    info.flops = 0;  // the call's step has them
    Add({.kernel = finish.name, .shape = finish.launch, .info = std::move(info)}, finish.operands, group.result, finish.text);
    return absl::OkStatus();
  }

  /// `text`: of a kernel.
  void Add(DeviceLaunch launch, std::vector<KernelOperand> operands, ValueId result, std::string text = "") {
    drafts_.push_back({std::move(launch), std::move(operands), {result}, std::move(text)});
  }

  /// Kernels that may stand beside others and have company become one.
  absl::Status JoinKernels() {
    if (beside_.empty()) return absl::OkStatus();
    std::vector<ValueUse> uses;
    std::vector<bool> may_join;
    for (const LaunchDraft& draft : drafts_) {
      uses.push_back(UseOf(draft));
      may_join.push_back(draft.beside.has_value());
    }
    std::vector<LaunchDraft> launches;
    for (const std::vector<size_t>& joined : JoinDrafts(uses, may_join, kMostBeside)) {
      launches.push_back(std::move(drafts_[joined[0]]));
      if (joined.size() > 1) MENDEL_RETURN_IF_ERROR(StandBeside({joined.begin() + 1, joined.end()}, launches.back()));
    }
    drafts_ = std::move(launches);
    return absl::OkStatus();
  }

  /// `launch` computes what `others` do, too.
  absl::Status StandBeside(const std::vector<size_t>& others, LaunchDraft& launch) {
    std::vector<FusionGroup> groups = {*launch.beside};
    Step& info = launch.launch.info;
    for (const size_t k : others) {
      groups.push_back(*drafts_[k].beside);
      launch.results.push_back(groups.back().result);
      const Step& other = drafts_[k].launch.info;
      info.flops += other.flops;
      for (const int32_t node : other.nodes) {
        if (std::find(info.nodes.begin(), info.nodes.end(), node) == info.nodes.end()) info.nodes.push_back(node);
      }
    }
    info.kernel = Cat(kBeside, "_of_", groups.size());
    MENDEL_ASSIGN_OR_RETURN(FusedKernel kernel, WriteSideBySide(graph_, groups));
    launch.launch.kernel = std::move(kernel.name);
    launch.launch.shape = kernel.launch;
    launch.operands = std::move(kernel.operands);
    launch.text = std::move(kernel.text);
    return absl::OkStatus();
  }

  bool IsConstantValue(ValueId value) const { return constant_[static_cast<size_t>(value.node)]; }

  ValueUse UseOf(const LaunchDraft& draft) const {
    ValueUse use;
    for (const KernelOperand& operand : draft.operands) {
      if (operand.value.node >= 0 && !IsConstantValue(operand.value)) use.reads.insert(Home(operand.value));
    }
    for (const ValueId result : draft.results) use.writes.insert(Home(result));
    return use;
  }

  /// The steps by which memory is planned are the launches, or the levels where branches are to share none.
  void ArrangeLaunches() {
    steps_.resize(drafts_.size());
    std::iota(steps_.begin(), steps_.end(), 0);
    if (options_.apart_up_to <= 0) return;
    const double most = options_.apart_up_to * static_cast<double>(PlannedMemory().arena_bytes);
    const std::vector<LaunchDraft> drafts = drafts_;
    const std::vector<int> steps = steps_;
    ArrangeByLevel();
    if (static_cast<double>(PlannedMemory().arena_bytes) <= most) return;
    drafts_ = drafts;
    steps_ = steps;
  }

  void ArrangeByLevel() {
    std::vector<ValueUse> uses;
    for (const LaunchDraft& draft : drafts_) uses.push_back(UseOf(draft));
    const std::vector<int> levels = LevelsOf(uses);
    std::vector<size_t> order(drafts_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return levels[a] < levels[b]; });
    std::vector<LaunchDraft> drafts;
    for (size_t k = 0; k < order.size(); ++k) {
      drafts.push_back(std::move(drafts_[order[k]]));
      steps_[k] = levels[order[k]];
    }
    drafts_ = std::move(drafts);
  }

  void FindLives() {
    lives_.clear();
    for (int32_t id : graph_.inputs()) Life({id, 0}, 0);
    for (size_t k = 0; k < drafts_.size(); ++k) {
      const ValueUse use = UseOf(drafts_[k]);
      for (const auto* values : {&use.reads, &use.writes}) {
        for (const ValueId value : *values) Life(value, steps_[k]);
      }
    }
    const int end = steps_.empty() ? 0 : steps_.back() + 1;
    for (const GraphOutput& output : graph_.outputs()) {
      if (!IsConstantValue(output.value)) Life(output.value, end);
    }
  }

  NodeOrigin OriginOf(int32_t id) const { return origins_.empty() ? NodeOrigin{id} : origins_[static_cast<size_t>(id)]; }

  /// `id`: the node that gives the step its name, or the operator where it has none. Nodes are those of the graph that is lowered;
  /// conversions are none.
  Step StepOf(int32_t id, int32_t result, const std::set<int32_t>& nodes, std::string kernel) const {
    const Node& node = graph_.node(id);
    Step step;
    step.name = node.name.empty() ? Cat(node.op->name, " ", OriginOf(result).node) : node.name;
    step.kernel = std::move(kernel);
    for (int32_t member : nodes) {
      if (OriginOf(member).conversion) continue;
      step.nodes.push_back(OriginOf(member).node);
      if (const auto refused = plan_.refused.find(member); refused != plan_.refused.end()) {
        step.kernel += Cat("; boxes copied (", refused->second, ")");
      }
      step.flops += WithView(graph_, member, [&](const NodeView& view) { return CostOf(*graph_.node(member).op, view).flops; });
    }
    return step;
  }

  static int64_t WorkspaceOf(const LaunchDraft& draft) {
    return draft.launch.call == nullptr ? 0 : draft.launch.call->workspace_bytes();
  }

  /// Of all values, then of all workspaces.
  MemoryPlan PlannedMemory() {
    FindLives();
    std::vector<BufferLifetime> lives;
    for (const auto& [value, life] : lives_) lives.push_back(life);
    for (size_t k = 0; k < drafts_.size(); ++k) {
      if (WorkspaceOf(drafts_[k]) > 0) lives.push_back({Aligned(WorkspaceOf(drafts_[k])), steps_[k], steps_[k]});
    }
    return PlanMemory(lives, kDeviceAlignment);
  }

  void PlaceValues() {
    program_.allocations = {0, 0};  // constants, values
    const MemoryPlan plan = PlannedMemory();
    size_t place = 0;
    for (const auto& [value, life] : lives_) places_[value] = Place(1, plan.offsets[place++], BytesOf(value));
    for (LaunchDraft& draft : drafts_) {
      if (WorkspaceOf(draft) > 0) draft.launch.workspace = Place(1, plan.offsets[place++], WorkspaceOf(draft));
    }
    program_.alive_bytes = plan.bound_bytes;
    if (options_.reuse_memory) program_.allocations[1] = program_.arena_bytes = plan.arena_bytes;
    for (LaunchDraft& draft : drafts_) {
      for (const KernelOperand& operand : draft.operands) {
        draft.launch.pointers.push_back(operand.value.node < 0 ? Weights(operand.table) : PlaceOf(operand.value));
      }
      for (const ValueId result : draft.results) draft.launch.pointers.push_back(PlaceOf(result));
      draft.launch.results = draft.results.size();
      program_.launches.push_back(std::move(draft.launch));
    }
  }

  /// In `allocation`, or in one of its own.
  DeviceBuffer Place(size_t allocation, int64_t offset, int64_t bytes) {
    if (options_.reuse_memory) return {allocation, offset, bytes};
    program_.allocations.push_back(bytes);
    if (allocation == 1) program_.arena_bytes += bytes;
    return {program_.allocations.size() - 1, 0, bytes};
  }

  DeviceBuffer PlaceOf(ValueId value) {
    if (constant_[static_cast<size_t>(value.node)]) return Weights(Folded(value));
    return places_[Home(value)];
  }

  /// A constant's place; equal ones share it.
  DeviceBuffer Weights(const Tensor& tensor) {
    const auto [place, is_new] = weights_.try_emplace(tensor.ContentHash());
    if (is_new) {
      const std::span<const std::byte> bytes = tensor.bytes();
      const int64_t from = static_cast<int64_t>(program_.weights.size());
      place->second = Place(0, from, static_cast<int64_t>(bytes.size()));
      program_.weights.resize(program_.weights.size() + static_cast<size_t>(Aligned(place->second.bytes)));
      if (!bytes.empty()) std::memcpy(program_.weights.data() + from, bytes.data(), bytes.size());
      if (!options_.reuse_memory) program_.uploads.push_back({place->second, from});
    }
    return place->second;
  }

  Tensor Folded(ValueId value) {
    const Node& node = graph_.node(value.node);
    return IsConstant(node) ? ConstantValue(node) : Evaluated(value.node)[static_cast<size_t>(value.output)].ToTensor();
  }
  const std::vector<HostValue>& Evaluated(int32_t id) {
    if (const auto known = evaluated_.find(id); known != evaluated_.end()) return known->second;
    const Node& node = graph_.node(id);
    if (IsConstant(node)) return evaluated_[id] = {HostValue::FromTensor(ConstantValue(node))};
    std::vector<const HostValue*> operands;
    for (ValueId input : node.inputs) operands.push_back(&Evaluated(input.node)[static_cast<size_t>(input.output)]);
    return evaluated_[id] = WithView(graph_, id, [&](const NodeView& view) { return EvaluateNode(*node.op, view, operands); });
  }

  void AddCopies() {
    const auto copy = [&](ValueId value, std::string name) {
      DeviceCopy result{graph_.type(value), std::move(name), {}, program_.staging_bytes};
      if (ByteSize(result.type) > 0) result.buffer = PlaceOf(value);
      program_.staging_bytes += Aligned(ByteSize(result.type));
      return result;
    };
    for (int32_t id : graph_.inputs()) program_.inputs.push_back(copy({id, 0}, InputName(graph_.node(id))));
    for (const GraphOutput& output : graph_.outputs()) program_.outputs.push_back(copy(output.value, output.name));
  }

  const Graph& graph_;
  const ProgramOptions& options_;
  const std::vector<bool> constant_;
  const CorrectionPlan plan_;
  const std::vector<bool> elsewhere_;
  const std::vector<LibraryGroup> calls_;
  const std::vector<NodeOrigin> origins_;
  const std::set<int32_t> beside_;
  size_t corrected_ = 0;                // of plan_.corrections
  std::map<ValueId, ValueId> homes_;    // of results that overwrite what they correct
  std::map<ValueId, int64_t> scratch_;  // bytes
  DeviceProgram program_;
  std::map<ValueId, BufferLifetime> lives_;
  std::map<ValueId, DeviceBuffer> places_;
  std::vector<LaunchDraft> drafts_;
  std::vector<int> steps_;  // one a draft, ascending
  std::set<std::string> names_;
  std::map<std::string, DeviceBuffer> weights_;
  std::map<int32_t, std::vector<HostValue>> evaluated_;
};

}  // namespace

std::string DeviceProgram::ModuleText(size_t kernel) const { return PreambleText() + texts[kernel] + "\n"; }

std::string DeviceProgram::ModuleText() const {
  std::string text = PreambleText();
  for (const std::string& kernel : texts) text += kernel + "\n";
  return text;
}

absl::StatusOr<DeviceProgram> LowerToDevice(const Graph& graph, const ProgramOptions& options) {
  Outline outline(graph);
  std::map<int32_t, std::string> algorithms = options.algorithms;
  MENDEL_ASSIGN_OR_RETURN(outline.beside, TakeBeside(graph, algorithms));
  MENDEL_ASSIGN_OR_RETURN(outline.calls, FindLibraryGroups(graph, outline.constant, algorithms, options.numerics, options.libraries,
                                                           outline.elsewhere));
  if (!HaveForms(outline.calls)) return Lowering(graph, options, std::move(outline)).Run();
  MENDEL_ASSIGN_OR_RETURN(FormedGraph formed, WithStoredForms(graph, std::move(outline.calls), outline.elsewhere));
  Outline with_forms(formed.graph);
  with_forms.calls = std::move(formed.calls);
  with_forms.origins = std::move(formed.origins);
  with_forms.beside = std::move(outline.beside);
  for (const LibraryGroup& call : with_forms.calls) {
    for (const int32_t member : call.nodes) with_forms.elsewhere[static_cast<size_t>(member)] = true;
  }
  return Lowering(formed.graph, options, std::move(with_forms)).Run();
}

}  // namespace mendel::cuda
