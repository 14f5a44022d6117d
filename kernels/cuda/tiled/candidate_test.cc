#include "kernels/cuda/tiled/candidate.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mendel::cuda {
namespace {

using testing::HasSubstr;

std::string Refusal(const std::string& name, int64_t real_bytes = 4) {
  const auto candidate = ParseCandidate(name, real_bytes);
  return candidate.ok() ? "" : std::string(candidate.status().message());
}

TEST(TiledCandidate, HasOneName) {
  const TiledCandidate candidate{{64, 32, 16, 4, 2}, TiledFusion::kPair};
  EXPECT_EQ(CandidateName(candidate), "tile:64x32x16:4x2:pair");
  EXPECT_EQ(*ParseCandidate("tile:64x32x16:4x2:pair", 4), candidate);
  EXPECT_EQ(ParseCandidate("tile:8x128x16:2x4", 4)->tile.columns, 128);
  EXPECT_EQ(ParseCandidate("tile:8x128x16:2x4:rows", 4)->fusion, TiledFusion::kRows);
  const TiledCandidate divided{{64, 32, 16, 4, 2}, TiledFusion::kPair, 12};
  EXPECT_EQ(CandidateName(divided), "tile:64x32x16:4x2:pair:split12");
  EXPECT_EQ(*ParseCandidate("tile:64x32x16:4x2:pair:split12", 4), divided);
  EXPECT_EQ(ParseCandidate("tile:8x128x16:2x4:split2", 4)->parts, 2);
  const TiledCandidate by_tensor_cores{{64, 64, 32, 4, 4}, TiledFusion::kRows, 3, Numerics::kBf16};
  EXPECT_EQ(CandidateName(by_tensor_cores), "tile-bf16:64x64x32:4x4:rows:split3");
  EXPECT_EQ(*ParseCandidate("tile-bf16:64x64x32:4x4:rows:split3", 4), by_tensor_cores);
  const TiledCandidate copying{{64, 64, 16, 4, 4}, TiledFusion::kPair, 3, Numerics::kTf32, true};
  EXPECT_EQ(CandidateName(copying), "tile-tf32:64x64x16:4x4:pair:async:split3");
  EXPECT_EQ(*ParseCandidate("tile-tf32:64x64x16:4x4:pair:async:split3", 4), copying);
  EXPECT_TRUE(ParseCandidate("tile:64x64x16:4x4:async", 4)->asynchronous);
  EXPECT_EQ(ParseCandidate("tile-tf32:32x32x8:2x4", 4)->tensor_cores, Numerics::kTf32);
  EXPECT_EQ(ParseCandidate("tile-f16:32x32x16:2x4", 4)->tensor_cores, Numerics::kF16);
  for (const char* name : {"",
                           "tile",
                           "tile:",
                           "tile:64x64x16",
                           "tile:64x64x16:4x4:",
                           "tile:64x64x16:4x4:triple",
                           "tile:64x64x16:4x4:pair:",
                           "tile:064x64x16:4x4",
                           "tile:64x64:4x4",
                           "tile:64x64x16x2:4x4",
                           "tile:64x64x16:4",
                           "tile:64x64x16:4x4 ",
                           "tile:64x64x16:4x4:split",
                           "tile:64x64x16:4x4:split1",
                           "tile:64x64x16:4x4:split04",
                           "tile:64x64x16:4x4:split4:pair",
                           "tile:64x64x16:4x4:split4:async",
                           "tile:64x64x16:4x4:async:pair",
                           "tile:64x64x16:4x4:async:async",
                           "tile:64x64x16:4x4:async4",
                           "tile:64x64x16:4x4:split2:split2",
                           "tile:64x64x16:4x4:split4x",
                           "Tile:64x64x16:4x4",
                           "tile-:64x64x16:4x4",
                           "tile-f32:64x64x16:4x4",
                           "tile-strict:64x64x16:4x4",
                           "tile-tf32x:64x64x16:4x4",
                           "tile-tf32:064x64x16:4x4",
                           "tile:64x+64x16:4x4",
                           "tile:99999999999x64x16:4x4"}) {
    EXPECT_THAT(Refusal(name), HasSubstr("no name of a tiled kernel")) << name;
  }
}

TEST(TiledCandidate, StaysWithinTheLimits) {
  EXPECT_THAT(Refusal("tile:48x64x16:4x4"), HasSubstr("powers of two"));
  EXPECT_THAT(Refusal("tile:512x64x16:8x8"), HasSubstr("powers of two"));
  EXPECT_THAT(Refusal("tile:64x64x0:4x4"), HasSubstr("powers of two"));
  EXPECT_THAT(Refusal("tile:-64x64x16:4x4"), HasSubstr("powers of two"));
  EXPECT_THAT(Refusal("tile:64x64x16:16x4"), HasSubstr("a thread computes"));
  EXPECT_THAT(Refusal("tile:4x64x16:8x4"), HasSubstr("more than its block"));
  EXPECT_THAT(Refusal("tile:8x8x16:4x4"), HasSubstr("4 threads"));
  EXPECT_THAT(Refusal("tile:128x128x16:2x2"), HasSubstr("4096 threads"));
  EXPECT_THAT(Refusal("tile:128x128x32:8x8"), HasSubstr("shared memory"));
  EXPECT_THAT(Refusal("tile:64x64x32:4x4", 8), HasSubstr("shared memory"));
  EXPECT_EQ(Refusal("tile:64x64x32:4x4", 4), "");
  EXPECT_THAT(Refusal("tile:64x64x64:8x8:pair"), HasSubstr("shared memory"));
  EXPECT_THAT(Refusal("tile:256x256x4:8x8"), HasSubstr("registers"));
  EXPECT_EQ(Refusal("tile:128x128x8:8x8"), "");
  EXPECT_EQ(Refusal("tile:128x128x8:8x8:split64"), "");
  EXPECT_THAT(Refusal("tile:128x128x8:8x8:split65"), HasSubstr("65 parts"));
  EXPECT_THAT(Refusal("tile:128x128x8:8x8:split0"), HasSubstr("0 parts"));
  EXPECT_THAT(Refusal("tile:128x128x8:8x8:split-2"), HasSubstr("-2 parts"));
}

TEST(TiledCandidate, TensorCoresTakeWholeWarpsAndProducts) {
  EXPECT_EQ(Refusal("tile-tf32:64x64x8:4x4"), "");
  EXPECT_THAT(Refusal("tile-tf32:64x64x4:4x4"), HasSubstr("8 products at a time"));
  EXPECT_THAT(Refusal("tile-f16:64x64x8:4x4"), HasSubstr("16 products at a time"));
  EXPECT_THAT(Refusal("tile-bf16:64x64x8:4x4"), HasSubstr("tensor cores of bf16"));
  EXPECT_THAT(Refusal("tile-tf32:64x64x8:1x4"), HasSubstr("2, 4 or 8 rows and columns"));
  EXPECT_THAT(Refusal("tile-tf32:64x64x8:4x1"), HasSubstr("2, 4 or 8 rows and columns"));
  EXPECT_THAT(Refusal("tile-tf32:16x128x8:4x4"), HasSubstr("8 x 4 threads"));
  EXPECT_THAT(Refusal("tile-tf32:128x8x8:2x4"), HasSubstr("8 x 4 threads"));
  EXPECT_THAT(Refusal("tile-tf32:64x64x16:4x4", 8), HasSubstr("multiply f32, f16 and bf16"));
  EXPECT_THAT(Refusal("tile-tf32:128x128x32:8x8"), HasSubstr("shared memory"));
  EXPECT_THAT(Refusal("tile-tf32:64x64x8:4x4:chain"), HasSubstr("chains of products"));
  EXPECT_THAT(Refusal("tile:64x64x8:4x4:chain:async"),
              HasSubstr("chains copy nothing asynchronously"));
}

std::vector<TiledCandidate> Ranked(int64_t batch, int64_t rows, int64_t columns, int64_t depth,
                                   std::vector<TiledFusion> fusions = {}, int multiprocessors = 100,
                                   std::optional<Numerics> tensor_cores = std::nullopt) {
  ProductExtents extents;
  extents.batch = batch;
  extents.rows = rows;
  extents.columns = columns;
  extents.depth = depth;
  return RankedCandidates(extents, 4, fusions, multiprocessors, tensor_cores);
}

TEST(TiledCandidate, RankingFitsTheProduct) {
  const auto large = Ranked(1, 4096, 4096, 4096);
  ASSERT_FALSE(large.empty());
  EXPECT_EQ(large[0].tile.rows, 128);
  EXPECT_EQ(large[0].tile.columns, 128);
  // Few rows: no tile of many; few blocks: smaller ones than where there are enough.
  const auto flat = Ranked(1, 8, 4096, 1024);
  ASSERT_FALSE(flat.empty());
  EXPECT_LE(flat[0].tile.rows, 16);
  const auto small = Ranked(1, 128, 128, 512);
  ASSERT_FALSE(small.empty());
  EXPECT_LT(small[0].tile.rows * small[0].tile.columns, 64 * 64);
  // A depthwise convolution, a product with a vector.
  EXPECT_TRUE(Ranked(512, 1, 3136, 9).size() <= 1);
  EXPECT_TRUE(Ranked(1, 512, 1, 512).empty());
}

TEST(TiledCandidate, SumsAreDividedWhereMultiprocessorsAreIdle) {
  const auto divided = [](const std::vector<TiledCandidate>& ranked) {
    return std::count_if(ranked.begin(), ranked.end(),
                         [](const TiledCandidate& one) { return one.parts > 1; });
  };
  // A convolution of 7 x 7 positions, 512 channels and 4,608 products a sum; a vector times a
  // matrix.
  for (const auto& ranked : {Ranked(1, 512, 49, 4608), Ranked(1, 1, 1000, 2048)}) {
    ASSERT_FALSE(ranked.empty());
    EXPECT_GT(ranked[0].parts, 1);
  }
  // A gated pair and rows of few tokens.
  const auto fused = Ranked(1, 8, 2048, 4096, {TiledFusion::kPair, TiledFusion::kRows}, 132);
  EXPECT_GT(fused[0].parts, 1);
  EXPECT_EQ(fused[0].fusion, TiledFusion::kPair);
  // Enough blocks; sums too short to pay for a launch.
  EXPECT_EQ(divided(Ranked(1, 4096, 4096, 4096)), 0);
  EXPECT_EQ(divided(Ranked(64, 49, 512, 512)), 0);
  EXPECT_EQ(divided(Ranked(1, 64, 64, 64)), 0);
  // A GPU of one multiprocessor is never idle, so that no sum is divided.
  EXPECT_EQ(divided(Ranked(1, 512, 49, 4608, {}, 1)), 0);
}

TEST(TiledCandidate, RankingByTensorCoresIsOfTheirTiles) {
  for (const Numerics numerics : {Numerics::kTf32, Numerics::kF16, Numerics::kBf16}) {
    const auto large = Ranked(1, 4096, 4096, 4096, {}, 132, numerics);
    ASSERT_FALSE(large.empty());
    EXPECT_EQ(large[0].tile.rows * large[0].tile.columns, 128 * 128);
    const auto small =
        Ranked(1, 200, 96, 2048, {TiledFusion::kPair, TiledFusion::kRows}, 132, numerics);
    ASSERT_FALSE(small.empty());
    EXPECT_LT(small[0].tile.rows * small[0].tile.columns, 128 * 128);
    EXPECT_GT(small[0].parts, 1);
    for (const auto& ranked : {large, small}) {
      EXPECT_LE(ranked.size(), kMostCandidates);
      for (const TiledCandidate& candidate : ranked) {
        EXPECT_EQ(candidate.tensor_cores, numerics);
        EXPECT_EQ(Refusal(CandidateName(candidate)), "");
      }
    }
    EXPECT_TRUE(Ranked(1, 512, 1, 512, {}, 100, numerics).empty());
  }
}

TEST(TiledCandidate, RankingIsSmallAndWithinTheLimits) {
  for (const int64_t rows : {1, 3, 17, 64, 200, 1000}) {
    for (const int64_t columns : {8, 33, 256, 3000}) {
      const auto ranked = Ranked(2, rows, columns, 77, {TiledFusion::kPair, TiledFusion::kRows});
      EXPECT_LE(ranked.size(), kMostCandidates);
      int fused = 0;
      for (const TiledCandidate& candidate : ranked) {
        EXPECT_EQ(Refusal(CandidateName(candidate)), "");
        fused += candidate.fusion != TiledFusion::kNone ? 1 : 0;
      }
      EXPECT_LE(fused, 4);
    }
  }
}

}  // namespace
}  // namespace mendel::cuda
