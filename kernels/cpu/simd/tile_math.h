// Elementwise functions on short arrays of f32, compiled for several instruction sets and chosen
// when the process starts.
#ifndef MENDEL_KERNELS_CPU_SIMD_TILE_MATH_H_
#define MENDEL_KERNELS_CPU_SIMD_TILE_MATH_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/cpu/simd/native_isa.h"

namespace mendel::cpu {

/// out[i] = f(in[0][i], in[1][i], ...; parameters) for i < count. `out` overlaps no operand.
/// Booleans are 0 and 1. Relative error about 1e-6, absolute near zeros of the function.
using TileFunction = void (*)(float* out, const float* const* in, int64_t count,
                              const float* parameters);

struct TileEntry {
  std::string_view name;  ///< the operator's
  TileFunction function;
};

/// Null when there is none of this name. For NativeIsaHere().
TileFunction FindTileFunction(std::string_view name);
/// Returns all functions compiled for `isa` (kNone: for every machine). The machine need not have
/// it.
std::span<const TileEntry> TileFunctions(NativeIsa isa);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_SIMD_TILE_MATH_H_
