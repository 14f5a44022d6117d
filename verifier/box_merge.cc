#include "verifier/box_merge.h"

#include <algorithm>
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

}  // namespace

std::vector<Box> MergeTouching(std::vector<Box> boxes) {
  bool changed = boxes.size() > 1;
  while (changed) {
    changed = false;
    for (size_t dim = boxes[0].begin.size(); dim-- > 0;) changed = JoinAlong(dim, boxes) || changed;
  }
  std::sort(boxes.begin(), boxes.end());
  return boxes;
}

}  // namespace mendel
