#include "kernels/cuda/backend/placement.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>
#include <utility>

#include "kernels/cuda/backend/launch_draft.h"
#include "kernels/cuda/backend/launch_order.h"

namespace mendel::cuda {
namespace {

int64_t Aligned(int64_t bytes) { return (bytes + kDeviceAlignment - 1) / kDeviceAlignment * kDeviceAlignment; }

int64_t WorkspaceOf(const LaunchDraft& draft) { return draft.launch.call == nullptr ? 0 : draft.launch.call->workspace_bytes(); }

}  // namespace

Placement::Placement(const Graph& graph, const ProgramOptions& options, const std::vector<bool>& constant, ProgramDraft draft,
                     FoldedValues& folded)
    : graph_(graph), options_(options), constant_(constant), draft_(std::move(draft)), folded_(folded) {
  for (const LaunchDraft& launch : draft_.launches) uses_.push_back(draft_.UseOf(launch, constant_));
  PlaceConstants();
}

DeviceProgram Placement::First(LaunchOrder order) {
  DeviceProgram program = InOrder(order);
  std::set<std::string> names;
  for (const LaunchDraft& draft : draft_.launches) {
    if (draft.text.empty() || !names.insert(draft.launch.kernel).second) continue;
    program.texts.push_back(draft.text);
    program.entries.push_back(draft.launch.kernel);
  }
  program.weights = std::move(constants_.weights);
  program.uploads = std::move(constants_.uploads);
  return program;
}

std::vector<DeviceProgram> Placement::Others() {
  std::vector<DeviceProgram> others;
  const std::vector<size_t> sequence = DepthFirst(uses_);
  if (!std::is_sorted(sequence.begin(), sequence.end())) others.push_back(InOrder(LaunchOrder::kDepthFirst));
  DeviceProgram branches = InOrder(LaunchOrder::kBranches);
  if (!IsChain(DependenciesOf(UsesOfLaunches(branches)))) others.push_back(std::move(branches));
  return others;
}

DeviceProgram Placement::InOrder(LaunchOrder order) {
  DeviceProgram program;
  program.allocations = constants_.allocations;
  program.constants = program.allocations.size();
  program.order = order;
  Arrange(order);
  PlaceValues(program);
  AddCopies(program);
  return program;
}

/// The steps by which memory is planned are the launches, or the levels where branches are to share none.
void Placement::Arrange(LaunchOrder order) {
  sequence_.resize(draft_.launches.size());
  std::iota(sequence_.begin(), sequence_.end(), size_t{0});
  if (order == LaunchOrder::kDepthFirst) sequence_ = DepthFirst(uses_);
  steps_.resize(sequence_.size());
  std::iota(steps_.begin(), steps_.end(), 0);
  if (order != LaunchOrder::kBranches || options_.apart_up_to <= 0) return;
  const double most = options_.apart_up_to * static_cast<double>(PlannedMemory().arena_bytes);
  const auto sequence = sequence_;
  const auto steps = steps_;
  ArrangeByLevel();
  if (static_cast<double>(PlannedMemory().arena_bytes) <= most) return;
  sequence_ = sequence;
  steps_ = steps;
}

void Placement::ArrangeByLevel() {
  const std::vector<int> levels = LevelsOf(uses_);
  std::stable_sort(sequence_.begin(), sequence_.end(), [&](size_t a, size_t b) { return levels[a] < levels[b]; });
  for (size_t k = 0; k < steps_.size(); ++k) steps_[k] = levels[sequence_[k]];
}

int64_t Placement::BytesOf(ValueId value) const {
  const auto scratch = draft_.scratch.find(value);
  return scratch == draft_.scratch.end() ? ByteSize(graph_.type(value)) : scratch->second;
}

/// `value` is alive at `step`.
void Placement::Life(ValueId value, int step) {
  const ValueId home = draft_.Home(value);
  const int64_t bytes = BytesOf(home);
  if (bytes == 0) return;
  const auto [life, is_new] = lives_.try_emplace(home, BufferLifetime{Aligned(bytes), step, step});
  life->second.last = std::max(life->second.last, step);
}

void Placement::FindLives() {
  lives_.clear();
  for (int32_t id : graph_.inputs()) Life({id, 0}, 0);
  for (size_t k = 0; k < sequence_.size(); ++k) {
    const ValueUse& use = uses_[sequence_[k]];
    for (const auto* values : {&use.reads, &use.writes}) {
      for (const ValueId value : *values) Life(value, steps_[k]);
    }
  }
  const int end = steps_.empty() ? 0 : steps_.back() + 1;
  for (const GraphOutput& output : graph_.outputs()) {
    if (!IsConstantValue(output.value)) Life(output.value, end);
  }
}

/// Of all values, then of all workspaces.
MemoryPlan Placement::PlannedMemory() {
  FindLives();
  std::vector<BufferLifetime> lives;
  for (const auto& [value, life] : lives_) lives.push_back(life);
  for (size_t k = 0; k < sequence_.size(); ++k) {
    const int64_t bytes = WorkspaceOf(DraftAt(k));
    if (bytes > 0) lives.push_back({Aligned(bytes), steps_[k], steps_[k]});
  }
  return PlanMemory(lives, kDeviceAlignment);
}

/// In the order of the draft, so that they lie alike in every order.
void Placement::PlaceConstants() {
  if (options_.reuse_memory) constants_.allocations = {0};
  const auto place = [&](ValueId value) {
    if (IsConstantValue(value) && constant_places_.count(value) == 0) constant_places_[value] = Weights(folded_.Of(value));
  };
  for (const LaunchDraft& draft : draft_.launches) {
    std::vector<DeviceBuffer>& tables = tables_.emplace_back();
    for (const KernelOperand& operand : draft.operands) {
      if (operand.value.node < 0) {
        tables.push_back(Weights(operand.table));
      } else {
        place(operand.value);
      }
    }
  }
  for (const GraphOutput& output : graph_.outputs()) place(output.value);
  if (!options_.reuse_memory || constants_.weights.empty()) return;
  constants_.allocations[0] = static_cast<int64_t>(constants_.weights.size());
  constants_.uploads = {{{0, 0, constants_.allocations[0]}, 0}};
}

/// A constant's place; equal ones share it.
DeviceBuffer Placement::Weights(const Tensor& tensor) {
  const auto [place, is_new] = weights_.try_emplace(tensor.ContentHash());
  if (!is_new) return place->second;
  const std::span<const std::byte> bytes = tensor.bytes();
  const auto from = static_cast<int64_t>(constants_.weights.size()), count = static_cast<int64_t>(bytes.size());
  if (options_.reuse_memory) {
    place->second = {0, from, count};
  } else {
    place->second = {constants_.allocations.size(), 0, count};
    constants_.allocations.push_back(count);
    constants_.uploads.push_back({place->second, from});
  }
  constants_.weights.resize(constants_.weights.size() + static_cast<size_t>(Aligned(count)));
  if (!bytes.empty()) std::memcpy(constants_.weights.data() + from, bytes.data(), bytes.size());
  return place->second;
}

void Placement::PlaceValues(DeviceProgram& program) {
  const MemoryPlan plan = PlannedMemory();
  if (options_.reuse_memory) program.allocations.push_back(plan.arena_bytes);
  program.alive_bytes = plan.bound_bytes;
  program.arena_bytes = options_.reuse_memory ? plan.arena_bytes : 0;
  places_.clear();
  size_t place = 0;
  for (const auto& [value, life] : lives_) places_[value] = PlaceOfValue(program, plan.offsets[place++], BytesOf(value));
  for (size_t k = 0; k < sequence_.size(); ++k) {
    DeviceLaunch& launch = program.launches.emplace_back(DraftAt(k).launch);
    const int64_t bytes = WorkspaceOf(DraftAt(k));
    if (bytes > 0) launch.workspace = PlaceOfValue(program, plan.offsets[place++], bytes);
  }
  for (size_t k = 0; k < sequence_.size(); ++k) {
    const LaunchDraft& draft = DraftAt(k);
    DeviceLaunch& launch = program.launches[k];
    auto table = tables_[sequence_[k]].begin();
    for (const KernelOperand& operand : draft.operands) {
      launch.pointers.push_back(operand.value.node < 0 ? *table++ : PlaceOf(operand.value));
    }
    for (const ValueId result : draft.results) launch.pointers.push_back(PlaceOf(result));
    launch.results = draft.results.size();
  }
}

/// In the one allocation of all values, or in one of its own.
DeviceBuffer Placement::PlaceOfValue(DeviceProgram& program, int64_t offset, int64_t bytes) const {
  if (options_.reuse_memory) return {program.constants, offset, bytes};
  program.allocations.push_back(bytes);
  program.arena_bytes += bytes;
  return {program.allocations.size() - 1, 0, bytes};
}

DeviceBuffer Placement::PlaceOf(ValueId value) {
  return IsConstantValue(value) ? constant_places_.at(value) : places_[draft_.Home(value)];
}

void Placement::AddCopies(DeviceProgram& program) {
  const auto copy = [&](ValueId value, std::string name) {
    DeviceCopy result{graph_.type(value), std::move(name), {}, program.staging_bytes};
    if (ByteSize(result.type) > 0) result.buffer = PlaceOf(value);
    program.staging_bytes += Aligned(ByteSize(result.type));
    return result;
  };
  for (int32_t id : graph_.inputs()) program.inputs.push_back(copy({id, 0}, InputName(graph_.node(id))));
  for (const GraphOutput& output : graph_.outputs()) program.outputs.push_back(copy(output.value, output.name));
}

}  // namespace mendel::cuda
