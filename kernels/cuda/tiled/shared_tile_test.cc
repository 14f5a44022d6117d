// Tiles in shared memory: their texts are compiled, and report where words lie.

#include "kernels/cuda/tiled/shared_tile.h"

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "gtest/gtest.h"
#include "kernels/cuda/testing/emulator/device.h"
#include "kernels/cuda/tiled/candidate.h"
#include "kernels/cuda/tiled/tensor_cores.h"

namespace mendel::cuda {
namespace {

using Place = long (*)(int buffer, int word, int at);

/// The tiles of all extents that tensor cores are offered, and of the least and the most words.
std::vector<SharedTile> TilesOfTensorCores() {
  std::set<std::pair<int, int>> extents = {{16, 8}, {16, 64}};
  for (const TensorCores& cores : AllTensorCores()) {
    for (const Tile& tile : OfferedTiles(cores.numerics)) {
      for (const int across : {tile.rows, tile.columns})
        extents.emplace(across, tile.depth / cores.word_products);
    }
  }
  std::vector<SharedTile> tiles;
  for (const auto& [across, words] : extents) {
    tiles.push_back({"left", across, words, 8, false});
    tiles.push_back({"left", across, words, 0, true});
  }
  return tiles;
}

TEST(SharedTile, ReadsAndWritesUseAllBanksOnce) {
  const std::vector<SharedTile> tiles = TilesOfTensorCores();
  std::string text = "static int left[1 << 16];\n";
  for (size_t k = 0; k < tiles.size(); ++k) {
    text += Cat("extern \"C\" long place", k, "(int buffer, int word, int at) { return &",
                tiles[k].At("buffer", "word", "at", "(at % 8)"), " - left; }\n");
  }
  const auto module = EmulatedModule::Compile({}, text);
  ASSERT_TRUE(module.ok()) << module.status();
  for (size_t k = 0; k < tiles.size(); ++k) {
    const SharedTile& tile = tiles[k];
    const auto place = reinterpret_cast<Place>((*module)->Symbol(Cat("place", k)));
    const std::string description =
        Cat(tile.across, " x ", tile.words, tile.swizzled ? " swizzled" : "");
    std::set<long> all;
    for (int buffer = 0; buffer < 2; ++buffer) {
      for (int at = 0; at < tile.across; ++at) {
        for (int word = 0; word < tile.words; ++word) {
          const long here = place(buffer, word, at);
          EXPECT_TRUE(here >= 0 && here < tile.Words() && all.insert(here).second)
              << description << ": " << here;
          // Words are written 16 bytes at a time.
          const int first = tile.swizzled ? word : at;
          const int back = first % 4;
          const long begin =
              place(buffer, word - (tile.swizzled ? back : 0), at - (tile.swizzled ? 0 : back));
          EXPECT_TRUE(begin % 4 == 0 && here == begin + back) << description;
        }
      }
    }
    // A warp reads eight rows or columns of four words each.
    for (int at = 0; at < tile.across; at += 8) {
      for (int word = 0; word < tile.words; word += 4) {
        std::set<long> banks;
        for (int lane = 0; lane < 32; ++lane)
          banks.insert(place(1, word + lane % 4, at + lane / 4) % 32);
        EXPECT_EQ(banks.size(), 32u) << description;
      }
    }
  }
}

}  // namespace
}  // namespace mendel::cuda
