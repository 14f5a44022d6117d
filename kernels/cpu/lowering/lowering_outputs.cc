// Values that are computed in the caller's output buffers, and copies of those that are not.

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "kernels/cpu/kernels/copy.h"
#include "kernels/cpu/lowering/layout_regions.h"
#include "kernels/cpu/lowering/lowering.h"
#include "kernels/cpu/lowering/side_by_side.h"

namespace mendel::cpu {

std::optional<size_t> Lowering::FreeOutput(ValueId value) const {
  for (size_t k = 0; k < graph_.outputs().size(); ++k) {
    if (graph_.outputs()[k].value == value && !output_taken_[k]) return k;
  }
  for (int32_t user : graph_.users(value.node)) {
    if (!graph_.node(user).op->is_view || graph_.node(user).inputs[0] != value) continue;
    if (const std::optional<size_t> output = FreeOutput({user, 0}); output.has_value())
      return output;
  }
  return std::nullopt;
}

bool Lowering::IsOnlyPatched(ValueId value, int32_t patch) const {
  const std::vector<ValueId>& operands = graph_.node(patch).inputs;
  if (operands[0] != value || std::count(operands.begin(), operands.end(), value) != 1)
    return false;
  // A part may be read as a summand before the Patch.
  const auto read_before = [&](int32_t user) {
    if (graph_.node(user).op->name != "Slice") return false;
    bool added = false;
    while (user != patch && graph_.OnlyUser(user) >= 0) {
      user = graph_.users(user)[0];
      added = added || graph_.node(user).op->name == "Add";
    }
    return user == patch && added;
  };
  const std::vector<int32_t>& users = graph_.users(value.node);
  return std::all_of(users.begin(), users.end(),
                     [&](int32_t user) { return user == patch || read_before(user); });
}

std::optional<size_t> Lowering::FreePatchedOutput(ValueId value) const {
  const Node& node = graph_.node(value.node);
  if (graph_.IsOutput(value.node) || node.outputs.size() != 1) return std::nullopt;
  const std::vector<int32_t>& users = graph_.users(value.node);
  if (users.size() == 1 && graph_.node(users[0]).op->is_view)
    return FreePatchedOutput({users[0], 0});
  for (int32_t user : users) {
    if (graph_.node(user).op->name != "Patch") continue;
    if (!IsOnlyPatched(value, user)) return std::nullopt;
    const std::optional<size_t> output = FreeOutput({user, 0});
    return output.has_value() ? output : FreePatchedOutput({user, 0});
  }
  return std::nullopt;
}

std::optional<Place> Lowering::InOutputOf(ValueId base, ValueId patched) const {
  const auto places = places_.find(base);
  if (places == places_.end() || !IsOnlyPatched(base, patched.node)) return std::nullopt;
  // `base` may be a view of a value that is an output itself.
  const auto becomes = [&](ValueId output) {
    while (output != patched &&
           (graph_.node(output.node).op->is_view || graph_.node(output.node).op->name == "Patch")) {
      output = graph_.node(output.node).inputs[0];
    }
    return output == patched;
  };
  for (const Place& place : places->second) {
    const Buffer& buffer = program_.buffers[static_cast<size_t>(place.buffer)];
    if (buffer.kind == BufferKind::kOutput && becomes(graph_.outputs()[buffer.external].value))
      return place;
  }
  return std::nullopt;
}

absl::StatusOr<Program> Lowering::Finish() {
  for (size_t k = 0; k < graph_.outputs().size(); ++k) {
    const ValueId value = graph_.outputs()[k].value;
    const Place from = Plain(value);
    const Buffer& holder = program_.buffers[static_cast<size_t>(from.buffer)];
    if (holder.kind == BufferKind::kOutput && holder.external == k) continue;
    Buffer buffer;
    buffer.kind = BufferKind::kOutput;
    buffer.bytes = ByteSize(type(value));
    buffer.external = k;
    const Place to{AddBuffer(std::move(buffer)), 0, from.layout};
    const Shape flat = {NumElements(shape(value))};
    Emit({}, "copy", MakeCopyKernel({{from, to, flat, {1}, {1}}}, DTypeSize(type(value).dtype)),
         {from, to});
    program_.steps.back().info.name = Cat("output ", graph_.outputs()[k].name);
  }
  ChargeConversions(graph_, options_.algorithms, program_.steps);
  JoinSideBySide(program_);
  FindBranches();
  MENDEL_RETURN_IF_ERROR(deferred_.FillAll(program_.buffers));
  if (options_.copy_constants) CopyConstants();
  return std::move(program_);
}

}  // namespace mendel::cpu
