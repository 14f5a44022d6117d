// Integers that f32 holds exactly, so that kernels for f32 compute with them.
#ifndef MENDEL_KERNELS_CPU_LOWERING_SMALL_INTEGERS_H_
#define MENDEL_KERNELS_CPU_LOWERING_SMALL_INTEGERS_H_

#include <cstdint>

#include "kernels/cpu/lowering/fold.h"

namespace mendel::cpu {

/// True for a Cast, or a sum, difference or product of i32, all of whose integers f32 holds
/// exactly: what elementwise kernels compute in f32 is then what the definition says. A Cast of any
/// i32 to f32 rounds in both.
bool IsOnSmallIntegers(const Graph& graph, Folded& folded, int32_t node);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_LOWERING_SMALL_INTEGERS_H_
