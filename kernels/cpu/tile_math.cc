#include "kernels/cpu/tile_math.h"

#include <cmath>
#include <cstdint>

namespace mendel::cpu {
namespace {

namespace baseline {
#include "kernels/cpu/tile_math.inc"
}  // namespace baseline

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
namespace avx2 {
#include "kernels/cpu/tile_math.inc"
}  // namespace avx2
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma"))), apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")
#endif
namespace avx512 {
#include "kernels/cpu/tile_math.inc"
}  // namespace avx512
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

}  // namespace

std::span<const TileEntry> TileFunctions(OwnIsa isa) {
  if (isa == OwnIsa::kNone) return baseline::kEntries;
  return isa == OwnIsa::kAvx2 ? std::span<const TileEntry>(avx2::kEntries) : avx512::kEntries;
}

TileFunction FindTileFunction(std::string_view name) {
  static const std::span<const TileEntry> entries = TileFunctions(OwnIsaHere());
  for (const TileEntry& entry : entries) {
    if (entry.name == name) return entry.function;
  }
  return nullptr;
}

}  // namespace mendel::cpu
