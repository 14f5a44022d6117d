// Window cells: the elements that two convolutions read differently in one box of outputs, as boxes
// of the value that both read.
//
// Positions are those of a window over padded input: an output p reads u = p * stride - pad + tap *
// dilation, image and spatial dimensions alike (an image has one tap). Both programs' reads are
// functions of u here; where they are not, the caller cuts the box.
#ifndef MENDEL_CORRECTOR_WINDOW_CELLS_H_
#define MENDEL_CORRECTOR_WINDOW_CELLS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "graph/types.h"

namespace mendel {

/// Read positions of one box: values are row-major positions in the source plus one; 0: padding;
/// kUnread: not read.
struct WindowReads {
  static constexpr int64_t kUnread = -1;
  Shape begin;   ///< of u
  Shape extent;  ///< of u
  std::vector<int64_t> first;
  std::vector<int64_t> second;

  WindowReads(Shape from, Shape extents);
  /// False when position `u` already has another read.
  bool Set(const Shape& u, int64_t in_first, int64_t in_second);
};

/// A box of u that only one program reads: u lies at start + step * (u - begin) of the
/// source.
struct WindowCell {
  bool of_first = true;
  Box box;
  Shape start;
  Shape step;
};

/// Disjoint cells for each program: exactly its reads, without padding, that differ from the other
/// program's. `source`: extents of the source in the dimensions of u. nullopt when there are more
/// than `most`.
std::optional<std::vector<WindowCell>> DifferingCells(const WindowReads& reads, const Shape& source,
                                                      size_t most);

}  // namespace mendel

#endif  // MENDEL_CORRECTOR_WINDOW_CELLS_H_
