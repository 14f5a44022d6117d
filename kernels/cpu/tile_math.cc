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

bool HasAvx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
bool HasAvx512() {
  return HasAvx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

}  // namespace

std::span<const TileEntry> TileFunctions(std::string_view target) {
  if (target == "baseline") return baseline::kEntries;
  if (target == "avx2" && HasAvx2()) return avx2::kEntries;
  if (target == "avx512" && HasAvx512()) return avx512::kEntries;
  return {};
}

TileFunction FindTileFunction(std::string_view name) {
  static const std::span<const TileEntry> entries =
      HasAvx512() ? TileFunctions("avx512") : (HasAvx2() ? TileFunctions("avx2") : TileFunctions("baseline"));
  for (const TileEntry& entry : entries) {
    if (entry.name == name) return entry.function;
  }
  return nullptr;
}

}  // namespace mendel::cpu
