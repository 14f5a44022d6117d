#include "corrector/window_cells.h"

#include <algorithm>
#include <utility>

namespace mendel {
namespace {

/// Grows cells of one program over the positions that it reads alone.
class CellGrower {
 public:
  CellGrower(const WindowReads& reads, bool first, const Shape& source)
      : reads_(reads),
        own_(first ? reads.first : reads.second),
        other_(first ? reads.second : reads.first),
        source_(source) {
    taken_.assign(own_.size(), false);
  }

  bool IsOpen(const Shape& at) const {
    const size_t flat = Flat(at);
    return own_[flat] > 0 && own_[flat] != other_[flat] && !taken_[flat];
  }

  /// The largest cell that grows from `at`, the last dimension first. Coordinates count from
  /// reads.begin.
  WindowCell Grow(const Shape& at) {
    WindowCell cell{true, {at, at}, Coordinates(own_[Flat(at)]), Shape(at.size(), 1)};
    for (int64_t& end : cell.box.end) ++end;
    for (size_t d = at.size(); d-- > 0;) {
      bool known = false;  // the step along d
      int64_t end = cell.box.end[d];
      for (int64_t next = end; next < reads_.extent[d]; ++next) {
        const std::optional<bool> fits = Fits(cell, d, next, known);
        if (fits.has_value() && !*fits) break;
        if (fits.has_value())
          end = next + 1;  // a slab that nothing reads is kept only between others
      }
      cell.box.end[d] = end;
    }
    Take(cell);
    for (size_t d = 0; d < at.size(); ++d) {
      cell.box.begin[d] += reads_.begin[d];
      cell.box.end[d] += reads_.begin[d];
    }
    return cell;
  }

 private:
  size_t Flat(const Shape& at) const { return static_cast<size_t>(FlatIndex(reads_.extent, at)); }

  Shape Coordinates(int64_t value) const {
    Shape at(source_.size());
    --value;
    for (size_t d = source_.size(); d-- > 0;) {
      at[d] = value % source_[d];
      value /= source_[d];
    }
    return at;
  }

  /// Can the cell take position `next` of dimension d? nullopt: nothing reads that slab.
  std::optional<bool> Fits(WindowCell& cell, size_t d, int64_t next, bool& known) const {
    Box slab = cell.box;
    slab.begin[d] = next;
    slab.end[d] = next + 1;
    const Shape extents = slab.Extents();
    Shape offset(extents.size(), 0);
    bool read = false;
    do {
      Shape at = slab.begin;
      for (size_t k = 0; k < at.size(); ++k) at[k] += offset[k];
      if (own_[Flat(at)] == WindowReads::kUnread) continue;
      if (!IsOpen(at)) return false;
      const Shape lies = Coordinates(own_[Flat(at)]);
      const int64_t moved = lies[d] - cell.start[d];
      const int64_t steps = next - cell.box.begin[d];
      if (!known) {
        if (moved <= 0 || moved % steps != 0) return false;
        cell.step[d] = moved / steps;
        known = true;
      }
      for (size_t k = 0; k < at.size(); ++k) {
        if (lies[k] != cell.start[k] + cell.step[k] * (at[k] - cell.box.begin[k])) return false;
      }
      read = true;
    } while (NextIndex(extents, offset));
    return read ? std::optional<bool>(true) : std::nullopt;
  }

  void Take(const WindowCell& cell) {
    const Shape extents = cell.box.Extents();
    Shape offset(extents.size(), 0);
    do {
      Shape at = cell.box.begin;
      for (size_t k = 0; k < at.size(); ++k) at[k] += offset[k];
      taken_[Flat(at)] = true;
    } while (NextIndex(extents, offset));
  }

  const WindowReads& reads_;
  const std::vector<int64_t>& own_;
  const std::vector<int64_t>& other_;
  const Shape& source_;
  std::vector<bool> taken_;
};

}  // namespace

WindowReads::WindowReads(Shape from, Shape extents)
    : begin(std::move(from)), extent(std::move(extents)) {
  first.assign(static_cast<size_t>(NumElements(extent)), kUnread);
  second = first;
}

bool WindowReads::Set(const Shape& u, int64_t in_first, int64_t in_second) {
  Shape at = u;
  for (size_t d = 0; d < at.size(); ++d) at[d] -= begin[d];
  const size_t flat = static_cast<size_t>(FlatIndex(extent, at));
  const bool fresh = first[flat] == kUnread;
  if (!fresh) return first[flat] == in_first && second[flat] == in_second;
  first[flat] = in_first;
  second[flat] = in_second;
  return true;
}

std::optional<std::vector<WindowCell>> DifferingCells(const WindowReads& reads, const Shape& source,
                                                      size_t most) {
  std::vector<WindowCell> cells;
  for (const bool first : {true, false}) {
    CellGrower grower(reads, first, source);
    Shape at(reads.extent.size(), 0);
    do {
      if (!grower.IsOpen(at)) continue;
      if (cells.size() == most) return std::nullopt;
      cells.push_back(grower.Grow(at));
      cells.back().of_first = first;
    } while (NextIndex(reads.extent, at));
  }
  return cells;
}

}  // namespace mendel
