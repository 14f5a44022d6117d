// Quantization and its inverse as one tile function each instead of one for each of their nodes.
#ifndef MENDEL_KERNELS_CPU_LOWERING_TILE_PEEPHOLE_H_
#define MENDEL_KERNELS_CPU_LOWERING_TILE_PEEPHOLE_H_

#include <map>

#include "kernels/cpu/kernels/elementwise.h"

namespace mendel::cpu {

/// Replaces calls by `Quantize` and `Dequantize`, which compute the very same floats, and drops
/// calls and operands that nothing reads any more. `numbers`: the registers of operands that are
/// one known number.
void FuseQuantization(TileProgram& program, const std::map<int, float>& numbers);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_LOWERING_TILE_PEEPHOLE_H_
