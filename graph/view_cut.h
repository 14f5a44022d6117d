// A view has the same elements in row-major order under another shape. This file converts boxes of
// a view to boxes of the viewed tensor.
#ifndef MENDEL_GRAPH_VIEW_CUT_H_
#define MENDEL_GRAPH_VIEW_CUT_H_

#include <vector>

#include "graph/types.h"

namespace mendel {

/// Dimensions of two shapes that contain the same elements: from[from_begin, from_end) and
/// to[to_begin, to_end) have equal products, and no smaller split does.
struct ViewGroup {
  size_t from_begin = 0;
  size_t from_end = 0;
  size_t to_begin = 0;
  size_t to_end = 0;
  /// Common factors, outermost first. Each dimension of both sides is the product of consecutive
  /// factors; a dimension of extent one has none. Empty with a larger extent: no common factors
  /// exist ([2,3] viewed as [3,2]).
  std::vector<int64_t> factors;
  /// The run of factors of each dimension: [first, last).
  std::vector<std::pair<size_t, size_t>> from_runs;
  std::vector<std::pair<size_t, size_t>> to_runs;
  bool refined = true;
};

/// Both shapes have the same number of elements, which is not zero.
std::vector<ViewGroup> GroupView(const Shape& from, const Shape& to);

/// A box of a view, cut so that every cell is a box of the viewed tensor too.
struct ViewCut {
  /// The box that the cells cover: the wanted one, or more where it could not be cut.
  Box covered;
  /// Cells along each dimension of the view, as consecutive ranges.
  std::vector<std::vector<std::pair<int64_t, int64_t>>> ranges;
  /// The viewed box of every cell, row-major over the grid of ranges.
  std::vector<Box> cells;
};

ViewCut CutView(const Shape& from, const Shape& to, const Box& wanted);

}  // namespace mendel

#endif  // MENDEL_GRAPH_VIEW_CUT_H_
