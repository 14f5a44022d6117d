// Counts the elements of every value that one element of a claim is computed from, at most.
//
// A wrong claim differs in some element, and a test misses it only where that element's own
// operands of oracles meet by chance: operands that only other elements read do not count.
#ifndef MENDEL_VERIFIER_REGIONS_ELEMENT_CONE_H_
#define MENDEL_VERIFIER_REGIONS_ELEMENT_CONE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "verifier/certify/numbering.h"

namespace mendel {

/// Follows boxes by their extents, wherever they are, from one element backwards. Not thread-safe.
class ElementCone {
 public:
  /// `free`: numbers that are read and never computed. `reads_all`: each element of such a number
  /// may depend on all of its operands.
  ElementCone(const Numbering& numbering, const std::vector<bool>& free,
              std::function<bool(int32_t)> reads_all)
      : numbering_(numbering), free_(free), reads_all_(std::move(reads_all)) {}

  /// By number of `cone` (ascending, computed numbers): the elements that one element of the
  /// `roots` needs, all roots together. `whole_axis` >= 0: an element is a combination of all
  /// positions along that axis of the first root.
  std::map<int32_t, double> Needed(const std::vector<int32_t>& cone,
                                   const std::vector<int32_t>& roots, int whole_axis);

 private:
  /// Extents of boxes, and how many of each.
  using Boxes = std::map<Shape, double>;

  const std::vector<Shape>& InputExtents(int32_t number, const Shape& extents);

  const Numbering& numbering_;
  const std::vector<bool>& free_;
  const std::function<bool(int32_t)> reads_all_;
  std::map<std::pair<int32_t, Shape>, std::vector<Shape>> inputs_;
};

}  // namespace mendel

#endif  // MENDEL_VERIFIER_REGIONS_ELEMENT_CONE_H_
