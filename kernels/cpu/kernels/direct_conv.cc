#include "kernels/cpu/kernels/direct_conv.h"

#include <algorithm>
#include <array>

#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

constexpr int64_t kMostGroup = 32;  ///< tiles

/// One call's operands.
class Convolution {
 public:
  Convolution(const DirectConvPlan& plan, const float* src, const float* weights,
              const WinogradEpilogue& epilogue, float* dst)
      : plan_(plan), src_(src), weights_(weights), epilogue_(epilogue), dst_(dst) {}

  /// Computes panels [first, last) of tiles [begin, end). `windows` has room for a group of them.
  void Run(int64_t begin, int64_t end, int64_t first, int64_t last, float* windows) const {
    if (first == last) return;
    std::array<Tile, kMostGroup> tiles;
    Place place = PlaceOf(begin);
    for (int64_t group = begin; group < end; group += plan_.group) {
      const size_t count = static_cast<size_t>(std::min(end - group, plan_.group));
      // The first panel is multiplied as soon as a tile's window is there. Meanwhile the next
      // tile's window is prefetched.
      for (size_t k = 0; k < count; ++k, Advance(place)) {
        tiles[k] = Locate(place, windows + static_cast<int64_t>(k) * plan_.WindowFloats());
        Multiply(tiles[k], first, true, k + 1 == count ? Next(first, first, last) : nullptr);
      }
      for (int64_t panel = first + 1; panel < last; ++panel) {
        for (size_t k = 0; k < count; ++k)
          Multiply(tiles[k], panel, false, k + 1 == count ? Next(panel, first, last) : nullptr);
      }
    }
  }

 private:
  struct Place {
    int64_t image, d, h, tile;
  };
  struct Tile {
    int64_t image, at[3], count;  ///< first output
    bool in_place;                ///< reads the source, not a window
    const float* src;             ///< what the first tap of the first output reads
  };

  Place PlaceOf(int64_t number) const {
    const int64_t row = number / plan_.Tiles();
    const int64_t line = row / plan_.out[1];
    return {line / plan_.out[0], line % plan_.out[0], row % plan_.out[1], number % plan_.Tiles()};
  }

  void Advance(Place& place) const {
    if (++place.tile < plan_.Tiles()) return;
    place.tile = 0;
    if (++place.h < plan_.out[1]) return;
    place.h = 0;
    if (++place.d < plan_.out[0]) return;
    place.d = 0;
    ++place.image;
  }

  /// Copies the tile's inputs to `window` unless the tile reads in place.
  Tile Locate(const Place& place, float* window) const {
    const auto start = plan_.starts.begin() + place.tile;
    Tile tile{place.image, {place.d, place.h, *start}, *(start + 1) - *start, false, window};
    tile.in_place = ReadsInPlace(tile);
    if (tile.in_place) {
      tile.src = Source(tile);
    } else {
      Hold(tile, window);
    }
    return tile;
  }

  /// Returns the address that the first tap of a tile's first output reads.
  const float* Source(const Tile& tile) const {
    const float* at = src_ + tile.image * plan_.src.n;
    for (size_t d = 0; d < 3; ++d)
      at += (tile.at[d] * plan_.stride[d] - plan_.pad[d]) * plan_.src.d[d];
    return at;
  }

  /// True for tiles that need no window.
  bool ReadsInPlace(const Tile& tile) const {
    if (plan_.source_taps_at.empty()) return false;
    for (size_t d = 0; d < 3; ++d) {
      const int64_t begin = tile.at[d] * plan_.stride[d] - plan_.pad[d];
      const int64_t last =
          begin + (d == 2 ? tile.count - 1 : 0) + (plan_.taps[d] - 1) * plan_.dilation[d];
      if (begin < 0 || last >= plan_.in[d]) return false;
    }
    return true;
  }

