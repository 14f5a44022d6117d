#include "kernels/cuda/emit/roofline.h"

#include <algorithm>
#include <array>
#include <vector>

#include "kernels/cuda/emit/box_table.h"

namespace mendel::cuda {
namespace {

// Data sheets give tensor cores' figures with sparsity from A100 on: these are the halves, without.
constexpr std::array<GpuModel, 7> kGpus = {{
    {"A100", 80, 19.5e12, 2.04e12, 108, 9.7e12, 156e12, 312e12, 312e12,
     "A100 data sheet, SXM 80 GB"},
    {"H100", 90, 66.9e12, 3.35e12, 132, 33.5e12, 494e12, 989e12, 989e12, "H100 data sheet, SXM"},
    {"B200", 100, 75e12, 7.7e12, 148, 37e12, 1125e12, 2250e12, 2250e12,
     "HGX B200 data sheet, an eighth"},
    {"T4", 75, 8.1e12, 0.32e12, 40, 0.25e12, 0, 65e12, 0,
     "T4 data sheet; f64 1/32, Turing white paper"},
    {"A10", 86, 31.2e12, 0.6e12, 72, 0.49e12, 62.5e12, 125e12, 125e12,
     "A10 data sheet; f64 1/64, Ampere GA102 white paper"},
    {"L40S", 89, 91.6e12, 0.864e12, 142, 1.43e12, 183e12, 362e12, 362e12,
     "L40S data sheet; f64 1/64, Ada white paper"},
    {"RTX 5090", 120, 104.8e12, 1.792e12, 170, 1.64e12, 104.8e12, 209.5e12, 209.5e12,
     "RTX Blackwell white paper; f64 1/64"},
}};
constexpr size_t kEstimated = 3;

/// The limits of one multiprocessor, from the CUDA programming guide's table of technical
/// specifications.
struct Residents {
  int compute_capability;
  int threads, blocks;
  int shared;    // bytes
  int reserved;  // of them by the system, a block
};
constexpr std::array<Residents, 7> kResidents = {{{75, 1024, 16, 64 << 10, 0},
                                                  {80, 2048, 32, 164 << 10, 1024},
                                                  {86, 1536, 16, 100 << 10, 1024},
                                                  {89, 1536, 24, 100 << 10, 1024},
                                                  {90, 2048, 32, 228 << 10, 1024},
                                                  {100, 2048, 32, 228 << 10, 1024},
                                                  {120, 1536, 24, 100 << 10, 1024}}};

/// Nodes that the patched value needs, except those that it shares with the pieces.
std::vector<bool> NodesOfMutant(const Graph& graph, int32_t patch) {
  std::vector<bool> mutant(graph.nodes().size());
  std::vector<bool> pieces(graph.nodes().size());
  const std::vector<ValueId>& operands = graph.node(patch).inputs;
  mutant[static_cast<size_t>(operands[0].node)] = true;
  for (size_t k = 1; k < operands.size(); ++k) pieces[static_cast<size_t>(operands[k].node)] = true;
  for (int32_t id = patch; id-- > 0;) {
    const size_t at = static_cast<size_t>(id);
    for (ValueId input : graph.node(id).inputs) {
      if (mutant[at]) mutant[static_cast<size_t>(input.node)] = true;
      // Nodes that the pieces read through the patched value itself are the mutant's.
      if (pieces[at] && id != operands[0].node) pieces[static_cast<size_t>(input.node)] = true;
    }
  }
  for (size_t at = 0; at < mutant.size(); ++at) {
    const bool shared = pieces[at] && static_cast<int32_t>(at) != operands[0].node;
    mutant[at] =
        mutant[at] && !shared && !IsInput(graph.nodes()[at]) && !IsConstant(graph.nodes()[at]);
  }
  return mutant;
}

/// Operators that a GPU program runs as part of their neighbors, or not at all.
bool IsFree(std::string_view op) {
  constexpr std::array<std::string_view, 12> kFree = {
      "Reshape", "Slice", "Add",     "Sub",  "Mul",       "Div",
      "Relu",    "Clip",  "Sigmoid", "Tanh", "LeakyRelu", "BatchNormalization"};
  return std::find(kFree.begin(), kFree.end(), op) != kFree.end();
}

}  // namespace

std::span<const GpuModel> AllGpus() { return kGpus; }

std::span<const GpuModel> KnownGpus() { return AllGpus().first(kEstimated); }

const GpuModel* GpuOf(int compute_capability) {
  const auto found = std::find_if(kGpus.begin(), kGpus.end(), [&](const GpuModel& gpu) {
    return gpu.compute_capability == compute_capability;
  });
  return found == kGpus.end() ? nullptr : &*found;
}

double RooflineSeconds(const Correction& correction, const LaunchShape& launch, const Tile& tile,
                       const GpuModel& gpu) {
  // The padded work of the blocks, on as many multiprocessors as there are blocks.
  double padded = 0;
  const bool sums = correction.divided.stage != DividedSum::Stage::kTotal;
  for (size_t k = 0; k < correction.boxes.size() && sums; ++k) {
    const CorrectionBox& box = correction.boxes[k];
    padded += 2.0 * static_cast<double>(TilesOf(box, tile) * tile.rows * tile.columns) *
              static_cast<double>(SumOf(correction, box));
  }
  const double waves = std::min(1.0, static_cast<double>(launch.grid) / gpu.multiprocessors);
  return std::max(padded / (gpu.flops * waves), BytesOf(correction) / gpu.bandwidth) +
         kLaunchSeconds;
}

double MutantSeconds(const Graph& graph, int32_t patch, const GpuModel& gpu) {
  const std::vector<bool> mutant = NodesOfMutant(graph, patch);
  double seconds = 0;
  for (int32_t id = 0; id < patch; ++id) {
    const Node& node = graph.node(id);
    if (!mutant[static_cast<size_t>(id)] || IsFree(node.op->name)) continue;
    const Cost cost =
        WithView(graph, id, [&](const NodeView& view) { return CostOf(*node.op, view); });
    seconds += std::max(cost.flops / gpu.flops, cost.bytes / gpu.bandwidth) + kLaunchSeconds;
  }
  return seconds;
}

double Occupancy(int compute_capability, int registers, int shared_bytes, int threads) {
  constexpr int kRegisters = 65536;
  const auto limits = std::find_if(kResidents.begin(), kResidents.end(), [&](const Residents& one) {
    return one.compute_capability == compute_capability;
  });
  if (limits == kResidents.end()) return 0;
  const int warps = (threads + 31) / 32;
  const int registers_a_warp = (registers * 32 + 255) / 256 * 256;
  int blocks = std::min(limits->blocks, limits->threads / (warps * 32));
  blocks = std::min(blocks, kRegisters / std::max(1, registers_a_warp * warps));
  if (shared_bytes + limits->reserved > 0)
    blocks = std::min(blocks, limits->shared / (shared_bytes + limits->reserved));
  return static_cast<double>(blocks * warps * 32) / limits->threads;
}

}  // namespace mendel::cuda
