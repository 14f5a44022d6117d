// Elementwise functions on short arrays of f32, compiled for several instruction sets and chosen when the process starts.
#ifndef MENDEL_KERNELS_CPU_TILE_MATH_H_
#define MENDEL_KERNELS_CPU_TILE_MATH_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/cpu/own_isa.h"

namespace mendel::cpu {

/// out[i] = f(in[0][i], in[1][i], ...; parameters) for i < count. `out` overlaps no operand. Booleans are 0 and 1. Relative
/// error about 1e-6, absolute near zeros of the function.
using TileFunction = void (*)(float* out, const float* const* in, int64_t count, const float* parameters);

struct TileEntry {
  std::string_view name;  ///< the operator's
  TileFunction function;
};

/// Null when there is none of this name. For OwnIsaHere().
TileFunction FindTileFunction(std::string_view name);
/// All functions compiled for `isa` (kNone: what every machine runs), which the machine need not have.
std::span<const TileEntry> TileFunctions(OwnIsa isa);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_TILE_MATH_H_
