// Integers that f32 holds exactly, so that kernels for f32 compute with them.
#ifndef MENDEL_KERNELS_CPU_LOWERING_SMALL_INTEGERS_H_
#define MENDEL_KERNELS_CPU_LOWERING_SMALL_INTEGERS_H_

#include <cstdint>

#include "kernels/cpu/lowering/fold.h"

namespace mendel::cpu {

/// True for a Cast, or a sum, difference or product of i32, if f32 represents all of its integers
/// exactly. Elementwise kernels in f32 then compute what the definition says. (A Cast from i32 to
/// f32 rounds in kernel and definition alike.)
bool IsOnSmallIntegers(const Graph& graph, Folded& folded, int32_t node);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_LOWERING_SMALL_INTEGERS_H_
