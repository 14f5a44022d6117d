// Two values compared by regions: which positions decide all the others (docs/verifier.md,
// "Regions").
#ifndef MENDEL_VERIFIER_REGIONS_REGION_GRID_H_
#define MENDEL_VERIFIER_REGIONS_REGION_GRID_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "verifier/regions/structure.h"

namespace mendel {

/// Consecutive positions [begin, end) of one dimension, decided by those before `probed`.
struct RegionSegment {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t probed = 0;
  /// Positions a period apart are equal or wrong together; otherwise, where a probe is wrong, the
  /// others must be looked at.
  bool alike = false;
};

/// One dimension of the grid.
struct RegionDim {
  int64_t period = 1;
  /// Displacement classes among the terms of both values: as many periods decide a residue class.
  int64_t classes = 1;
  std::vector<std::map<int32_t, Step>>
      groups;  ///< these classes: the displacement of every source; empty where nothing moves
  std::vector<RegionSegment> segments;  ///< neighbors that are probed whole are joined

  int64_t Probed() const;
};

struct RegionGrid {
  std::vector<RegionDim> dims;
  std::set<std::string> unknown;

  /// Number of regions and of elements probed, as doubles: they may exceed every integer.
  double Boxes() const;
  double Probes() const;
};

/// Both of one shape.
RegionGrid CompareStructures(const ValueStructure& f, const ValueStructure& g);

/// Is a grid worth its boxes for an output of `volume` elements? Else every element is compared.
bool PaysOff(const RegionGrid& grid, double volume);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_REGIONS_REGION_GRID_H_
