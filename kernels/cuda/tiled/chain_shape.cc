#include "kernels/cuda/tiled/chain_shape.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/status.h"
#include "graph/window.h"
#include "kernels/cuda/fusion/preamble.h"

namespace mendel::cuda {
namespace {

ProductExtents ExtentsOf(const Graph& graph, int32_t product) {
  return WithView(graph, product, [&](const NodeView& view) {
    return FindOperatorText(graph.node(product).op->name)->product.extents(view);
  });
}

/// The windows over images, then over positions, that the second convolution reads.
std::vector<Window> WindowsOfImages(const Graph& graph, const ProductChain& chain) {
  return WithView(graph, chain.product(1), [&](const NodeView& view) {
    const Shape &x = view.inputs[0].shape, &w = view.inputs[1].shape;
    std::vector<Window> windows = {{.input = x[0]}};
    for (const Window& one :
         WindowsOf(Shape(x.begin() + 2, x.end()), Shape(w.begin() + 2, w.end()), view.attrs)) {
      windows.push_back(one);
    }
    return windows;
  });
}

KeptAxis AxisOf(const Window& window, int64_t tile) {
  KeptAxis axis{window.OutputExtent(), tile, window.input, -window.pad_begin, tile * window.stride};
  axis.step = window.kernel == 1 ? window.stride : std::gcd(window.stride, window.dilation);
  axis.count = ((tile - 1) * window.stride + (window.kernel - 1) * window.dilation) / axis.step + 1;
  if (window.kernel > 1 && axis.step == 1 &&
      tile == axis.results) {  // the only tile keeps no padding
    const int64_t end = std::min(axis.input, axis.first + axis.count);
    axis.first = std::max<int64_t>(0, axis.first);
    axis.count = std::max<int64_t>(1, end - axis.first);
  }
  return axis;
}

/// Calls `with` for every box of at most `positions` positions for which no smaller box has as few
/// tiles along an axis.
template <class Function>
void ForBoxes(const std::vector<Window>& windows, int64_t positions, std::vector<KeptAxis>& axes,
              const Function& with) {
  if (axes.size() == windows.size()) return with(axes);
  const Window& window = windows[axes.size()];
  const int64_t results = window.OutputExtent();
  for (int64_t tile = 1; tile <= std::min(results, positions); ++tile) {
    if (tile > 1 && CeilDiv(results, tile) == CeilDiv(results, tile - 1)) continue;
    axes.push_back(AxisOf(window, tile));
    ForBoxes(windows, positions / tile, axes, with);
    axes.pop_back();
  }
}

class ShapeFinder {
 public:
  ShapeFinder(const Graph& graph, const ProductChain& chain, const TiledCandidate& candidate)
      : graph_(graph),
        chain_(chain),
        tile_(candidate.tile),
        before_(SharedBeforeKept(chain, candidate)) {
    shape_.parts = candidate.parts;
    shape_.first = ExtentsOf(graph, chain.product(0));
    shape_.second = ExtentsOf(graph, chain.product(1));
    real_bytes_ = RealName(graph.type(chain.kept()).dtype) == "float" ? 4 : 8;
  }

  absl::StatusOr<ChainShape> Run() {
    const std::string_view name = graph_.node(chain_.product(1)).op->name;
    shape_.of_rows = FindOperatorText(name)->product.left_has_rows;
    shape_.across = shape_.of_rows ? tile_.rows : tile_.columns;
    shape_.other = shape_.of_rows ? tile_.columns : tile_.rows;
    shape_.limits[1] = shape_.of_rows ? shape_.second.columns : shape_.second.rows;
    if (const int64_t most = CeilDiv(shape_.limits[1], shape_.other); shape_.parts > most) {
      return InvalidInput(shape_.parts, " parts of ", most, " tiles of the second product");
    }
    const bool refines = chain_.kept() != graph_.node(chain_.product(1)).inputs[chain_.operand];
    if (refines && tile_.threads() < tile_.rows)
      return InvalidInput(tile_.threads(), " threads for ", tile_.rows, " rows");
    shape_.of_rows ? OfRows() : OfImages();
    if (shape_.group_depth == 0)
      return Unsupported("groups of both convolutions that do not divide one another");
    const int64_t bytes = Bytes(shape_);
    if (bytes > kMostShared)
      return InvalidInput(bytes, " bytes of shared memory, more than ", kMostShared);
    return std::move(shape_);
  }

 private:
  int64_t Bytes(const ChainShape& shape) const {
    return (before_ + shape.KeptElements()) * real_bytes_;
  }

  void OfRows() {
    shape_.depth = shape_.group_depth = shape_.limits[0] = shape_.first.columns;
    shape_.axes = {{shape_.second.rows, tile_.rows, shape_.second.rows, 0, tile_.rows, tile_.rows}};
    shape_.in_place = true;
    Keep(shape_);
  }

