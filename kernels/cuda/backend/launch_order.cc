#include "kernels/cuda/backend/launch_order.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "base/status.h"

namespace mendel::cuda {
namespace {

bool Overlap(const DeviceBuffer& a, const DeviceBuffer& b) {
  return a.allocation == b.allocation && a.offset < b.offset + b.bytes &&
         b.offset < a.offset + a.bytes;
}

bool AnyOverlap(const std::vector<DeviceBuffer>& a, const std::vector<DeviceBuffer>& b) {
  return std::any_of(a.begin(), a.end(), [&](const DeviceBuffer& one) {
    return std::any_of(b.begin(), b.end(),
                       [&](const DeviceBuffer& other) { return Overlap(one, other); });
  });
}

}  // namespace

MemoryUse UseOf(const DeviceLaunch& launch) {
  MemoryUse use;
  const auto results = launch.pointers.end() - static_cast<std::ptrdiff_t>(launch.results);
  use.reads.assign(launch.pointers.begin(), results);
  use.writes.assign(results, launch.pointers.end());
  if (launch.workspace.bytes > 0) use.writes.push_back(launch.workspace);
  return use;
}

std::vector<MemoryUse> UsesOfLaunches(const DeviceProgram& program) {
  std::vector<MemoryUse> uses;
  for (const DeviceLaunch& launch : program.launches) uses.push_back(UseOf(launch));
  return uses;
}

std::vector<MemoryUse> UsesOfRun(const DeviceProgram& program) {
  std::vector<MemoryUse> uses;
  for (const DeviceCopy& input : program.inputs) uses.push_back({{}, {input.buffer}});
  for (const DeviceLaunch& launch : program.launches) uses.push_back(UseOf(launch));
  for (const DeviceCopy& output : program.outputs) uses.push_back({{output.buffer}, {}});
  return uses;
}

bool Conflict(const MemoryUse& a, const MemoryUse& b) {
  return AnyOverlap(a.writes, b.writes) || AnyOverlap(a.writes, b.reads) ||
         AnyOverlap(a.reads, b.writes);
}

Dependencies DependenciesOf(std::span<const MemoryUse> work) {
  Dependencies dependencies(work.size());
  std::vector<std::vector<bool>> before(
      work.size());  // all that a piece waits for, also by way of others
  for (size_t k = 0; k < work.size(); ++k) {
    before[k].assign(k, false);
    // From the latest on: whoever another dependency waits for need not be waited for again.
    for (size_t j = k; j-- > 0;) {
      if (before[k][j] || !Conflict(work[j], work[k])) continue;
      dependencies[k].push_back(j);
      before[k][j] = true;
      for (size_t i = 0; i < j; ++i) before[k][i] = before[k][i] || before[j][i];
    }
  }
  return dependencies;
}

bool IsChain(const Dependencies& dependencies) {
  for (size_t k = 1; k < dependencies.size(); ++k) {
    if (dependencies[k] != std::vector<size_t>{k - 1}) return false;
  }
  return true;
}

Dependencies Framed(const Dependencies& dependencies) {
  Dependencies framed(1);
  std::vector<bool> is_waited_for(dependencies.size(), false);
  for (const std::vector<size_t>& own : dependencies) {
    std::vector<size_t>& shifted = framed.emplace_back();
    for (const size_t k : own) {
      shifted.push_back(k + 1);
      is_waited_for[k] = true;
    }
    if (own.empty()) shifted.push_back(0);
  }
  std::vector<size_t> last;
  for (size_t k = 0; k < dependencies.size(); ++k) {
    if (!is_waited_for[k]) last.push_back(k + 1);
  }
  if (last.empty()) last.push_back(0);
  framed.push_back(std::move(last));
  return framed;
}

size_t MostSideBySide(const Dependencies& dependencies) {
  std::vector<size_t> levels, count;
  for (const std::vector<size_t>& own : dependencies) {
    size_t level = 0;
    for (const size_t before : own) level = std::max(level, levels[before] + 1);
    levels.push_back(level);
    count.resize(std::max(count.size(), level + 1), 0);
    ++count[level];
  }
  return count.empty() ? 0 : *std::max_element(count.begin(), count.end());
}

std::string OrderReported(const DeviceProgram& program) {
  if (program.order == LaunchOrder::kDepthFirst) return "depth first";
  const size_t most = program.order == LaunchOrder::kBranches
                          ? MostSideBySide(DependenciesOf(UsesOfLaunches(program)))
                          : size_t{1};
  return most > 1 ? Cat("up to ", most, " side by side") : "in the order of the plan";
}

}  // namespace mendel::cuda
