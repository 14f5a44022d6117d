#include "kernels/cpu/simd/tile_math.h"

#include <cmath>
#include <cstdint>

namespace mendel::cpu {
namespace {

#define MENDEL_EACH_ISA "kernels/cpu/simd/tile_math.inc"
#include "kernels/cpu/simd/each_isa.inc"

}  // namespace

std::span<const TileEntry> TileFunctions(NativeIsa isa) {
  if (isa == NativeIsa::kNone) return baseline::kEntries;
  return isa == NativeIsa::kAvx2 ? std::span<const TileEntry>(avx2::kEntries) : avx512::kEntries;
}

TileFunction FindTileFunction(std::string_view name) {
  static const std::span<const TileEntry> entries = TileFunctions(NativeIsaHere());
  for (const TileEntry& entry : entries) {
    if (entry.name == name) return entry.function;
  }
  return nullptr;
}

}  // namespace mendel::cpu
