#include "kernels/cuda/tiled/chain_places.h"

#include <cstddef>
#include <string>

#include "base/status.h"

namespace mendel::cuda {

void Require(std::string& inside, const std::string& condition) {
  if (!condition.empty()) inside += Cat(inside.empty() ? "" : " && ", condition);
}

void ChainPlaces::Begin(const std::string& tile) {
  Shape tiles;
  for (const KeptAxis& axis : shape_.axes) tiles.push_back(axis.tiles());
  const std::vector<std::string> at = code_.Decode(tile, tiles).at;
  for (size_t d = 0; d < at.size(); ++d) {
    const KeptAxis& axis = shape_.axes[d];
    results_.push_back(code_.LetIndex(Scaled(at[d], axis.tile)));
    kept_.push_back(code_.LetIndex(Added(Scaled(at[d], axis.advance), axis.first)));
  }
}

std::string ChainPlaces::KeptColumn(const Shape& made, const std::string& at,
                                    std::string& inside) const {
  Shape counts, extents;
  for (const KeptAxis& axis : shape_.axes) counts.push_back(axis.count);
  Position place{code_.Decode(at, counts).at};
  for (size_t d = 0; d < counts.size(); ++d) {
    const KeptAxis& axis = shape_.axes[d];
    extents.push_back(made[d == 0 ? 0 : d + 1]);
    place.at[d] = code_.LetIndex(Added(kept_[d], Scaled(place.at[d], axis.step)));
    if (axis.first < 0) Require(inside, Cat(place.at[d], " >= 0"));
    if ((axis.tiles() - 1) * axis.advance + axis.first + (axis.count - 1) * axis.step >=
        axis.input) {
      Require(inside, Cat(place.at[d], " < ", axis.input));
    }
  }
  return code_.LetIndex(FlatOf(extents, place));
}

std::string ChainPlaces::ResultColumn(const std::string& at, std::string& inside) const {
  Shape counts, extents;
  for (const KeptAxis& axis : shape_.axes) {
    counts.push_back(axis.tile);
    extents.push_back(axis.results);
  }
  Position place{code_.Decode(at, counts).at};
  for (size_t d = 0; d < counts.size(); ++d) {
    place.at[d] = code_.LetIndex(Added(results_[d], place.at[d]));
    if (counts[d] * shape_.axes[d].tiles() > extents[d])
      Require(inside, Cat(place.at[d], " < ", extents[d]));
  }
  return code_.LetIndex(FlatOf(extents, place));
}

std::string ChainPlaces::KeptOffset(const Position& position, const std::string& matrix) const {
  Position place;
  Shape counts;
  for (size_t d = 0; d < shape_.axes.size(); ++d) {
    const KeptAxis& axis = shape_.axes[d];
    counts.push_back(axis.count);
    place.at.push_back(
        Divided(Cat("(", position.at[d == 0 ? 0 : d + 1], " - ", kept_[d], ")"), axis.step));
  }
  const std::string channel = Added(position.at[1], Scaled(matrix, -shape_.depth));
  return Added(Scaled(channel, shape_.pitch), FlatOf(counts, place));
}

}  // namespace mendel::cuda