  void OfImages() {
    const int64_t a = shape_.first.rows;  // channels of a group, of both convolutions
    const int64_t b = graph_.type({chain_.product(0), 0}).shape[1] / shape_.second.batch;
    shape_.depth = b;
    if (a % b != 0 && b % a != 0) return;
    shape_.groups = std::max<int64_t>(1, b / a);
    shape_.group_depth = shape_.limits[0] = std::min(a, b);
    const std::vector<Window> windows = WindowsOfImages(graph_, chain_);
    shape_.in_place = std::all_of(windows.begin(), windows.end(),
                                  [](const Window& window) { return window.kernel == 1; });
    std::vector<KeptAxis> axes;
    double least = std::numeric_limits<double>::infinity();
    int64_t smallest = std::numeric_limits<int64_t>::max();
    ChainShape best = shape_;
    ForBoxes(windows, tile_.columns, axes, [&](const std::vector<KeptAxis>& box) {
      ChainShape shape = shape_;
      shape.axes = box;
      Keep(shape);
      const int64_t bytes = Bytes(shape);
      const double products = static_cast<double>(shape.Blocks()) * shape.BlockProducts(tile_);
      // If all boxes are too large, the smallest one remains, which the refusal reports.
      if (bytes > kMostShared ? bytes >= smallest : products >= least) return;
      if (bytes <= kMostShared) least = products;
      smallest = std::min(smallest, bytes > kMostShared ? bytes : kMostShared + 1);
      best = std::move(shape);
    });
    shape_ = std::move(best);
  }

  void Keep(ChainShape& shape) const {
    shape.pitch = WholePacks(shape.in_place ? shape.across + kTilePadding : shape.Kept());
    shape.padded_depth =
        shape.in_place ? CeilDiv(shape.depth, tile_.depth) * tile_.depth : shape.depth;
  }

  const Graph& graph_;
  const ProductChain& chain_;
  const Tile tile_;
  const int64_t before_;
  int64_t real_bytes_ = 4;
  ChainShape shape_;
};

}  // namespace

int64_t ChainShape::Results() const {
  int64_t count = 1;
  for (const KeptAxis& axis : axes) count *= axis.tile;
  return count;
}
int64_t ChainShape::Kept() const {
  int64_t count = 1;
  for (const KeptAxis& axis : axes) count *= axis.count;
  return count;
}
int64_t ChainShape::Tiles() const {
  int64_t count = 1;
  for (const KeptAxis& axis : axes) count *= axis.tiles();
  return count;
}
int64_t ChainShape::OtherTiles() const { return CeilDiv(CeilDiv(limits[1], other), parts); }

bool ChainShape::LieSideBySide(int64_t lanes) const {
  if (of_rows) return second.result_run % lanes == 0;
  int64_t tile = 1, extent = 1;
  for (size_t d = axes.size() - 1; d > 0; --d) {
    tile *= axes[d].tile;
    extent *= axes[d].results;
    if (axes[d].tile < axes[d].results) break;
  }
  return tile % lanes == 0 && extent % lanes == 0;
}

double ChainShape::BlockProducts(const Tile& tile) const {
  const auto sums = [&](const ProductExtents& extents) {
    return CeilDiv(extents.depth, tile.depth) * tile.depth;
  };
  const int64_t tiles = groups * CeilDiv(limits[0], other) * CeilDiv(Kept(), across);
  return static_cast<double>(tiles * sums(first) + OtherTiles() * sums(second)) * tile.rows *
         tile.columns;
}

absl::StatusOr<ChainShape> ShapeOfChain(const Graph& graph, const ProductChain& chain,
                                        const TiledCandidate& candidate) {
  return ShapeFinder(graph, chain, candidate).Run();
}

int64_t SharedBeforeKept(const ProductChain& chain, const TiledCandidate& candidate) {
  const int64_t tiles = SharedElements(candidate);
  return chain.second.row < 0 ? tiles : std::max<int64_t>(tiles, candidate.tile.threads());
}

std::vector<TiledCandidate> RankedChains(const Graph& graph, const ProductChain& chain,
                                         int64_t real_bytes, int multiprocessors) {
  constexpr double kMostPadding = 4;
  constexpr size_t kMostChains = 2;
  std::vector<std::pair<double, TiledCandidate>> ranked;
  for (const Tile& tile : OfferedTiles()) {
    for (const int parts : {1, 2, 4}) {
      const TiledCandidate candidate{tile, TiledFusion::kChain, parts};
      if (!ParseCandidate(CandidateName(candidate), real_bytes).ok()) continue;
      const auto shape = ShapeOfChain(graph, chain, candidate);
      if (!shape.ok()) continue;
      const auto needed = [](const ProductExtents& extents) {
        return static_cast<double>(extents.batch * extents.rows * extents.columns) *
               static_cast<double>(extents.depth);
      };
      const double products = shape->BlockProducts(tile);
      if (products * static_cast<double>(shape->Blocks()) >
          kMostPadding * (needed(shape->first) + needed(shape->second)))
        continue;
      const double read = products * (1.0 / tile.rows + 1.0 / tile.columns);
      const BlockWork work{
          shape->Blocks(), products, read * static_cast<double>(real_bytes),
          static_cast<int64_t>(products /
                               (static_cast<double>(tile.rows) * tile.columns * tile.depth)),
          (SharedBeforeKept(chain, candidate) + shape->KeptElements()) * real_bytes};
      ranked.emplace_back(CyclesOf(candidate, work, real_bytes, multiprocessors), candidate);
    }
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<TiledCandidate> offered;
  for (size_t k = 0; k < std::min(kMostChains, ranked.size()); ++k)
    offered.push_back(ranked[k].second);
  return offered;
}

}  // namespace mendel::cuda
