#include "kernels/cpu/kernels/winograd.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/cpu/memory/cache_size.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

constexpr int64_t kLargestBlock = 96;
constexpr int64_t kFewestTiles = 24;  ///< for which reading weights from memory pays
using Tiles = std::array<WinogradTile, kLargestBlock>;

/// A stride of an odd number of cache lines, so that the points of one tile fall into different
/// cache sets.
int64_t OddLines(int64_t floats) {
  constexpr int64_t kLine = 16;
  const int64_t lines = (floats + kLine - 1) / kLine;
  return (lines + 1 - lines % 2) * kLine;
}

/// First outputs of the tiles along one dimension: `outputs` consecutive ones of each residue class
/// modulo the dilation.
std::vector<int64_t> TileStarts(int64_t extent, int64_t step, int64_t outputs) {
  std::vector<int64_t> starts;
  for (int64_t phase = 0; phase < std::min(step, extent); ++phase) {
    for (int64_t at = phase; at < extent; at += step * outputs) starts.push_back(at);
  }
  return starts;
}

WinogradTile TileAt(const WinogradPlan& plan, int64_t number) {
  WinogradTile tile{};
  for (size_t d = 3; d-- > 0;) {
    const int64_t count = static_cast<int64_t>(plan.starts[d].size());
    tile.start[d] = plan.starts[d][static_cast<size_t>(number % count)];
    number /= count;
  }
  tile.image = number;
  return tile;
}

/// One call's operands.
class Convolution {
 public:
  Convolution(const WinogradPlan& plan, const float* src, const float* weights,
              const WinogradEpilogue& epilogue, float* dst)
      : plan_(plan), src_(src), weights_(weights), epilogue_(epilogue), dst_(dst) {}

  int64_t Load(int64_t begin, int64_t end, Tiles& tiles) const {
    for (int64_t t = begin; t < end; ++t) tiles[static_cast<size_t>(t - begin)] = TileAt(plan_, t);
    return end - begin;
  }

  /// Computes the factors of channel blocks [begin, end).
  void Transform(const Tiles& tiles, int64_t count, int64_t begin, int64_t end,
                 float* factors) const {
    plan_.transforms->input(plan_.problem, src_, tiles.data(), count, begin, end, factors,
                            plan_.row, plan_.factor_stride);
  }

  /// Computes the outputs of panels [begin, end).
  void Finish(const Tiles& tiles, int64_t count, int64_t begin, int64_t end, const float* factors,
              float* products) const {
    const WinogradIsa& isa = *plan_.isa;
    const int64_t vector_weights = isa.lanes * plan_.points * plan_.channels_in;
    for (int64_t panel = begin; panel < end; ++panel) {
      const int64_t first = panel * isa.panel_vectors;
      const int64_t vectors = std::min<int64_t>(isa.panel_vectors, plan_.OutputVectors() - first);
      isa.multiply(
          factors, plan_.row, plan_.factor_stride, weights_ + first * vector_weights,
          weights_ + std::min(end * isa.panel_vectors, plan_.OutputVectors()) * vector_weights,
          plan_.channels_in, count, vectors, plan_.points, products, plan_.product_row);
      plan_.transforms->output(plan_.problem, epilogue_, products, plan_.product_row, tiles.data(),
                               count, first, vectors, dst_);
    }
  }

 private:
  const WinogradPlan& plan_;
  const float* src_;
  const float* weights_;
  const WinogradEpilogue& epilogue_;
  float* dst_;
};

/// Calls body(begin, end) for blocks of nearly equal size.
template <class Body>
void ForBlocks(int64_t begin, int64_t end, int64_t block, const Body& body) {
  const int64_t blocks = (end - begin + block - 1) / block;
  for (int64_t b = 0; b < blocks; ++b)
    body(begin + (end - begin) * b / blocks, begin + (end - begin) * (b + 1) / blocks);
}

/// `tile_floats` counts the factors of a tile and its products for one panel.
int64_t TilesAtOnce(const WinogradPlan& plan, int64_t tile_floats) {
  constexpr int64_t kNearFloats = int64_t{48} << 10;
  constexpr int64_t kManyWeights = int64_t{1} << 20;
  constexpr int64_t kFarFloats = int64_t{2} << 20;
  // The weights far exceed the second-level cache. A block then has enough tiles to pay for reading
  // them once, and its factors may lie further away.
  if (plan.WeightFloats() >= kManyWeights)
    return std::clamp(kFarFloats / tile_floats, kFewestTiles, kLargestBlock);
  // A block's factors and products fit a small part of the cache, together with its inputs, outputs
  // and the weights, which stay there.
  const int64_t cache = SecondLevelCacheBytes() / static_cast<int64_t>(sizeof(float));
  const int64_t few = 2 * plan.isa->panel_rows;
  const int64_t near = std::clamp(kNearFloats / tile_floats, few, kLargestBlock);
  if (plan.WeightFloats() + near * tile_floats <= cache / 10 * 9) return near;
  // Weights pass through the cache for every block. A block gets half of it, so that they do so a
  // few times only.
  return std::clamp(cache / 2 / tile_floats, near, kLargestBlock);
}

