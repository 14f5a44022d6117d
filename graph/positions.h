// Positions along the axes of a tensor, listed one by one: what a program needs of a value, or what
// an operator reads of an input.
#ifndef MENDEL_GRAPH_POSITIONS_H_
#define MENDEL_GRAPH_POSITIONS_H_

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "graph/types.h"

namespace mendel {

/// A position that no tensor has: what is read there is a fill value.
inline constexpr int64_t kAbsent = -1;

/// Positions along one axis, in order, with repetitions: begin, begin + step, .. or any list. Equal
/// sequences compare equal.
class Positions {
 public:
  Positions() = default;
  static Positions Range(int64_t begin, int64_t count, int64_t step = 1);
  static Positions Whole(int64_t extent) { return Range(0, extent); }
  static Positions List(std::vector<int64_t> list);

  int64_t size() const { return count_; }
  int64_t operator[](int64_t i) const {
    return list_.empty() ? begin_ + i * step_ : list_[static_cast<size_t>(i)];
  }
  /// A sequence with one step; a list with kAbsent is none.
  bool IsRange() const { return list_.empty(); }
  int64_t step() const { return step_; }
  bool IsWhole(int64_t extent) const {
    return IsRange() && begin_ == 0 && step_ == 1 && count_ == extent;
  }
  std::vector<int64_t> ToList() const;
  bool operator==(const Positions&) const = default;
  auto operator<=>(const Positions&) const = default;

 private:
  int64_t begin_ = 0;
  int64_t count_ = 0;
  int64_t step_ = 1;
  std::vector<int64_t> list_;  ///< empty for ranges
};

/// "0:8", "1:9:2" or "[0, 3, -1]".
std::string PositionsString(const Positions& positions);
/// The positions of both, ascending, once each, without kAbsent.
Positions UnionOf(const Positions& a, const Positions& b);

/// One Positions an axis: the elements at all their combinations.
using Grid = std::vector<Positions>;
Grid WholeGrid(const Shape& shape);
bool IsWhole(const Grid& grid, const Shape& shape);
Shape ExtentsOf(const Grid& grid);
/// Row-major offsets of the grid's elements in a tensor of this shape.
std::vector<int64_t> FlatPositions(const Shape& shape, const Grid& grid);
/// The least grid that contains the elements at these offsets, ascending.
Grid HullOfFlat(const Shape& shape, const std::vector<int64_t>& flat);
/// The boxes' positions.
Grid GridOf(const Box& box);

}  // namespace mendel

#endif  // MENDEL_GRAPH_POSITIONS_H_
