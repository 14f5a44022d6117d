#include "kernels/cuda/tiled/shared_tile.h"

#include <algorithm>

#include "base/status.h"
#include "kernels/cuda/fusion/position.h"
#include "kernels/cuda/tiled/candidate.h"

namespace mendel::cuda {
namespace {

constexpr int kPart = 4;  // words of 16 bytes
constexpr int kBanks = 32;

}  // namespace

int64_t SharedTile::Words() const {
  return WholePacks(int64_t{2} * (swizzled ? across : words) * pitch());
}

std::string SharedTile::At(const std::string& buffer, const std::string& word,
                           const std::string& at, const std::string& eighth) const {
  if (!swizzled)
    return Cat(name, "[(", buffer, " * ", words, " + ", word, ") * ", pitch(), " + ", at, "]");
  // Rows whose words fill the banks once keep the order of their parts, the next ones have them
  // exchanged.
  const std::string exchange = Scaled(Divided(eighth, std::max(1, kBanks / words)), kPart);
  return Cat(name, "[(", buffer, " * ", across, " + ", at, ") * ", words, " + (", word, " ^ ",
             exchange, ")]");
}

}  // namespace mendel::cuda
