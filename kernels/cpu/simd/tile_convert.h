// Tiles of small integers as f32 and back, compiled for several instruction sets and chosen when
// the process starts.
#ifndef MENDEL_KERNELS_CPU_SIMD_TILE_CONVERT_H_
#define MENDEL_KERNELS_CPU_SIMD_TILE_CONVERT_H_

#include <cstdint>

#include "graph/types.h"

namespace mendel::cpu {

struct TileConversion {
  DType dtype = DType::kF32;
  /// Integers beyond 2^24 are rounded to nearest even.
  void (*load)(const void* from, float* to, int64_t count) = nullptr;
  /// The numbers are whole and lie in the type's range. For bool they are any numbers. Null: f32,
  /// which needs no conversion.
  void (*store)(const float* from, void* to, int64_t count) = nullptr;
};

/// For NativeIsaHere(). Null where tiles do not hold the type.
const TileConversion* FindTileConversion(DType dtype);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_SIMD_TILE_CONVERT_H_
