#include "verifier/regions/region_plan.h"

#include <algorithm>
#include <span>
#include <utility>

#include "verifier/regions/box_merge.h"

namespace mendel {
namespace {

/// Runs of wrong elements along the last dimension.
std::vector<Box> Runs(const Box& probed, const std::vector<bool>& differs) {
  std::vector<Box> runs;
  const Shape extents = probed.Extents();
  const size_t rank = extents.size();
  const int64_t row = rank == 0 ? 1 : extents.back();
  std::vector<int64_t> at(rank, 0);
  for (int64_t flat = 0; flat < static_cast<int64_t>(differs.size()); flat += row) {
    for (int64_t i = 0; i < row;) {
      int64_t end = i;
      while (end < row && differs[static_cast<size_t>(flat + end)]) ++end;
      if (end == i) {
        ++i;
        continue;
      }
      Box box = probed;
      for (size_t d = 0; d < rank; ++d) {
        box.begin[d] = probed.begin[d] + (d + 1 == rank ? i : at[d]);
        box.end[d] = d + 1 == rank ? probed.begin[d] + end : box.begin[d] + 1;
      }
      runs.push_back(std::move(box));
      i = end;
    }
    if (rank > 1)
      NextIndex(Shape(extents.begin(), extents.end() - 1), std::span(at).first(rank - 1));
  }
  return runs;
}

/// Every box again and again along `dim`, until the region ends.
std::vector<Box> Repeated(const std::vector<Box>& boxes, const Region& region, size_t dim) {
  const int64_t period = region.periods[dim];
  const int64_t begin = region.box.begin[dim];
  const int64_t end = region.box.end[dim];
  std::vector<Box> result;
  for (const Box& box : boxes) {
    if (box.begin[dim] == begin && box.end[dim] == begin + period) {
      result.push_back(box);
      result.back().end[dim] = end;
      continue;
    }
    for (int64_t shift = 0; box.begin[dim] + shift < end; shift += period) {
      Box& copy = result.emplace_back(box);
      copy.begin[dim] += shift;
      copy.end[dim] = std::min(end, box.end[dim] + shift);
    }
  }
  return result;
}

}  // namespace

std::vector<Region> RegionsOfGrid(int output, const Shape& shape, const RegionGrid& grid) {
  std::vector<Region> regions;
  if (!PaysOff(grid, static_cast<double>(NumElements(shape)))) {
    regions.push_back({output, Box::Whole(shape), Box::Whole(shape), Shape(shape.size(), 0)});
    return regions;
  }
  Shape counts;
  for (const RegionDim& dim : grid.dims)
    counts.push_back(static_cast<int64_t>(dim.segments.size()));
  std::vector<int64_t> at(counts.size(), 0);
  do {
    Region region{output, Box::Whole(shape), Box::Whole(shape), Shape(shape.size(), 0)};
    for (size_t d = 0; d < shape.size(); ++d) {
      const RegionSegment& segment = grid.dims[d].segments[static_cast<size_t>(at[d])];
      region.box.begin[d] = region.probe.begin[d] = segment.begin;
      region.box.end[d] = segment.end;
      region.probe.end[d] = segment.probed;
      if (segment.alike) region.periods[d] = grid.dims[d].period;
    }
    regions.push_back(std::move(region));
  } while (NextIndex(counts, at));
  return regions;
}

Region Undecided(const Region& region) {
  Region rest = region;
  for (size_t d = 0; d < region.periods.size(); ++d) {
    if (region.periods[d] == 0) rest.probe.end[d] = region.box.end[d];
  }
  return rest;
}

std::vector<Box> WrongBoxes(const Region& region, const std::vector<bool>& differs) {
  std::vector<Box> boxes = MergeTouching(Runs(region.probe, differs));
  for (size_t d = 0; d < region.periods.size(); ++d) {
    if (region.periods[d] > 0) boxes = Repeated(boxes, region, d);
  }
  return boxes;
}

}  // namespace mendel