/// One panel of output channels.
template <class T>
void PackPanel(const WinogradPlan& plan, const T* weights, const std::vector<double>& scale,
               int64_t panel, float* to) {
  const WinogradIsa& isa = *plan.isa;
  const WinogradTransforms& transforms = *plan.transforms;
  const int64_t taps = int64_t{transforms.r[0]} * transforms.r[1] * transforms.r[2];
  const int64_t first = panel * isa.panel_vectors * isa.lanes;
  const int64_t width =
      std::min<int64_t>(isa.panel_vectors, plan.OutputVectors() - panel * isa.panel_vectors) *
      isa.lanes;
  const int64_t channels = std::min(width, plan.problem.channels_out - first);
  float* base = to + first * plan.points * plan.channels_in;
  std::vector<double> values(static_cast<size_t>(plan.points * width)), next(values.size());
  std::vector<double> factors(static_cast<size_t>(channels));
  for (int64_t o = 0; o < channels; ++o)
    factors[static_cast<size_t>(o)] = FactorOf(scale, first + o);
  for (int64_t c = 0; c < plan.channels_in; ++c) {
    const T* kernels = weights + (first * plan.channels_in + c) * taps;
    double* line = values.data();
    // Transforms one tap of all outputs after the other: their lines of the weights are in the
    // cache, and the results are written in order.
    for (int64_t tap = 0; tap < taps; ++tap, line += width) {
      for (int64_t o = 0; o < channels; ++o) {
        line[o] = static_cast<double>(kernels[o * plan.channels_in * taps + tap]) *
                  factors[static_cast<size_t>(o)];
      }
      std::fill(line + channels, line + width, 0.0);
    }
    isa.transform_weights(transforms, width, values.data(), next.data(), base + c * width,
                          plan.channels_in * width);
  }
}

}  // namespace

int64_t WinogradPlan::ScratchBytes() const {
  const int64_t factors = points * factor_stride;
  const int64_t products = block * product_row;
  const int64_t floats =
      share_channels ? factors + shares * products : shares * (factors + products);
  return floats * static_cast<int64_t>(sizeof(float));
}

double WinogradErrorBound(const WinogradTransforms& transforms, int64_t channels_in) {
  constexpr int64_t kMeasured = 64;
  return transforms.error_bound *
         std::sqrt(static_cast<double>(std::max(channels_in, kMeasured)) / kMeasured);
}

void CutIntoTiles(WinogradPlan& plan, int threads) {
  plan.tiles = plan.batch;
  plan.points = 1;
  for (size_t d = 0; d < 3; ++d) {
    plan.starts[d] = TileStarts(plan.problem.out[d], plan.problem.step[d], plan.transforms->m[d]);
    plan.tiles *= static_cast<int64_t>(plan.starts[d].size());
    plan.points *= plan.transforms->m[d] + plan.transforms->r[d] - 1;
  }
  plan.row = plan.ChannelBlocks() * plan.isa->lanes;
  const int64_t panel = int64_t{plan.isa->panel_vectors} * plan.isa->lanes;
  plan.block = TilesAtOnce(plan, plan.points * (plan.row + panel));
  plan.shares = std::max(1, threads);
  // With few tiles a thread, the threads share the tiles and divide the output channels, so that
  // each reads its own weights.
  plan.share_channels =
      plan.shares > 1 && plan.tiles < plan.shares * kFewestTiles && plan.Panels() >= plan.shares;
  const int64_t at_once =
      plan.share_channels ? plan.tiles : (plan.tiles + plan.shares - 1) / plan.shares;
  plan.block = std::max<int64_t>(1, std::min(plan.block, at_once));
  plan.factor_stride = OddLines(plan.block * plan.row);
  plan.product_row = OddLines(plan.points * panel);
}

void PackWinogradWeights(const WinogradPlan& plan, const WeightView& weights,
                         const std::vector<double>& scale, float* to) {
  weights.Visit([&](const auto* values) {
    ParallelRange(plan.Panels(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t panel = begin; panel < end; ++panel) PackPanel(plan, values, scale, panel, to);
    });
  });
}

void RunWinograd(const WinogradPlan& plan, const float* src, const float* weights,
                 const WinogradEpilogue& epilogue, float* dst, float* scratch) {
  const Convolution convolution(plan, src, weights, epilogue, dst);
  const int64_t factor_floats = plan.points * plan.factor_stride;
  const int64_t product_floats = plan.block * plan.product_row;
  if (!plan.share_channels) {
    ParallelRange(plan.shares, 1, [&](int64_t share_begin, int64_t share_end) {
      for (int64_t share = share_begin; share < share_end; ++share) {
        float* factors = scratch + share * (factor_floats + product_floats);
        Tiles tiles;
        ForBlocks(plan.tiles * share / plan.shares, plan.tiles * (share + 1) / plan.shares,
                  plan.block, [&](int64_t begin, int64_t end) {
                    const int64_t count = convolution.Load(begin, end, tiles);
                    convolution.Transform(tiles, count, 0, plan.ChannelBlocks(), factors);
                    convolution.Finish(tiles, count, 0, plan.Panels(), factors,
                                       factors + factor_floats);
                  });
      }
    });
    return;
  }
  ForBlocks(0, plan.tiles, plan.block, [&](int64_t begin, int64_t end) {
    Tiles tiles;
    const int64_t count = convolution.Load(begin, end, tiles);
    ParallelRange(plan.ChannelBlocks(), 1, [&](int64_t from, int64_t until) {
      convolution.Transform(tiles, count, from, until, scratch);
    });
    ParallelRange(plan.shares, 1, [&](int64_t share_begin, int64_t share_end) {
      for (int64_t share = share_begin; share < share_end; ++share) {
        convolution.Finish(tiles, count, plan.Panels() * share / plan.shares,
                           plan.Panels() * (share + 1) / plan.shares, scratch,
                           scratch + factor_floats + share * product_floats);
      }
    });
  });
}

}  // namespace mendel::cpu
