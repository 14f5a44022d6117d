#include "kernels/cuda/backend/program.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "base/status.h"
#include "kernels/cuda/backend/folded_values.h"
#include "kernels/cuda/backend/launch_draft.h"
#include "kernels/cuda/backend/outline.h"
#include "kernels/cuda/backend/program_draft.h"
#include "kernels/cuda/fusion/preamble.h"
#include "runtime/memory_planner.h"

namespace mendel::cuda {
namespace {

int64_t Aligned(int64_t bytes) { return (bytes + kDeviceAlignment - 1) / kDeviceAlignment * kDeviceAlignment; }

/// Gives the launches of a draft their memory.
class Placement {
 public:
  Placement(const Graph& graph, const ProgramOptions& options, const std::vector<bool>& constant, ProgramDraft draft,
            FoldedValues& folded)
      : graph_(graph),
        options_(options),
        constant_(constant),
        draft_(std::move(draft)),
        drafts_(draft_.launches),
        folded_(folded) {}

  DeviceProgram Run() {
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
  /// `value` is alive at `step`.
  void Life(ValueId value, int step) {
    const ValueId home = draft_.Home(value);
    const int64_t bytes = BytesOf(home);
    if (bytes == 0) return;
    const auto [life, is_new] = lives_.try_emplace(home, BufferLifetime{Aligned(bytes), step, step});
    life->second.last = std::max(life->second.last, step);
  }

  int64_t BytesOf(ValueId value) const {
    const auto scratch = draft_.scratch.find(value);
    return scratch == draft_.scratch.end() ? ByteSize(graph_.type(value)) : scratch->second;
  }

  /// Of an entry that is a kernel's, once.
  void AddText(const std::string& entry, const std::string& text) {
    if (text.empty() || !names_.insert(entry).second) return;
    program_.texts.push_back(text);
    program_.entries.push_back(entry);
  }

  bool IsConstantValue(ValueId value) const { return constant_[static_cast<size_t>(value.node)]; }

  ValueUse UseOf(const LaunchDraft& draft) const { return draft_.UseOf(draft, constant_); }

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
    if (constant_[static_cast<size_t>(value.node)]) return Weights(folded_.Of(value));
    return places_[draft_.Home(value)];
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
  const std::vector<bool>& constant_;
  ProgramDraft draft_;
  std::vector<LaunchDraft>& drafts_;
  FoldedValues& folded_;
  std::vector<int> steps_;  // one a draft, ascending
  DeviceProgram program_;
  std::map<ValueId, BufferLifetime> lives_;
  std::map<ValueId, DeviceBuffer> places_;
  std::set<std::string> names_;
  std::map<std::string, DeviceBuffer> weights_;
};

}  // namespace

std::string DeviceProgram::ModuleText(size_t kernel) const { return PreambleText() + texts[kernel] + "\n"; }

std::string DeviceProgram::ModuleText() const {
  std::string text = PreambleText();
  for (const std::string& kernel : texts) text += kernel + "\n";
  return text;
}

absl::StatusOr<DeviceProgram> LowerToDevice(const Graph& graph, const ProgramOptions& options) {
  MENDEL_ASSIGN_OR_RETURN(const Outline outline,
                          OutlineOf(graph, options.algorithms, options.numerics, options.libraries, options.engines));
  FoldedValues folded(outline.graph);
  MENDEL_ASSIGN_OR_RETURN(ProgramDraft draft, DraftLaunches(outline, folded));
  return Placement(outline.graph, options, outline.constant, std::move(draft), folded).Run();
}

}  // namespace mendel::cuda
