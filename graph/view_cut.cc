#include "graph/view_cut.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

namespace mendel {
namespace {

// More are not worth their nodes; the whole group of dimensions is then taken.
constexpr int64_t kMaxCells = 64;

/// A consecutive range of one dimension of the view that is a box over the dimension's factors.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  std::vector<std::pair<int64_t, int64_t>>
      factors;  // begin, end within each factor of the dimension's run
};

/// Products of the extents from each dimension to the innermost, largest first; last entry 1.
std::vector<int64_t> SuffixProducts(std::span<const int64_t> extents) {
  std::vector<int64_t> products(extents.size() + 1, 1);
  for (size_t d = extents.size(); d-- > 0;) products[d] = products[d + 1] * extents[d];
  return products;
}

/// Runs of the boundary list that form each dimension.
std::vector<std::pair<size_t, size_t>> Runs(std::span<const int64_t> products,
                                            const std::vector<int64_t>& bounds) {
  const auto at = [&](int64_t product) {
    return static_cast<size_t>(std::find(bounds.begin(), bounds.end(), product) - bounds.begin());
  };
  std::vector<std::pair<size_t, size_t>> runs;
  for (size_t d = 0; d + 1 < products.size(); ++d)
    runs.emplace_back(at(products[d]), at(products[d + 1]));
  return runs;
}

void Refine(std::span<const int64_t> from, std::span<const int64_t> to, ViewGroup& group) {
  const std::vector<int64_t> a = SuffixProducts(from);
  const std::vector<int64_t> b = SuffixProducts(to);
  std::vector<int64_t> bounds = a;
  bounds.insert(bounds.end(), b.begin(), b.end());
  std::sort(bounds.rbegin(), bounds.rend());
  bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
  for (size_t k = 0; k + 1 < bounds.size(); ++k) {
    if (bounds[k] % bounds[k + 1] != 0) {
      group.refined = false;
      group.factors.clear();
      return;
    }
    group.factors.push_back(bounds[k] / bounds[k + 1]);
  }
  group.from_runs = Runs(a, bounds);
  group.to_runs = Runs(b, bounds);
}

/// Appends the ranges that form positions [begin, end) of the dimension whose factors are `sizes`,
/// given those of the outer factors chosen so far (`prefix`, at position `base`).
void Decompose(std::span<const int64_t> sizes, int64_t base,
               std::vector<std::pair<int64_t, int64_t>> prefix, int64_t begin, int64_t end,
               std::vector<Range>& out) {
  if (begin >= end) return;
  const int64_t inner =
      std::accumulate(sizes.begin() + 1, sizes.end(), int64_t{1}, std::multiplies<>());
  const auto rows = [&](int64_t first, int64_t last) {
    std::vector<std::pair<int64_t, int64_t>> factors = prefix;
    factors.emplace_back(first, last);
    for (size_t k = 1; k < sizes.size(); ++k) factors.emplace_back(0, sizes[k]);
    out.push_back({base + first * inner, base + last * inner, std::move(factors)});
  };
  const auto within = [&](int64_t row, int64_t first, int64_t last) {
    std::vector<std::pair<int64_t, int64_t>> factors = prefix;
    factors.emplace_back(row, row + 1);
    Decompose(sizes.subspan(1), base + row * inner, std::move(factors), first - row * inner,
              last - row * inner, out);
  };
  const int64_t first_whole = (begin + inner - 1) / inner;
  const int64_t last_whole = end / inner;
  if (first_whole > last_whole) return within(last_whole, begin, end);
  if (begin < first_whole * inner) within(first_whole - 1, begin, first_whole * inner);
  if (first_whole < last_whole) rows(first_whole, last_whole);
  if (last_whole * inner < end) within(last_whole, last_whole * inner, end);
}

/// The cut of one group: ranges of each of its view dimensions.
using GroupRanges = std::vector<std::vector<Range>>;

int64_t Cells(const GroupRanges& ranges) {
  int64_t count = 1;
  for (const auto& dim : ranges) count *= static_cast<int64_t>(dim.size());
  return count;
}

/// Calls use(chosen range of each dimension) for every cell, row-major, until it returns false.
template <class Use>
void ForEachCell(const GroupRanges& ranges, const Use& use) {
  Shape extents;
  for (const auto& dim : ranges) extents.push_back(static_cast<int64_t>(dim.size()));
  std::vector<int64_t> at(extents.size(), 0);
  do {
    if (!use(at)) return;
  } while (NextIndex(extents, at));
}

/// Begin and end of every factor of the group in one cell.
std::vector<std::pair<int64_t, int64_t>> FactorsOf(const ViewGroup& group,
                                                   const GroupRanges& ranges,
                                                   std::span<const int64_t> cell) {
  std::vector<std::pair<int64_t, int64_t>> factors(group.factors.size());
  for (size_t d = 0; d < ranges.size(); ++d) {
    const Range& range = ranges[d][static_cast<size_t>(cell[d])];
    std::copy(range.factors.begin(), range.factors.end(),
              factors.begin() + static_cast<int64_t>(group.to_runs[d].first));
  }
  return factors;
}

/// The factor of a cell that is no box of the viewed tensor whose range must be split into
/// single positions.
std::optional<size_t> FactorToSplit(const ViewGroup& group,
                                    const std::vector<std::pair<int64_t, int64_t>>& factors) {
  for (const auto& [first, last] : group.from_runs) {
    std::optional<size_t> leading;
    for (size_t k = first; k < last; ++k) {
      const bool whole = factors[k] == std::make_pair(int64_t{0}, group.factors[k]);
      if (leading.has_value() && !whole) return leading;
      if (!leading.has_value() && factors[k].second - factors[k].first > 1) leading = k;
    }
  }
  return std::nullopt;
}

/// Splits every range of the dimension that owns `factor` at its outermost factor with more than
/// one position. A range without one up to `factor` stays.
void Split(const ViewGroup& group, size_t factor, GroupRanges& ranges) {
  size_t d = 0;
  while (factor < group.to_runs[d].first || factor >= group.to_runs[d].second) ++d;
  std::vector<Range> finer;
  for (const Range& range : ranges[d]) {
    size_t k = 0;
    while (k < range.factors.size() && range.factors[k].second - range.factors[k].first == 1) ++k;
    if (k > factor - group.to_runs[d].first) {
      finer.push_back(range);
      continue;
    }
    const int64_t inner =
        (range.end - range.begin) / (range.factors[k].second - range.factors[k].first);
    for (int64_t p = range.factors[k].first; p < range.factors[k].second; ++p) {
      Range one = range;
      one.begin = range.begin + (p - range.factors[k].first) * inner;
      one.end = one.begin + inner;
      one.factors[k] = {p, p + 1};
      finer.push_back(std::move(one));
    }
  }
  ranges[d] = std::move(finer);
}

/// Ranges of a group's view dimensions whose cells are all boxes of the viewed tensor; nullopt when
/// they are too many.
std::optional<GroupRanges> CutGroup(const ViewGroup& group, const Box& wanted) {
  if (!group.refined) return std::nullopt;
  GroupRanges ranges;
  for (size_t d = 0; d < group.to_runs.size(); ++d) {
    const auto [first, last] = group.to_runs[d];
    const size_t dim = group.to_begin + d;
    std::vector<Range> list;
    if (first == last) {
      list.push_back({0, 1, {}});
    } else {
      Decompose(std::span(group.factors).subspan(first, last - first), 0, {}, wanted.begin[dim],
                wanted.end[dim], list);
    }
    ranges.push_back(std::move(list));
  }
  for (;;) {
    if (Cells(ranges) > kMaxCells) return std::nullopt;
    std::optional<size_t> split;
    ForEachCell(ranges, [&](std::span<const int64_t> cell) {
      split = FactorToSplit(group, FactorsOf(group, ranges, cell));
      return !split.has_value();
    });
    if (!split.has_value()) return ranges;
    Split(group, *split, ranges);
  }
}

/// One range over each whole dimension of the group.
GroupRanges WholeGroup(const ViewGroup& group, const Shape& to) {
  GroupRanges ranges;
  for (size_t d = group.to_begin; d < group.to_end; ++d) {
    Range range{0, to[d], {}};
    if (group.refined) {
      const auto [first, last] = group.to_runs[d - group.to_begin];
      for (size_t k = first; k < last; ++k) range.factors.emplace_back(0, group.factors[k]);
    }
    ranges.push_back({std::move(range)});
  }
  return ranges;
}

/// The viewed ranges of one cell, written into `box`.
void ViewedRanges(const ViewGroup& group, const GroupRanges& ranges, std::span<const int64_t> cell,
                  Box& box) {
  if (!group.refined) return;  // whole
  const auto factors = FactorsOf(group, ranges, cell);
  for (size_t d = 0; d < group.from_runs.size(); ++d) {
    const auto [first, last] = group.from_runs[d];
    int64_t begin = 0;
    int64_t end = 0;  // last position
    for (size_t k = first; k < last; ++k) {
      begin = begin * group.factors[k] + factors[k].first;
      end = end * group.factors[k] + factors[k].second - 1;
    }
    box.begin[group.from_begin + d] = begin;
    box.end[group.from_begin + d] = end + 1;
  }
}

}  // namespace

