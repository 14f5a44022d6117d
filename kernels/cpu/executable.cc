#include "kernels/cpu/executable.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/status.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

int64_t LargestScratch(const Program& program) {
  int64_t bytes = 0;
  for (const ProgramStep& step : program.steps) bytes = std::max(bytes, step.scratch);
  return bytes;
}

absl::Status CheckSizes(std::string_view what, std::span<const TensorType> types, auto buffers) {
  if (buffers.size() != types.size())
    return InvalidInput("expected ", types.size(), " ", what, "s, not ", buffers.size());
  for (size_t k = 0; k < types.size(); ++k) {
    if (static_cast<int64_t>(buffers[k].size()) != ByteSize(types[k])) {
      return InvalidInput(what, " ", k, " is ", TypeString(types[k]), ": ", ByteSize(types[k]),
                          " bytes, not ", buffers[k].size());
    }
    if (reinterpret_cast<uintptr_t>(buffers[k].data()) %
            static_cast<uintptr_t>(DTypeSize(types[k].dtype)) !=
        0) {
      return InvalidInput(what, " ", k, " is not aligned to its element size");
    }
  }
  return absl::OkStatus();
}

}  // namespace

CpuExecutable::CpuExecutable(Program program, const std::vector<int64_t>& offsets,
                             const MemoryPlan& plan)
    : program_(std::move(program)), arena_(plan.arena_bytes), scratch_(LargestScratch(program_)) {
  bindings_.scratch = scratch_.data();
  for (size_t b = 0; b < program_.buffers.size(); ++b) {
    const Buffer& buffer = program_.buffers[b];
    std::byte* address = nullptr;
    if (buffer.kind == BufferKind::kArena) address = arena_.data() + offsets[b];
    // Kernels take one kind of pointer. No kernel writes to a constant.
    if (buffer.kind == BufferKind::kConstant) address = const_cast<std::byte*>(buffer.constant);
    bindings_.buffers.push_back(address);
    if (buffer.kind == BufferKind::kConstant && buffer.packed) report_.weight_bytes += buffer.bytes;
  }
  for (const ProgramStep& step : program_.steps) steps_.push_back(step.info);
  report_.arena_bytes = plan.arena_bytes;
  report_.alive_bytes = plan.bound_bytes;
  report_.scratch_bytes = scratch_.size();
}

absl::Status CpuExecutable::Prepare() {
  std::vector<absl::Status> created(program_.steps.size());
  ParallelTasks(static_cast<int64_t>(created.size()), [&](int64_t number) {
    const auto s = static_cast<size_t>(number);
    created[s] = program_.steps[s].kernel->Create();
  });
  for (size_t s = 0; s < created.size(); ++s)
    MENDEL_RETURN_IF_ERROR(Annotate(created[s], program_.steps[s].info.name));
  for (const ProgramStep& step : program_.steps) {
    MENDEL_RETURN_IF_ERROR(Annotate(step.kernel->Prepare(bindings_), step.info.name));
  }
  return absl::OkStatus();
}

absl::Status CpuExecutable::Bind(std::span<const std::span<const std::byte>> inputs,
                                 std::span<const std::span<std::byte>> outputs) {
  MENDEL_RETURN_IF_ERROR(CheckSizes("input", program_.inputs, inputs));
  MENDEL_RETURN_IF_ERROR(CheckSizes("output", program_.outputs, outputs));
  for (size_t b = 0; b < program_.buffers.size(); ++b) {
    const Buffer& buffer = program_.buffers[b];
    if (buffer.kind == BufferKind::kInput)
      bindings_.buffers[b] = const_cast<std::byte*>(inputs[buffer.external].data());
    if (buffer.kind == BufferKind::kOutput) bindings_.buffers[b] = outputs[buffer.external].data();
  }
  return absl::OkStatus();
}

bool CpuExecutable::IsNeeded(const ProgramStep& step) const {
  for (int number = step.branch; number >= 0;) {
    const Branch& branch = program_.branches[static_cast<size_t>(number)];
    const std::byte* const buffer = bindings_.buffers[static_cast<size_t>(branch.condition)];
    if ((buffer[branch.offset] != std::byte{0}) != branch.wanted) return false;
    number = branch.parent;
  }
  return true;
}

absl::Status CpuExecutable::Run(std::span<const std::span<const std::byte>> inputs,
                                std::span<const std::span<std::byte>> outputs) {
  MENDEL_RETURN_IF_ERROR(Bind(inputs, outputs));
  const ThreadScope threads(program_.threads);
  const PinScope pinned(program_.cpus);
  MENDEL_RETURN_IF_ERROR(pinned.status());
  for (const ProgramStep& step : program_.steps) {
    if (IsNeeded(step)) MENDEL_RETURN_IF_ERROR(step.kernel->Run(bindings_));
  }
  return absl::OkStatus();
}

absl::Status CpuExecutable::RunTimed(std::span<const std::span<const std::byte>> inputs,
                                     std::span<const std::span<std::byte>> outputs,
                                     std::vector<double>& seconds) {
  MENDEL_RETURN_IF_ERROR(Bind(inputs, outputs));
  const ThreadScope threads(program_.threads);
  const PinScope pinned(program_.cpus);
  MENDEL_RETURN_IF_ERROR(pinned.status());
  seconds.resize(program_.steps.size());
  for (size_t s = 0; s < program_.steps.size(); ++s) {
    const auto start = std::chrono::steady_clock::now();
    if (IsNeeded(program_.steps[s]))
      MENDEL_RETURN_IF_ERROR(program_.steps[s].kernel->Run(bindings_));
    seconds[s] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  return absl::OkStatus();
}

}  // namespace mendel::cpu
