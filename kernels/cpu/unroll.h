// Loops over arrays of vectors that must become registers.
#ifndef MENDEL_KERNELS_CPU_UNROLL_H_
#define MENDEL_KERNELS_CPU_UNROLL_H_

#if defined(__clang__)
#define MENDEL_UNROLL _Pragma("unroll")
#else
#define MENDEL_UNROLL _Pragma("GCC unroll 32")
#endif

#endif  // MENDEL_KERNELS_CPU_UNROLL_H_
