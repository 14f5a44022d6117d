// The regions and layouts that are proposed.

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "base/status.h"
#include "graph/rewrite.h"
#include "mutator/layout.h"
#include "mutator/region.h"

namespace mendel {
namespace {

constexpr int64_t kMaxTiles = 16;
constexpr int64_t kManyRows = 64;

/// Divisors of `count` worth trying as numbers of tiles: the smallest, the middle and the largest
/// up to 16; 2 where none divides.
Ints TileCounts(int64_t count) {
  Ints divisors;
  for (int64_t k = 2; k <= std::min(count, kMaxTiles); ++k) {
    if (count % k == 0) divisors.push_back(k);
  }
  if (divisors.empty() && count > 2) return {2};
  if (divisors.size() > 3)
    divisors = {divisors.front(), divisors[divisors.size() / 2], divisors.back()};
  return divisors;
}

/// Rows and columns of `count` tiles, as square as can be; where the count is prime, with tiles to
/// spare.
std::pair<int64_t, int64_t> RowsAndColumns(int64_t count) {
  int64_t columns = 1, root = 1;
  for (int64_t k = 1; k * k <= count; ++k) {
    root = k;
    if (count % k == 0) columns = k;
  }
  if (columns == 1 && count > 2) columns = std::max<int64_t>(2, root);
  return {(count + columns - 1) / columns, columns};
}

}  // namespace

std::vector<Layout> TileLayouts(const Graph& region, Move move) {
  const size_t rank = SpatialRank(region);
  const Shape& shape = region.type(region.outputs()[0].value).shape;
  const bool images = move == Move::kBatchToSpace;
  // Cutting one image seldom wins: few choices, across the longer side, four stripes of large
  // images only.
  size_t side = rank > 1 ? rank - 2 : 0;
  if (!images && rank > 1 && shape[rank + 1] > shape[rank]) side = rank - 1;
  const int64_t rows = shape[side + 2];
  const Ints counts = images ? TileCounts(shape[0]) : (rows >= kManyRows ? Ints{2, 4} : Ints{2});
  std::set<Ints> factors;
  for (int64_t count : counts) {
    Ints along(rank, 1);
    along[side] = count;
    factors.insert(along);
  }
  if (!counts.empty() && rank > 1) {
    const int64_t count = images ? counts.back() : 4;
    Ints across(rank, 1), both(rank, 1), deep(rank, 1);
    across[rank - 1] = deep[0] = images ? count : 2;
    std::tie(both[rank - 2], both[rank - 1]) = RowsAndColumns(count);
    factors.insert(both);
    if (images) factors.insert(across);
    if (images || rank == 3) factors.insert(deep);
  }
  std::vector<Layout> layouts;
  for (const Ints& list : factors) layouts.push_back({move, list, false});
  return layouts;
}

std::vector<Layout> ResidueLayouts(const Graph& region, Move move) {
  Ints factors(SpatialRank(region), 0);
  for (size_t id = 0; id < region.nodes().size(); ++id) {
    if (!IsWindowNode(region, static_cast<int32_t>(id))) continue;
    const std::vector<Window> windows = WindowsOfNode(region, static_cast<int32_t>(id));
    for (size_t d = 0; d < factors.size(); ++d) {
      if (windows[d].kernel > 1) factors[d] = std::gcd(factors[d], windows[d].dilation);
    }
  }
  for (int64_t& factor : factors) factor = std::max<int64_t>(factor, 1);
  if (std::all_of(factors.begin(), factors.end(), [](int64_t f) { return f == 1; })) return {};
  return {{move, factors, false}};
}

std::vector<Match> MatchLayouts(
    const Graph& graph, int32_t node, int max_windows, double max_share,
    const std::function<std::vector<Layout>(const Graph& region)>& layouts) {
  struct Candidate {
    Layout layout;
    std::vector<int32_t> smallest, largest, several;
  };
  std::vector<Candidate> candidates;
  for (const std::vector<int32_t>& nodes : RegionsEndingAt(graph, node, max_windows)) {
    const auto place = MakeSubprogram(graph, nodes);
    if (!place.ok()) continue;
    const auto region = Extract(graph, *place);
    if (!region.ok()) continue;
    for (const Layout& layout : layouts(*region)) {
      const auto wrong = WrongIn(*region, layout);
      if (!wrong.ok() || wrong->share > max_share) continue;
      auto same = std::find_if(candidates.begin(), candidates.end(), [&](const Candidate& c) {
        return c.layout.factors == layout.factors;
      });
      if (same == candidates.end()) same = candidates.insert(same, {layout, {}, {}, {}});
      (place->outputs.size() > 1 ? same->several
       : same->smallest.empty()  ? same->smallest
                                 : same->largest) = nodes;
    }
  }
  std::vector<Match> matches;
  for (const Candidate& candidate : candidates) {
    std::map<std::string, int64_t> choices;
    for (size_t d = 0; d < candidate.layout.factors.size(); ++d)
      choices[Cat("dim", d + 2)] = candidate.layout.factors[d];
    for (const std::vector<int32_t>* nodes :
         {&candidate.smallest, &candidate.largest, &candidate.several}) {
      if (!nodes->empty()) matches.push_back({*nodes, choices});
    }
  }
  return matches;
}

Ints FactorsOf(const Match& match, size_t rank) {
  Ints factors;
  for (size_t d = 0; d < rank; ++d) {
    const auto choice = match.choices.find(Cat("dim", d + 2));
    factors.push_back(choice == match.choices.end() ? 1 : choice->second);
  }
  return factors;
}

}  // namespace mendel
