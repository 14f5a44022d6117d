#include "graph/positions.h"

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace mendel {

Positions Positions::Range(int64_t begin, int64_t count, int64_t step) {
  Positions positions;
  positions.begin_ = begin;
  positions.count_ = count;
  positions.step_ = count > 1 ? step : 1;
  if (count == 0) positions.begin_ = 0;
  return positions;
}

Positions Positions::List(std::vector<int64_t> list) {
  const int64_t count = static_cast<int64_t>(list.size());
  const int64_t step = count > 1 ? list[1] - list[0] : 1;
  bool range = true;
  for (size_t i = 0; i < list.size() && range; ++i)
    range = list[i] >= 0 && list[i] == list[0] + static_cast<int64_t>(i) * step;
  if (range) return Range(count > 0 ? list[0] : 0, count, step);
  Positions positions;
  positions.count_ = count;
  positions.list_ = std::move(list);
  return positions;
}

std::vector<int64_t> Positions::ToList() const {
  if (!list_.empty()) return list_;
  std::vector<int64_t> list(static_cast<size_t>(count_));
  for (int64_t i = 0; i < count_; ++i) list[static_cast<size_t>(i)] = begin_ + i * step_;
  return list;
}

std::string PositionsString(const Positions& positions) {
  const int64_t n = positions.size();
  if (positions.IsRange() && n > 0) {
    const std::string ends = Cat(positions[0], ":", positions[n - 1] + 1);
    return positions.step() == 1 ? ends : Cat(ends, ":", positions.step());
  }
  std::string text = "[";
  for (int64_t i = 0; i < n; ++i) text += Cat(i == 0 ? "" : ", ", positions[i]);
  return text + "]";
}

Positions UnionOf(const Positions& a, const Positions& b) {
  std::vector<int64_t> all = a.ToList();
  const std::vector<int64_t> more = b.ToList();
  all.insert(all.end(), more.begin(), more.end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  if (!all.empty() && all.front() == kAbsent) all.erase(all.begin());
  return Positions::List(std::move(all));
}

Grid WholeGrid(const Shape& shape) {
  Grid grid;
  for (int64_t extent : shape) grid.push_back(Positions::Whole(extent));
  return grid;
}

bool IsWhole(const Grid& grid, const Shape& shape) {
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!grid[d].IsWhole(shape[d])) return false;
  }
  return true;
}

Shape ExtentsOf(const Grid& grid) {
  Shape shape;
  for (const Positions& positions : grid) shape.push_back(positions.size());
  return shape;
}

std::vector<int64_t> FlatPositions(const Shape& shape, const Grid& grid) {
  std::vector<int64_t> flat = {0};
  for (size_t d = 0; d < shape.size(); ++d) {
    std::vector<int64_t> next;
    next.reserve(flat.size() * static_cast<size_t>(grid[d].size()));
    for (int64_t base : flat) {
      for (int64_t i = 0; i < grid[d].size(); ++i) next.push_back(base * shape[d] + grid[d][i]);
    }
    flat = std::move(next);
  }
  return flat;
}

Grid HullOfFlat(const Shape& shape, const std::vector<int64_t>& flat) {
  std::vector<std::vector<int64_t>> lists(shape.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t inner =
        NumElements(Shape(shape.begin() + static_cast<int64_t>(d) + 1, shape.end()));
    std::vector<bool> met(static_cast<size_t>(shape[d]), false);
    for (int64_t at : flat) met[static_cast<size_t>(at / inner % shape[d])] = true;
    for (int64_t p = 0; p < shape[d]; ++p) {
      if (met[static_cast<size_t>(p)]) lists[d].push_back(p);
    }
  }
  Grid grid;
  for (std::vector<int64_t>& list : lists) grid.push_back(Positions::List(std::move(list)));
  return grid;
}

Grid GridOf(const Box& box) {
  Grid grid;
  for (size_t d = 0; d < box.begin.size(); ++d)
    grid.push_back(Positions::Range(box.begin[d], box.end[d] - box.begin[d]));
  return grid;
}

}  // namespace mendel
