#include "verifier/regions/region_grid.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace mendel {
namespace {

/// Grids of more boxes than this cost more to restrict to than the whole output to evaluate.
constexpr double kMaxBoxes = 4096;
/// Small outputs are not worth restricting to many boxes unless the probes are a small part of
/// them.
constexpr double kFewBoxes = 64;
constexpr double kProbeShare = 0.25;

/// The least common multiple, or `most` when it is no smaller.
int64_t CommonPeriod(int64_t a, int64_t b, int64_t most) {
  const int64_t factor = b / std::gcd(a, b);
  return factor >= most || a > most / factor ? most : std::min(most, a * factor);
}

/// The classes of `structure` with the displacements of `period` positions along `dim`.
std::vector<DisplacementClass> Stretched(const ValueStructure& structure, size_t dim,
                                         int64_t period) {
  std::vector<DisplacementClass> classes;
  for (const DisplacementClass& one : structure.classes) {
    DisplacementClass stretched;
    for (const auto& [source, columns] : one) {
      Step step;
      AddScaled(step, period / structure.periods[dim], columns[dim]);
      Canonicalize(step);
      stretched[source] = {std::move(step)};
    }
    classes.push_back(std::move(stretched));
  }
  return classes;
}

RegionDim CompareAlong(const ValueStructure& f, const ValueStructure& g, size_t dim) {
  const int64_t extent = f.shape[dim];
  RegionDim result;
  result.period = CommonPeriod(f.periods[dim], g.periods[dim], std::max<int64_t>(1, extent));
  std::vector<int64_t> begins = {0};
  for (const ValueStructure* side : {&f, &g}) {
    for (const Break& one : side->breaks[dim]) begins.push_back(one.at);
  }
  std::sort(begins.begin(), begins.end());
  begins.erase(std::unique(begins.begin(), begins.end()), begins.end());
  begins.push_back(extent);
  bool dense = true;
  for (size_t k = 0; k + 1 < begins.size(); ++k)
    dense = dense && begins[k + 1] - begins[k] <= result.period;
  if (!dense) {
    std::vector<DisplacementClass> classes = Stretched(f, dim, result.period);
    const std::vector<DisplacementClass> others = Stretched(g, dim, result.period);
    classes.insert(classes.end(), others.begin(), others.end());
    std::vector<const DisplacementClass*> pointers;
    for (const DisplacementClass& one : classes) pointers.push_back(&one);
    result.groups = GroupsAlong(pointers, 0);
    result.classes = std::max<int64_t>(1, static_cast<int64_t>(result.groups.size()));
  }
  for (size_t k = 0; k + 1 < begins.size(); ++k) {
    const int64_t length = begins[k + 1] - begins[k];
    const bool whole = length <= result.period || length / result.period < result.classes;
    const int64_t probed = whole ? length : result.period * result.classes;
    std::vector<RegionSegment>& list = result.segments;
    const bool joins = probed == length && !list.empty() && list.back().probed == list.back().end;
    if (joins) {
      list.back().end = list.back().probed = begins[k + 1];
    } else {
      list.push_back(
          {begins[k], begins[k + 1], begins[k] + probed, probed < length && result.classes == 1});
    }
  }
  return result;
}

}  // namespace

int64_t RegionDim::Probed() const {
  int64_t sum = 0;
  for (const RegionSegment& segment : segments) sum += segment.probed - segment.begin;
  return sum;
}

double RegionGrid::Boxes() const {
  double boxes = 1;
  for (const RegionDim& dim : dims) boxes *= static_cast<double>(dim.segments.size());
  return boxes;
}

double RegionGrid::Probes() const {
  double probes = 1;
  for (const RegionDim& dim : dims) probes *= static_cast<double>(dim.Probed());
  return probes;
}

RegionGrid CompareStructures(const ValueStructure& f, const ValueStructure& g) {
  RegionGrid grid;
  grid.unknown = f.unknown;
  grid.unknown.insert(g.unknown.begin(), g.unknown.end());
  for (size_t j = 0; j < f.shape.size(); ++j) grid.dims.push_back(CompareAlong(f, g, j));
  return grid;
}

bool PaysOff(const RegionGrid& grid, double volume) {
  const double boxes = grid.Boxes();
  const double probes = grid.Probes();
  return probes < volume && boxes <= kMaxBoxes &&
         (boxes <= kFewBoxes || probes <= kProbeShare * volume);
}

}  // namespace mendel
