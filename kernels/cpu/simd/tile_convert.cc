#include "kernels/cpu/simd/tile_convert.h"

#include <span>

#include "kernels/cpu/simd/native_isa.h"

namespace mendel::cpu {
namespace {

#define MENDEL_EACH_ISA "kernels/cpu/simd/tile_convert.inc"
#include "kernels/cpu/simd/each_isa.inc"

std::span<const TileConversion> Conversions(NativeIsa isa) {
  if (isa == NativeIsa::kNone) return baseline::kConversions;
  return isa == NativeIsa::kAvx2 ? std::span<const TileConversion>(avx2::kConversions)
                                 : avx512::kConversions;
}

}  // namespace

const TileConversion* FindTileConversion(DType dtype) {
  static const std::span<const TileConversion> conversions = Conversions(NativeIsaHere());
  for (const TileConversion& conversion : conversions) {
    if (conversion.dtype == dtype) return &conversion;
  }
  return nullptr;
}

}  // namespace mendel::cpu