  /// Copies the tile's inputs.
  void Hold(const Tile& tile, float* to) const {
    std::array<const float*, kMostTapRows> rows{};
    const float* image = src_ + tile.image * plan_.src.n;
    for (int64_t row = 0; row < plan_.taps[0] * plan_.taps[1]; ++row) {
      const int64_t d =
          tile.at[0] * plan_.stride[0] - plan_.pad[0] + row / plan_.taps[1] * plan_.dilation[0];
      const int64_t h =
          tile.at[1] * plan_.stride[1] - plan_.pad[1] + row % plan_.taps[1] * plan_.dilation[1];
      const bool inside = d >= 0 && d < plan_.in[0] && h >= 0 && h < plan_.in[1];
      rows[static_cast<size_t>(row)] =
          inside ? image + d * plan_.src.d[0] + h * plan_.src.d[1] : nullptr;
    }
    DirectWindow window{};
    window.rows = rows.data();
    window.row_count = plan_.taps[0] * plan_.taps[1];
    window.blocks = plan_.Blocks();
    window.src_c = plan_.src.c;
    window.begin = tile.at[2] * plan_.stride[2] - plan_.pad[2];
    window.end = plan_.in[2];
    window.position = plan_.src.d[2];
    window.stride = plan_.stride[2];
    window.reach = plan_.reach;
    window.window = to;
    plan_.isa->hold(window);
  }

  const float* Weights(int64_t panel) const {
    return weights_ + panel * kDirectVectors * plan_.Taps() * plan_.channels_in * plan_.isa->lanes;
  }

  /// Returns the weights after those of `panel`, among panels [first, last); null when all of them
  /// fit the cache.
  const float* Next(int64_t panel, int64_t first, int64_t last) const {
    return plan_.weights_stay ? nullptr : Weights(panel + 1 < last ? panel + 1 : first);
  }

  /// `first`: no earlier panel has read the tile. `next`: weights to prefetch, or null.
  void Multiply(const Tile& at, int64_t panel, bool first, const float* next) const {
    const int64_t lanes = plan_.isa->lanes;
    const int64_t vector = panel * kDirectVectors;
    DirectTile tile{};
    tile.src = at.src;
    tile.src_c = at.in_place ? plan_.src.c : plan_.BlockFloats();
    tile.inputs = plan_.channels_in;
    tile.taps_at = at.in_place ? plan_.source_taps_at.data() : plan_.taps_at.data();
    tile.ask = plan_.source_taps_at.empty() ? 0 : plan_.source_taps_at.back() + at.count * lanes;
    tile.asked = at.in_place && first ? at.count : 0;
    tile.taps = plan_.Taps();
    tile.weights = Weights(panel);
    tile.next = next;
    tile.bias = epilogue_.bias + vector * lanes;
    tile.count = at.count;
    tile.vectors = std::min<int64_t>(kDirectVectors, plan_.OutputVectors() - vector);
    tile.channels = plan_.channels_out - vector * lanes;
    tile.dst = dst_;
    tile.at = at.image * plan_.dst.n + vector * plan_.dst.c + at.at[0] * plan_.dst.d[0] +
              at.at[1] * plan_.dst.d[1] + at.at[2] * plan_.dst.d[2];
    tile.dst_c = plan_.dst.c;
    tile.step = plan_.dst.d[2];
    plan_.isa->direct(tile, epilogue_);
  }

  const DirectConvPlan& plan_;
  const float* src_;
  const float* weights_;
  const WinogradEpilogue& epilogue_;
  float* dst_;
};

}  // namespace

