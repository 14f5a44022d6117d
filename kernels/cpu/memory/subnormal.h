// Weights without subnormal numbers. Kernels of all instruction sets include this header.
#ifndef MENDEL_KERNELS_CPU_MEMORY_SUBNORMAL_H_
#define MENDEL_KERNELS_CPU_MEMORY_SUBNORMAL_H_

#include <cfloat>

namespace mendel::cpu {

/// Zero in place of a subnormal number. Intel's processors take a hundred times as long to multiply
/// by one, and trained networks have many: the weights of channels that died.
[[gnu::always_inline]] inline float WithoutSubnormal(float weight) {
  return weight < FLT_MIN && weight > -FLT_MIN ? 0.0f : weight;
}

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_MEMORY_SUBNORMAL_H_
