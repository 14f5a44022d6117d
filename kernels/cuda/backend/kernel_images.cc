#include "kernels/cuda/backend/kernel_images.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "base/status.h"
#include "runtime/cpu_topology.h"

namespace mendel::cuda {

absl::StatusOr<std::vector<std::vector<char>>> CompileKernels(const DeviceProgram& program,
                                                              const ImageOf& image) {
  const size_t count = program.texts.size();
  std::vector<absl::StatusOr<std::vector<char>>> made(count, std::vector<char>());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t k = next++; k < count; k = next++) made[k] = image(program.ModuleText(k));
  };
  std::vector<std::thread> helpers;
  const size_t threads = std::min(count, static_cast<size_t>(PhysicalCores()));
  for (size_t k = 1; k < threads; ++k) helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();
  std::vector<std::vector<char>> images;
  for (absl::StatusOr<std::vector<char>>& one : made) {
    MENDEL_RETURN_IF_ERROR(one.status());
    images.push_back(*std::move(one));
  }
  return images;
}

}  // namespace mendel::cuda
