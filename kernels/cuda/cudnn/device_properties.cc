#include <algorithm>
#include <array>

#include "base/status.h"
#include "kernels/cuda/cudnn/convolution.h"

namespace mendel::cuda {
namespace {

/// Limits of an architecture (CUDA programming guide, table of compute capabilities), and of its
/// GPU in AllGpus() what heuristics ask.
struct Limits {
  int compute_capability;
  int shared_a_block;   ///< bytes, when requested
  int threads, blocks;  ///< a multiprocessor
  int cores;            ///< f32 lanes a multiprocessor
  int memory_khz;
  int l2_mib, memory_gib;
};
constexpr std::array<Limits, 7> kLimits = {{
    {75, 65536, 1024, 16, 64, 5001000, 4, 16},
    {80, 166912, 2048, 32, 64, 1593000, 40, 80},
    {86, 101376, 1536, 16, 128, 6251000, 6, 24},
    {89, 101376, 1536, 24, 128, 9001000, 96, 48},
    {90, 232448, 2048, 32, 128, 2619000, 50, 80},
    {100, 232448, 2048, 32, 128, 3996000, 126, 180},
    {120, 101376, 1536, 24, 128, 14001000, 96, 32},
}};

}  // namespace

std::string DevicePropertiesJson(const GpuModel& gpu) {
  const auto known = std::find_if(kLimits.begin(), kLimits.end(), [&](const Limits& limits) {
    return limits.compute_capability == gpu.compute_capability;
  });
  const Limits& limits = known == kLimits.end() ? kLimits[1] : *known;
  const double khz = gpu.flops / (2e3 * limits.cores * gpu.multiprocessors);
  return Cat(
      R"({"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],"regsPerBlock":65536,"multiProcessorCount":)",
      gpu.multiprocessors, R"(,"smClockRateKHz":)", static_cast<int64_t>(khz),
      R"(,"memClockRateKHz":)", limits.memory_khz, R"(,"l2CacheSize":)",
      int64_t{limits.l2_mib} << 20,
      R"(,"warpSize":32,"maxSharedMemoryPerBlock":49152,"maxSharedMemoryPerBlockOptin":)",
      limits.shared_a_block, R"(,"reservedSharedMemoryPerBlock":)",
      gpu.compute_capability >= 80 ? 1024 : 0,
      R"(,"maxRegistersPerSM":65536,"pciDeviceId":0,"maxCtasPerSM":)", limits.blocks,
      R"(,"maxThreadsPerBlock":1024,"maxThreadsPerSM":)", limits.threads,
      R"(,"isTccDriver":0,"supportCoopLaunch":1,"deviceVer":)", gpu.compute_capability * 10,
      R"(,"driverVer":13000,"cudaDeviceId":0,"totalGlobalMem":)", int64_t{limits.memory_gib} << 30,
      R"(,"deviceName":")", gpu.name, R"("})");
}

}  // namespace mendel::cuda
