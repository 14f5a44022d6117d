#include "kernels/cpu/program.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/check.h"
#include "base/status.h"
#include "kernels/cpu/executable.h"
#include "runtime/memory_planner.h"

namespace mendel::cpu {
namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;

/// First and last step that touches each buffer; (0, -1) when none does.
std::vector<std::pair<int, int>> Lifetimes(const Program& program) {
  std::vector<std::pair<int, int>> lives(program.buffers.size(), {0, -1});
  for (size_t s = 0; s < program.steps.size(); ++s) {
    for (int buffer : program.steps[s].buffers) {
      auto& [first, last] = lives[static_cast<size_t>(buffer)];
      if (last < 0) first = static_cast<int>(s);
      last = static_cast<int>(s);
    }
  }
  return lives;
}

}  // namespace

AlignedBytes::AlignedBytes(int64_t bytes) : size_(bytes) {
  if (bytes >= kHugePage) {
    mapped_ = (bytes + kHugePage - 1) / kHugePage * kHugePage + kHugePage;
    void* block = mmap(nullptr, static_cast<size_t>(mapped_), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MENDEL_CHECK(block != MAP_FAILED);
    const uintptr_t start = reinterpret_cast<uintptr_t>(block);
    const uintptr_t aligned = (start + kHugePage - 1) / kHugePage * kHugePage;
    if (aligned != start) munmap(block, aligned - start);
    mapped_ -= static_cast<int64_t>(aligned - start);
    data_ = reinterpret_cast<std::byte*>(aligned);
    madvise(data_, static_cast<size_t>(mapped_), MADV_HUGEPAGE);
    return;
  }
  const size_t rounded = (static_cast<size_t>(std::max<int64_t>(bytes, 1)) + 63) / 64 * 64;
  data_ = static_cast<std::byte*>(std::aligned_alloc(64, rounded));
  MENDEL_CHECK(data_ != nullptr);
  std::memset(data_, 0, rounded);
}

AlignedBytes::~AlignedBytes() {
  if (mapped_ > 0) {
    munmap(data_, static_cast<size_t>(mapped_));
  } else {
    std::free(data_);
  }
}

absl::StatusOr<std::unique_ptr<Executable>> MakeExecutable(Program program) {
  std::vector<std::pair<int, int>> lives = Lifetimes(program);
  std::vector<int> root(program.buffers.size());
  for (size_t b = 0; b < root.size(); ++b) root[b] = static_cast<int>(b);
  for (size_t s = 0; s < program.steps.size(); ++s) {
    if (!program.steps[s].in_place.has_value()) continue;
    const auto [out, in] = *program.steps[s].in_place;
    const int base = root[static_cast<size_t>(in)];
    const Buffer& to = program.buffers[static_cast<size_t>(out)];
    const Buffer& from = program.buffers[static_cast<size_t>(base)];
    const bool arena = to.kind == BufferKind::kArena && from.kind == BufferKind::kArena;
    const bool ends_here = lives[static_cast<size_t>(base)].second == static_cast<int>(s);
    const bool begins_here = lives[static_cast<size_t>(out)].first == static_cast<int>(s);
    if (!arena || !ends_here || !begins_here || to.bytes != from.bytes || out == base) continue;
    root[static_cast<size_t>(out)] = base;
    lives[static_cast<size_t>(base)].second = lives[static_cast<size_t>(out)].second;
  }
  std::vector<BufferLifetime> wanted;
  std::vector<int> slot(root.size(), -1);
  for (size_t b = 0; b < root.size(); ++b) {
    if (program.buffers[b].kind != BufferKind::kArena || root[b] != static_cast<int>(b) ||
        lives[b].second < 0)
      continue;
    slot[b] = static_cast<int>(wanted.size());
    wanted.push_back({program.buffers[b].bytes, lives[b].first, lives[b].second});
  }
  const MemoryPlan plan = PlanMemory(wanted);
  std::vector<int64_t> offsets(root.size(), 0);
  for (size_t b = 0; b < root.size(); ++b) {
    const int place = slot[static_cast<size_t>(root[b])];
    if (place >= 0) offsets[b] = plan.offsets[static_cast<size_t>(place)];
  }
  auto executable = std::make_unique<CpuExecutable>(std::move(program), offsets, plan);
  MENDEL_RETURN_IF_ERROR(executable->Prepare());
  return executable;
}

}  // namespace mendel::cpu