void CutDirectConv(DirectConvPlan& plan, int threads) {
  // Both limits are parts of a second-level cache: weights that stay in it, and windows next to
  // weights that do not.
  constexpr int64_t kWeightFloats = int64_t{96} << 10, kWindowFloats = int64_t{64} << 10;
  // With up to this many panels a copy costs more than rows that fall into few sets of the caches.
  constexpr int64_t kPanelsInPlace = 4;
  const int64_t lanes = plan.isa->lanes;
  const int64_t tiles = (plan.out[2] + plan.isa->tile_positions - 1) / plan.isa->tile_positions;
  plan.starts.clear();
  for (int64_t tile = 0; tile <= tiles; ++tile) plan.starts.push_back(plan.out[2] * tile / tiles);
  const int64_t most = (plan.out[2] + tiles - 1) / tiles;
  plan.reach = most + (plan.taps[2] - 1) * plan.dilation[2] / plan.stride[2];
  plan.taps_at.clear();
  for (int64_t row = 0; row < plan.taps[0] * plan.taps[1]; ++row) {
    for (int64_t tap = 0; tap < plan.taps[2]; ++tap) {
      const int64_t x = tap * plan.dilation[2];
      plan.taps_at.push_back(row * plan.RowFloats() +
                             (x % plan.stride[2] * plan.reach + x / plan.stride[2]) * lanes);
    }
  }
  plan.source_taps_at.clear();
  if (plan.stride[2] == 1 && plan.src.d[2] == lanes && plan.Panels() <= kPanelsInPlace) {
    for (int64_t tap = 0; tap < plan.Taps(); ++tap) {
      const int64_t row = tap / plan.taps[2];
      plan.source_taps_at.push_back(row / plan.taps[1] * plan.dilation[0] * plan.src.d[0] +
                                    row % plan.taps[1] * plan.dilation[1] * plan.src.d[1] +
                                    tap % plan.taps[2] * plan.dilation[2] * lanes);
    }
  }
  plan.shares = std::max(1, threads);
  const int64_t inputs = plan.batch * plan.in[0] * plan.in[1] * plan.in[2] * plan.channels_in;
  const bool heavy = plan.WeightFloats() > inputs || plan.AllTiles() < plan.shares;
  plan.share_panels = plan.shares > 1 && heavy &&
                      (plan.Panels() % plan.shares == 0 || plan.Panels() >= 4 * plan.shares);
  const int64_t own =
      plan.share_panels ? plan.AllTiles() : (plan.AllTiles() + plan.shares - 1) / plan.shares;
  plan.weights_stay = plan.WeightFloats() <= kWeightFloats;
  const int64_t held =
      plan.weights_stay ? 1
                        : std::clamp<int64_t>(kWindowFloats / plan.WindowFloats(), 1, kMostGroup);
  const int64_t groups = (own + held - 1) / held;
  plan.group = (own + groups - 1) / groups;
}

void PackDirectConvWeights(const DirectConvPlan& plan, const WeightView& weights,
                           const std::vector<double>& scale, float* to) {
  const int64_t lanes = plan.isa->lanes;
  const auto pack = [&](const auto* values, int64_t vector) {
    const int64_t panel = vector / kDirectVectors * kDirectVectors;
    const int64_t width = std::min<int64_t>(kDirectVectors, plan.OutputVectors() - panel) * lanes;
    float* const panel_to =
        to + panel * plan.Taps() * plan.channels_in * lanes + (vector - panel) * lanes;
    // Copies a block of inputs for all outputs, so that its lines of the panel stay in the cache
    // until they are full.
    for (int64_t block = 0; block < plan.channels_in; block += lanes) {
      const int64_t here = std::min(lanes, plan.channels_in - block);
      float* const block_to = panel_to + block * plan.Taps() * width;
      for (int64_t lane = 0; lane < std::min(lanes, plan.channels_out - vector * lanes); ++lane) {
        const int64_t out = vector * lanes + lane;
        const double factor = FactorOf(scale, out);
        const auto* from = values + (out * plan.channels_in + block) * plan.Taps();
        for (int64_t in = 0; in < here; ++in) {
          for (int64_t tap = 0; tap < plan.Taps(); ++tap, ++from)
            block_to[(tap * here + in) * width + lane] = ScaledWeight(*from, factor);
        }
      }
    }
  };
  weights.Visit([&](const auto* values) {
    ParallelRange(plan.OutputVectors(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t vector = begin; vector < end; ++vector) pack(values, vector);
    });
  });
}

void RunDirectConv(const DirectConvPlan& plan, const float* src, const float* weights,
                   const WinogradEpilogue& epilogue, float* dst, float* scratch) {
  const Convolution convolution(plan, src, weights, epilogue, dst);
  const int64_t own = plan.group * plan.WindowFloats();
  ParallelRange(plan.shares, 1, [&](int64_t begin, int64_t end) {
    for (int64_t share = begin; share < end; ++share) {
      const auto part = [&](int64_t all, int64_t number) { return all * number / plan.shares; };
      if (plan.share_panels) {
        convolution.Run(0, plan.AllTiles(), part(plan.Panels(), share),
                        part(plan.Panels(), share + 1), scratch + share * own);
      } else {
        convolution.Run(part(plan.AllTiles(), share), part(plan.AllTiles(), share + 1), 0,
                        plan.Panels(), scratch + share * own);
      }
    }
  });
}

}  // namespace mendel::cpu
