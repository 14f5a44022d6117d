#include "graph/view_cut.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace mendel {
namespace {

/// Flat positions of a box, row-major.
std::vector<int64_t> FlatPositions(const Shape& shape, const Box& box) {
  std::vector<int64_t> flat;
  const Shape extents = box.Extents();
  std::vector<int64_t> at(extents.size(), 0);
  do {
    std::vector<int64_t> position = box.begin;
    for (size_t d = 0; d < at.size(); ++d) position[d] += at[d];
    flat.push_back(FlatIndex(shape, position));
  } while (NextIndex(extents, at));
  return flat;
}

Shape RandomFactors(Rng& rng, std::vector<int64_t> primes) {
  Shape shape;
  for (int64_t prime : primes) {
    if (!shape.empty() && rng.Flip()) {
      shape.back() *= prime;
    } else {
      shape.push_back(prime);
    }
    if (rng.Flip(0.1)) shape.push_back(1);
  }
  return shape;
}

TEST(ViewCut, CellsAreTheSameElementsOnBothSides) {
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    Rng rng(seed);
    std::vector<int64_t> primes;
    for (int64_t k = rng.Between(1, 5); k > 0; --k) primes.push_back(rng.Between(2, 3));
    const Shape from = RandomFactors(rng, primes);
    if (rng.Flip(0.3)) std::swap(primes.front(), primes.back());
    const Shape to = RandomFactors(rng, primes);
    Box wanted = Box::Whole(to);
    for (size_t d = 0; d < to.size(); ++d) {
      wanted.begin[d] = rng.Between(0, to[d] - 1);
      wanted.end[d] = rng.Between(wanted.begin[d] + 1, to[d]);
    }
    const ViewCut cut = CutView(from, to, wanted);
    ASSERT_EQ(Intersect(cut.covered, wanted), wanted) << "seed " << seed;
    Shape grid;
    for (const auto& dim : cut.ranges) grid.push_back(static_cast<int64_t>(dim.size()));
    std::vector<int64_t> at(grid.size(), 0);
    int64_t covered = 0;
    for (const Box& cell : cut.cells) {
      Box target = wanted;
      for (size_t d = 0; d < to.size(); ++d) {
        std::tie(target.begin[d], target.end[d]) = cut.ranges[d][static_cast<size_t>(at[d])];
      }
      ASSERT_EQ(FlatPositions(from, cell), FlatPositions(to, target))
          << "seed " << seed << " " << ShapeString(from) << " as " << ShapeString(to);
      covered += target.Volume();
      NextIndex(grid, at);
    }
    ASSERT_EQ(covered, cut.covered.Volume()) << "seed " << seed;
  }
}

TEST(ViewCut, CutsMergedAndSplitDimensionsExactly) {
  const ViewCut merged = CutView({4, 6}, {24}, {{5}, {14}});
  EXPECT_EQ(merged.covered, (Box{{5}, {14}}));
  EXPECT_EQ(merged.cells.size(), 3u);
  const ViewCut split = CutView({24}, {4, 6}, {{1, 2}, {3, 4}});
  EXPECT_EQ(split.covered, (Box{{1, 2}, {3, 4}}));
  EXPECT_EQ(split.cells.size(), 2u);
}

TEST(ViewCut, TakesAllOfDimensionsWithoutCommonFactors) {
  EXPECT_EQ(CutView({7, 3, 5}, {7, 5, 3}, {{2, 1, 1}, {3, 2, 2}}).covered,
            (Box{{2, 0, 0}, {3, 5, 3}}));
}

}  // namespace
}  // namespace mendel
