#include "kernels/cuda/emit/roofline.h"

#include <algorithm>
#include <array>

namespace mendel::cuda {
namespace {

constexpr double kLaunchSeconds = 3e-6;

// NVIDIA's data sheets of the SXM modules.
constexpr std::array<GpuModel, 3> kGpus = {{
    {"A100", 80, 19.5e12, 2.04e12, 108},
    {"H100", 90, 66.9e12, 3.35e12, 132},
    {"B200", 100, 75e12, 7.7e12, 148},
}};

}  // namespace

std::span<const GpuModel> KnownGpus() { return kGpus; }

double RooflineSeconds(const Correction& correction, const LaunchShape& launch, const Tile& tile, const GpuModel& gpu) {
  // What blocks compute, padding included, on as many multiprocessors as there are blocks.
  const double depth = static_cast<double>(NumElements(correction.kernel) * correction.channels);
  const double padded = 2.0 * launch.grid * tile.rows * tile.columns * depth;
  const double waves = std::min(1.0, static_cast<double>(launch.grid) / gpu.multiprocessors);
  return std::max(padded / (gpu.flops * waves), BytesOf(correction) / gpu.bandwidth) + kLaunchSeconds;
}

double Occupancy(int compute_capability, int registers, int shared_bytes, int threads) {
  const int shared_limit = compute_capability >= 90 ? 228 * 1024 : 164 * 1024;
  constexpr int kRegisters = 65536, kThreads = 2048, kBlocks = 32, kReservedShared = 1024;
  const int warps = (threads + 31) / 32;
  const int registers_a_warp = (registers * 32 + 255) / 256 * 256;
  int blocks = std::min(kBlocks, kThreads / (warps * 32));
  blocks = std::min(blocks, kRegisters / std::max(1, registers_a_warp * warps));
  blocks = std::min(blocks, shared_limit / (shared_bytes + kReservedShared));
  return static_cast<double>(blocks * warps * 32) / kThreads;
}

}  // namespace mendel::cuda
