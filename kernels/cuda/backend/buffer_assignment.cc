#include "kernels/cuda/backend/buffer_assignment.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>
#include <utility>

#include "kernels/cuda/backend/launch_node.h"
#include "kernels/cuda/backend/launch_order.h"

namespace mendel::cuda {
namespace {

int64_t WorkspaceOf(const LaunchNode& node) {
  return node.launch.call == nullptr ? 0 : node.launch.call->workspace_bytes();
}

}  // namespace

BufferAssignment::BufferAssignment(const Graph& graph, const ProgramOptions& options,
                                   const std::vector<bool>& constant, LaunchGraph launch_graph,
                                   FoldedValues& folded)
    : graph_(graph),
      options_(options),
      constant_(constant),
      launch_graph_(std::move(launch_graph)),
      folded_(folded) {
  for (const LaunchNode& launch : launch_graph_.launches)
    uses_.push_back(launch_graph_.UseOf(launch, constant_));
  PlaceConstants();
}

DeviceProgram BufferAssignment::First(LaunchOrder order) {
  DeviceProgram program = InOrder(order);
  std::set<std::string> names;
  for (const LaunchNode& node : launch_graph_.launches) {
    if (node.text.empty() || !names.insert(node.launch.kernel).second) continue;
    program.texts.push_back(node.text);
    program.entries.push_back(node.launch.kernel);
  }
  program.weights = std::move(constants_.weights);
  program.uploads = std::move(constants_.uploads);
  return program;
}

std::vector<DeviceProgram> BufferAssignment::Others() {
  std::vector<DeviceProgram> others;
  const std::vector<size_t> sequence = DepthFirst(uses_);
  if (!std::is_sorted(sequence.begin(), sequence.end()))
    others.push_back(InOrder(LaunchOrder::kDepthFirst));
  DeviceProgram branches = InOrder(LaunchOrder::kBranches);
  if (!IsChain(DependenciesOf(UsesOfLaunches(branches)))) others.push_back(std::move(branches));
  return others;
}

DeviceProgram BufferAssignment::InOrder(LaunchOrder order) {
  DeviceProgram program;
  program.allocations = constants_.allocations;
  program.constants = program.allocations.size();
  program.order = order;
  Arrange(order);
  PlaceValues(program);
  AddCopies(program);
  return program;
}

/// The steps of memory planning are the launches. They are the levels instead where branches share
/// no memory.
void BufferAssignment::Arrange(LaunchOrder order) {
  sequence_.resize(launch_graph_.launches.size());
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

void BufferAssignment::ArrangeByLevel() {
  const std::vector<int> levels = LevelsOf(uses_);
  std::stable_sort(sequence_.begin(), sequence_.end(),
                   [&](size_t a, size_t b) { return levels[a] < levels[b]; });
  for (size_t k = 0; k < steps_.size(); ++k) steps_[k] = levels[sequence_[k]];
}

int64_t BufferAssignment::BytesOf(ValueId value) const {
  const auto scratch = launch_graph_.scratch.find(value);
  return scratch == launch_graph_.scratch.end() ? ByteSize(graph_.type(value)) : scratch->second;
}

/// Marks `value` as alive at `step`.
void BufferAssignment::Life(ValueId value, int step) {
  const ValueId home = launch_graph_.Home(value);
  const int64_t bytes = BytesOf(home);
  if (bytes == 0) return;
  const auto [life, is_new] =
      lives_.try_emplace(home, BufferLifetime{DeviceAligned(bytes), step, step});
  life->second.last = std::max(life->second.last, step);
}

void BufferAssignment::FindLives() {
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

/// Plans the memory of all values, then of all workspaces.
MemoryPlan BufferAssignment::PlannedMemory() {
  FindLives();
  std::vector<BufferLifetime> lives;
  for (const auto& [value, life] : lives_) lives.push_back(life);
  for (size_t k = 0; k < sequence_.size(); ++k) {
    const int64_t bytes = WorkspaceOf(NodeAt(k));
    if (bytes > 0) lives.push_back({DeviceAligned(bytes), steps_[k], steps_[k]});
  }
  return PlanMemory(lives, kDeviceAlignment);
}

/// Constants lie in the order of the launch graph, hence alike in every order of the launches.
void BufferAssignment::PlaceConstants() {
  if (options_.reuse_memory) constants_.allocations = {0};
  const auto place = [&](ValueId value) {
    if (IsConstantValue(value) && constant_places_.count(value) == 0)
      constant_places_[value] = Weights(folded_.Of(value));
  };
  for (const LaunchNode& node : launch_graph_.launches) {
    std::vector<DeviceBuffer>& tables = tables_.emplace_back();
    for (const KernelOperand& operand : node.operands) {
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
DeviceBuffer BufferAssignment::Weights(const Tensor& tensor) {
  const auto [place, is_new] = weights_.try_emplace(tensor.ContentHash());
  if (!is_new) return place->second;
  const std::span<const std::byte> bytes = tensor.bytes();
  const auto from = static_cast<int64_t>(constants_.weights.size()),
             count = static_cast<int64_t>(bytes.size());
  if (options_.reuse_memory) {
    place->second = {0, from, count};
  } else {
    place->second = {constants_.allocations.size(), 0, count};
    constants_.allocations.push_back(count);
    constants_.uploads.push_back({place->second, from});
  }
  constants_.weights.resize(constants_.weights.size() + static_cast<size_t>(DeviceAligned(count)));
  if (!bytes.empty()) std::memcpy(constants_.weights.data() + from, bytes.data(), bytes.size());
  return place->second;
}

void BufferAssignment::PlaceValues(DeviceProgram& program) {
  const MemoryPlan plan = PlannedMemory();
  if (options_.reuse_memory) program.allocations.push_back(plan.arena_bytes);
  program.alive_bytes = plan.bound_bytes;
  program.arena_bytes = options_.reuse_memory ? plan.arena_bytes : 0;
  places_.clear();
  size_t place = 0;
  for (const auto& [value, life] : lives_)
    places_[value] = PlaceOfValue(program, plan.offsets[place++], BytesOf(value));
  for (size_t k = 0; k < sequence_.size(); ++k) {
    DeviceLaunch& launch = program.launches.emplace_back(NodeAt(k).launch);
    const int64_t bytes = WorkspaceOf(NodeAt(k));
    if (bytes > 0) launch.workspace = PlaceOfValue(program, plan.offsets[place++], bytes);
  }
  for (size_t k = 0; k < sequence_.size(); ++k) {
    const LaunchNode& node = NodeAt(k);
    DeviceLaunch& launch = program.launches[k];
    auto table = tables_[sequence_[k]].begin();
    for (const KernelOperand& operand : node.operands) {
      launch.pointers.push_back(operand.value.node < 0 ? *table++ : PlaceOf(operand.value));
    }
    for (const ValueId result : node.results) launch.pointers.push_back(PlaceOf(result));
    launch.results = node.results.size();
  }
}

/// A value lies in the one allocation of all values, or in an allocation of its own.
DeviceBuffer BufferAssignment::PlaceOfValue(DeviceProgram& program, int64_t offset,
                                            int64_t bytes) const {
  if (options_.reuse_memory) return {program.constants, offset, bytes};
  program.allocations.push_back(bytes);
  program.arena_bytes += bytes;
  return {program.allocations.size() - 1, 0, bytes};
}

DeviceBuffer BufferAssignment::PlaceOf(ValueId value) {
  return IsConstantValue(value) ? constant_places_.at(value) : places_[launch_graph_.Home(value)];
}

void BufferAssignment::AddCopies(DeviceProgram& program) {
  const auto copy = [&](ValueId value, std::string name) {
    DeviceCopy result{graph_.type(value), std::move(name), {}, program.staging_bytes};
    if (ByteSize(result.type) > 0) result.buffer = PlaceOf(value);
    program.staging_bytes += DeviceAligned(ByteSize(result.type));
    return result;
  };
  for (int32_t id : graph_.inputs())
    program.inputs.push_back(copy({id, 0}, InputName(graph_.node(id))));
  for (const GraphOutput& output : graph_.outputs())
    program.outputs.push_back(copy(output.value, output.name));
}

}  // namespace mendel::cuda
