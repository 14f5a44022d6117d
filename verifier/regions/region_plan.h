// From grids of regions to boxes of outputs: what is probed, and which elements a wrong probe
// stands for.
#ifndef MENDEL_VERIFIER_REGIONS_REGION_PLAN_H_
#define MENDEL_VERIFIER_REGIONS_REGION_PLAN_H_

#include <cstdint>
#include <vector>

#include "graph/types.h"
#include "verifier/regions/region_grid.h"

namespace mendel {

/// A box of one output, decided by the elements of `probe`, which begins where it begins.
struct Region {
  int output = 0;
  Box box;
  Box probe;
  /// By dimension, > 0: positions so far apart are equal or wrong together. 0: the probe contains
  /// the whole extent, or decides only when nothing in it is wrong.
  Shape periods;

  bool Whole() const { return box == probe; }
};

/// The regions of the grid; one that contains everything when the grid does not pay off.
std::vector<Region> RegionsOfGrid(int output, const Shape& shape, const RegionGrid& grid);

/// The region with everything probed that a wrong element of its probe leaves open.
Region Undecided(const Region& region);

/// Disjoint boxes of the elements that are wrong when those of the probe marked in `differs`
/// (row-major) are. The probe must be the whole box along dimensions without a period.
std::vector<Box> WrongBoxes(const Region& region, const std::vector<bool>& differs);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_REGIONS_REGION_PLAN_H_
