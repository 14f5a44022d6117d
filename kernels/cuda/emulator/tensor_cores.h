// Products by tensor cores for the emulator, in place of the texts of tiled/tensor_cores.h: the same functions without PTX. Part of
// shim.h, and like it no part of the program.
//
// Operands are rounded as the instructions do, each sum adds the exact products of one instruction and is rounded once. (What GPUs
// round inside of an instruction is not published.)
#ifndef MENDEL_KERNELS_CUDA_EMULATOR_TENSOR_CORES_H_
#define MENDEL_KERNELS_CUDA_EMULATOR_TENSOR_CORES_H_

#define MENDEL_TF32_PRODUCTS
#define MENDEL_F16_PRODUCTS
#define MENDEL_BF16_PRODUCTS

namespace mendel_shim {

/// What the threads of a warp multiply together: 16 rows and 8 columns of 4 kOwn products. Thread 4 g + t has a[2 e + h], the
/// factor of row g + 8 h and product t + 4 e, b[e] of column g likewise, and the sums of rows g and g + 8, columns 2 t and 2 t + 1
/// each. `sum(c, left, right, count)` is c and the products of two arrays.
template <class Number, int kOwn, class Sum>
void MultiplyInWarp(Number& c0, Number& c1, Number& c2, Number& c3, const Number (&a)[2 * kOwn], const Number (&b)[kOwn], Sum sum) {
  constexpr int kThreads = 32, kProducts = 4 * kOwn;
  struct Factors {
    Number a[2 * kOwn], b[kOwn];
  };
  Factors own, all[kThreads];
  for (int e = 0; e < 2 * kOwn; ++e) own.a[e] = a[e];
  for (int e = 0; e < kOwn; ++e) own.b[e] = b[e];
  mendel_emulator.exchange(&own, sizeof own, all);
  const int lane = static_cast<int>(mendel_emulator.thread.x) % kThreads;
  Number* const sums[] = {&c0, &c1, &c2, &c3};
  for (int k = 0; k < 4; ++k) {
    const int row = lane / 4, column = lane % 4 * 2 + k % 2;
    Number left[kProducts], right[kProducts];
    for (int p = 0; p < kProducts; ++p) {
      left[p] = all[row * 4 + p % 4].a[p / 4 * 2 + k / 2];
      right[p] = all[column * 4 + p % 4].b[p / 4];
    }
    *sums[k] = sum(*sums[k], left, right, kProducts);
  }
}

/// To `kept` explicit bits of a significand, of at least 2^least: to nearest, ties to even or, as RNA says, away from zero.
template <int kKept, int kLeast, bool kAway>
inline float Rounded(float v) {
  if (v != v || v - v != 0.0f || v == 0.0f) return v;
  int exponent = static_cast<int>(__float_as_uint(v) >> 23 & 255) - 127;
  if (exponent < kLeast) exponent = kLeast;
  const double unit = __builtin_ldexp(1.0, exponent - kKept), count = v / unit;  // exact
  const double away = count < 0 ? -floor(0.5 - count) : floor(count + 0.5);
  return static_cast<float>((kAway ? away : rint(count)) * unit);
}
inline float RoundedToF16(float v) {
  const float rounded = Rounded<10, -14, false>(v);
  const float infinity = __uint_as_float(0x7f800000u);
  return rounded >= 65536.0f ? infinity : rounded <= -65536.0f ? -infinity : rounded;
}
inline float RoundedToBf16(float v) { return Rounded<7, -126, false>(v); }
/// Tensor cores read no more bits.
inline float CutToTf32(float v) { return v != v ? v : __uint_as_float(__float_as_uint(v) & ~0x1fffu); }

template <class Round>
struct SumOfProducts {
  Round round;
  float operator()(float c, const float* left, const float* right, int count) const {
    double sum = c;
    for (int p = 0; p < count; ++p) sum += static_cast<double>(round(left[p])) * round(right[p]);
    return static_cast<float>(sum);
  }
};
template <class Round, int kOwn>
inline void MultiplyRounded(float& c0, float& c1, float& c2, float& c3, const float (&a)[2 * kOwn], const float (&b)[kOwn],
                            Round round) {
  MultiplyInWarp<float, kOwn>(c0, c1, c2, c3, a, b, SumOfProducts<Round>{round});
}

}  // namespace mendel_shim

namespace mendel_text {

inline float RoundToTf32(float v) { return mendel_shim::Rounded<10, -126, true>(v); }
inline void MultiplyTf32(float& c0, float& c1, float& c2, float& c3, const float (&a)[4], const float (&b)[2]) {
  mendel_shim::MultiplyRounded<float (*)(float), 2>(c0, c1, c2, c3, a, b, mendel_shim::CutToTf32);
}
inline void MultiplyF16(float& c0, float& c1, float& c2, float& c3, const float (&a)[8], const float (&b)[4]) {
  mendel_shim::MultiplyRounded<float (*)(float), 4>(c0, c1, c2, c3, a, b, mendel_shim::RoundedToF16);
}
inline void MultiplyBf16(float& c0, float& c1, float& c2, float& c3, const float (&a)[8], const float (&b)[4]) {
  mendel_shim::MultiplyRounded<float (*)(float), 4>(c0, c1, c2, c3, a, b, mendel_shim::RoundedToBf16);
}

}  // namespace mendel_text

#endif  // MENDEL_KERNELS_CUDA_EMULATOR_TENSOR_CORES_H_
