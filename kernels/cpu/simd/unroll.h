// Loops over arrays of vectors that must become registers.
#ifndef MENDEL_KERNELS_CPU_SIMD_UNROLL_H_
#define MENDEL_KERNELS_CPU_SIMD_UNROLL_H_

#include <type_traits>
#include <utility>

#if defined(__clang__)
#define MENDEL_UNROLL _Pragma("unroll")
#else
#define MENDEL_UNROLL _Pragma("GCC unroll 32")
#endif

/// This attribute stands between a lambda's parameters and its body, for Unrolled.
#define MENDEL_UNROLLED __attribute__((always_inline))

namespace mendel::cpu {
namespace internal {

template <class Body, int... kNumbers>
__attribute__((always_inline)) inline void UnrolledOver(const Body& body,
                                                        std::integer_sequence<int, kNumbers...>) {
  (body(std::integral_constant<int, kNumbers>()), ...);
}

}  // namespace internal

/// Calls body(0), ..., body(kCount - 1), each with a number known at compile time. Arrays of
/// vectors that a loop carries along are then registers, even where many places after the loop read
/// them. g++ unrolls marked loops too late for that.
template <int kCount, class Body>
__attribute__((always_inline)) inline void Unrolled(const Body& body) {
  internal::UnrolledOver(body, std::make_integer_sequence<int, kCount>());
}

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_SIMD_UNROLL_H_
