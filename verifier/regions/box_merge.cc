#include "verifier/regions/box_merge.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

namespace mendel {
namespace {

/// Joins boxes that agree in every dimension but `dim` and touch there. Returns whether any were.
bool JoinAlong(size_t dim, std::vector<Box>& boxes) {
  const auto before = [dim](const Box& a, const Box& b) {
    for (size_t d = 0; d < a.begin.size(); ++d) {
      if (d == dim) continue;
      if (a.begin[d] != b.begin[d]) return a.begin[d] < b.begin[d];
      if (a.end[d] != b.end[d]) return a.end[d] < b.end[d];
    }
    return a.begin[dim] < b.begin[dim];
  };
  std::sort(boxes.begin(), boxes.end(), before);
  std::vector<Box> joined;
  for (Box& box : boxes) {
    if (!joined.empty() && joined.back().end[dim] == box.begin[dim]) {
      Box grown = joined.back();
      grown.begin[dim] = box.begin[dim];
      grown.end[dim] = box.end[dim];
      if (grown == box) {
        joined.back().end[dim] = box.end[dim];
        continue;
      }
    }
    joined.push_back(std::move(box));
  }
  const bool changed = joined.size() != boxes.size();
  boxes = std::move(joined);
  return changed;
}

/// Joins until no two boxes have a common face, along `order`'s dimensions in turn.
std::vector<Box> Join(std::vector<Box> boxes, const std::vector<size_t>& order) {
  bool changed = boxes.size() > 1;
  while (changed) {
    changed = false;
    for (size_t dim : order) changed = JoinAlong(dim, boxes) || changed;
  }
  return boxes;
}

/// Positions as cells between all the boxes' faces.
struct Cells {
  std::vector<std::vector<int64_t>> faces;  ///< by dimension, ascending
  std::vector<size_t> extents;              ///< cells along each dimension
  std::vector<bool> held;                   ///< row-major
};

size_t PositionIn(const std::vector<int64_t>& faces, int64_t face) {
  return static_cast<size_t>(std::lower_bound(faces.begin(), faces.end(), face) - faces.begin());
}

/// Calls `visit` with the flat number of every cell in [begin, end).
template <class Visit>
void ForCells(const Cells& cells, const std::vector<size_t>& begin, const std::vector<size_t>& end,
              const Visit& visit) {
  std::vector<size_t> at = begin;
  while (true) {
    size_t flat = 0;
    for (size_t d = 0; d < at.size(); ++d) flat = flat * cells.extents[d] + at[d];
    visit(flat);
    size_t d = at.size();
    while (d > 0 && ++at[d - 1] == end[d - 1]) {
      at[d - 1] = begin[d - 1];
      --d;
    }
    if (d == 0) return;
  }
}

/// Returns nullopt if there would be too many cells.
std::optional<Cells> CutIntoCells(const std::vector<Box>& boxes) {
  constexpr size_t kMostCells = 4096;
  Cells cells;
  size_t count = 1;
  for (size_t d = 0; d < boxes[0].begin.size(); ++d) {
    std::set<int64_t> faces;
    for (const Box& box : boxes) faces.insert({box.begin[d], box.end[d]});
    cells.faces.emplace_back(faces.begin(), faces.end());
    cells.extents.push_back(faces.size() - 1);
    count *= cells.extents.back();
    if (count > kMostCells) return std::nullopt;
  }
  cells.held.resize(count);
  for (const Box& box : boxes) {
    std::vector<size_t> begin, end;
    for (size_t d = 0; d < cells.faces.size(); ++d) {
      begin.push_back(PositionIn(cells.faces[d], box.begin[d]));
      end.push_back(PositionIn(cells.faces[d], box.end[d]));
    }
    ForCells(cells, begin, end, [&](size_t flat) { cells.held[flat] = true; });
  }
  return cells;
}

/// The box of the cells in [begin, end).
Box BoxOf(const Cells& cells, const std::vector<size_t>& begin, const std::vector<size_t>& end) {
  Box box;
  for (size_t d = 0; d < begin.size(); ++d) {
    box.begin.push_back(cells.faces[d][begin[d]]);
    box.end.push_back(cells.faces[d][end[d]]);
  }
  return box;
}

std::vector<Box> SingleCells(const Cells& cells) {
  std::vector<Box> boxes;
  const std::vector<size_t> zero(cells.extents.size());
  std::vector<size_t> at = zero;
  ForCells(cells, zero, cells.extents, [&](size_t flat) {
    if (!cells.held[flat]) return;
    for (size_t d = at.size(); d-- > 0; flat /= cells.extents[d]) at[d] = flat % cells.extents[d];
    std::vector<size_t> next = at;
    for (size_t& position : next) ++position;
    boxes.push_back(BoxOf(cells, at, next));
  });
  return boxes;
}

/// Cells from the first held one on, grown along `order`'s dimensions as far as they are held.
std::vector<Box> Grow(Cells cells, const std::vector<size_t>& order) {
  std::vector<Box> boxes;
  for (size_t flat = 0; flat < cells.held.size(); ++flat) {
    if (!cells.held[flat]) continue;
    std::vector<size_t> begin(cells.extents.size());
    for (size_t d = begin.size(), rest = flat; d-- > 0; rest /= cells.extents[d])
      begin[d] = rest % cells.extents[d];
    std::vector<size_t> end = begin;
    for (size_t& position : end) ++position;
    for (const size_t d : order) {
      while (end[d] < cells.extents[d]) {
        std::vector<size_t> from = begin, to = end;
        from[d] = end[d];
        to[d] = end[d] + 1;
        bool all = true;
        ForCells(cells, from, to, [&](size_t cell) { all = all && cells.held[cell]; });
        if (!all) break;
        ++end[d];
      }
    }
    ForCells(cells, begin, end, [&](size_t cell) { cells.held[cell] = false; });
    boxes.push_back(BoxOf(cells, begin, end));
  }
  return boxes;
}

}  // namespace

std::vector<Box> MergeTouching(std::vector<Box> boxes) {
  if (boxes.size() < 2) return boxes;
  constexpr size_t kMostOrders = 24;
  std::vector<size_t> order(boxes[0].begin.size());
  for (size_t d = 0; d < order.size(); ++d) order[d] = order.size() - 1 - d;
  std::vector<Box> fewest = Join(boxes, order);
  const std::optional<Cells> cells = CutIntoCells(fewest);
  const std::vector<Box> single = cells.has_value() ? SingleCells(*cells) : std::vector<Box>();
  std::sort(order.begin(), order.end());
  for (size_t k = 0; k < kMostOrders && cells.has_value() && fewest.size() > 1; ++k) {
    std::array<std::vector<Box>, 2> attempts = {Join(single, order), Grow(*cells, order)};
    for (std::vector<Box>& attempt : attempts) {
      if (attempt.size() < fewest.size()) fewest = std::move(attempt);
    }
    if (!std::next_permutation(order.begin(), order.end())) break;
  }
  std::sort(fewest.begin(), fewest.end());
  return fewest;
}

}  // namespace mendel