std::vector<ViewGroup> GroupView(const Shape& from, const Shape& to) {
  std::vector<ViewGroup> groups;
  size_t i = 0;
  size_t j = 0;
  while (i < from.size() || j < to.size()) {
    ViewGroup group{i, i, j, j, {}, {}, {}, true};
    int64_t left = i < from.size() ? from[i++] : 1;
    int64_t right = j < to.size() ? to[j++] : 1;
    while (left != right) {
      if (left < right) {
        left *= from[i++];
      } else {
        right *= to[j++];
      }
    }
    group.from_end = i;
    group.to_end = j;
    Refine(std::span(from).subspan(group.from_begin, i - group.from_begin),
           std::span(to).subspan(group.to_begin, j - group.to_begin), group);
    groups.push_back(std::move(group));
  }
  return groups;
}

ViewCut CutView(const Shape& from, const Shape& to, const Box& wanted) {
  const std::vector<ViewGroup> groups = GroupView(from, to);
  std::vector<GroupRanges> cuts;
  int64_t cells = 1;
  for (const ViewGroup& group : groups) {
    std::optional<GroupRanges> cut = CutGroup(group, wanted);
    if (!cut.has_value() || cells * Cells(*cut) > kMaxCells) cut = WholeGroup(group, to);
    cells *= Cells(*cut);
    cuts.push_back(*std::move(cut));
  }
  ViewCut result{Box::Whole(to), {}, {}};
  Shape grid;
  for (const GroupRanges& cut : cuts) {
    for (const std::vector<Range>& dim : cut) {
      const size_t d = result.ranges.size();
      result.covered.begin[d] = dim.front().begin;
      result.covered.end[d] = dim.back().end;
      result.ranges.emplace_back();
      for (const Range& range : dim) result.ranges.back().emplace_back(range.begin, range.end);
      grid.push_back(static_cast<int64_t>(dim.size()));
    }
  }
  std::vector<int64_t> cell(grid.size(), 0);
  do {
    Box box = Box::Whole(from);
    for (size_t g = 0; g < groups.size(); ++g) {
      const size_t first = groups[g].to_begin;
      ViewedRanges(groups[g], cuts[g],
                   std::span<const int64_t>(cell).subspan(first, groups[g].to_end - first), box);
    }
    result.cells.push_back(std::move(box));
  } while (NextIndex(grid, cell));
  return result;
}

}  // namespace mendel
