// Sliding windows (convolutions and pools) at output positions listed one by one.
#ifndef MENDEL_GRAPH_WINDOW_GRID_H_
#define MENDEL_GRAPH_WINDOW_GRID_H_

#include <optional>

#include "graph/grid.h"
#include "graph/window.h"

namespace mendel {

/// The window that computes the outputs `computed` from input positions `input` alone.
struct WindowGrid {
  Positions computed;
  Positions input;  ///< kAbsent: padding
  int64_t first_tap = 0;
  Window window;  ///< on `input`; its kernel is what remains of the taps
};
/// `wanted` is ascending. `trims`: taps that read nothing but padding may be left out. `absent`:
/// padding may stand among the input positions. nullopt when the outputs read padding only.
std::optional<WindowGrid> RestrictWindow(const Window& window, const Positions& wanted, bool trims,
                                         bool absent);

/// A pool at the wanted grid; `count_padding`: what the window counts beyond the input matters.
std::optional<GridRestriction> RestrictPoolGrid(const GridRequest& request, bool count_padding);

}  // namespace mendel

#endif  // MENDEL_GRAPH_WINDOW_GRID_H_
