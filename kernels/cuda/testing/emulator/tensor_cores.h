// Products by tensor cores for the emulator, in place of the texts of tiled/tensor_cores.h: the
// same functions without PTX. Part of shim.h, and like it no part of the program.
//
// Operands are rounded as the conversions do, and words have their bits; each sum adds the exact
// products of one instruction and is rounded once. (What GPUs round inside of an instruction is not
// published.)
#ifndef MENDEL_KERNELS_CUDA_TESTING_EMULATOR_TENSOR_CORES_H_
#define MENDEL_KERNELS_CUDA_TESTING_EMULATOR_TENSOR_CORES_H_

#define MENDEL_TF32_PRODUCTS
#define MENDEL_F16_PRODUCTS
#define MENDEL_BF16_PRODUCTS

namespace mendel_shim {

/// Multiplies 16 rows and 8 columns of eight words of `kParts` products each, by all threads of a
/// warp. Thread 4 g + t has a[2 e + h], word t + 4 e of row g + 8 h, and b[e], the same of column
/// g. It has the sums of rows g and g + 8, columns 2 t and 2 t + 1 each. `part(word, p)` is the
/// factor of a word's product p; `sum(c, left, right, count)` is c plus the products of two arrays.
template <int kParts, class Number, class Word, class Part, class Sum>
void MultiplyInWarp(Number& c0, Number& c1, Number& c2, Number& c3, const Word (&a)[4],
                    const Word (&b)[2], Part part, Sum sum) {
  constexpr int kThreads = 32, kProducts = 8 * kParts;
  struct Factors {
    Word a[4], b[2];
  };
  Factors own, all[kThreads];
  for (int e = 0; e < 4; ++e) own.a[e] = a[e];
  for (int e = 0; e < 2; ++e) own.b[e] = b[e];
  mendel_emulator.exchange(&own, sizeof own, all);
  const int lane = static_cast<int>(mendel_emulator.thread.x) % kThreads;
  Number* const sums[] = {&c0, &c1, &c2, &c3};
  for (int k = 0; k < 4; ++k) {
    const int row = lane / 4, column = lane % 4 * 2 + k % 2;
    Number left[kProducts], right[kProducts];
    for (int p = 0; p < kProducts; ++p) {
      const int word = p / kParts;
      left[p] = part(all[row * 4 + word % 4].a[word / 4 * 2 + k / 2], p % kParts);
      right[p] = part(all[column * 4 + word % 4].b[word / 4], p % kParts);
    }
    *sums[k] = sum(*sums[k], left, right, kProducts);
  }
}

/// Rounds to `kKept` explicit bits of a significand, for numbers from 2^kLeast on: to nearest, with
/// ties to even or, as RNA, away from zero.
template <int kKept, int kLeast, bool kAway>
inline float Rounded(float v) {
  if (v != v || v - v != 0.0f || v == 0.0f) return v;
  int exponent = static_cast<int>(__float_as_uint(v) >> 23 & 255) - 127;
  if (exponent < kLeast) exponent = kLeast;
  const double unit = __builtin_ldexp(1.0, exponent - kKept), count = v / unit;  // exact
  const double away = count < 0 ? -floor(0.5 - count) : floor(count + 0.5);
  return static_cast<float>((kAway ? away : rint(count)) * unit);
}
inline unsigned F16Bits(float v) {
  if (v != v) return 0x7fff;
  const unsigned sign = __float_as_uint(v) >> 16 & 0x8000;
  const float rounded = __builtin_fabsf(Rounded<10, -14, false>(v));
  if (rounded >= 65536.0f) return sign | 0x7c00;
  if (rounded < 0x1p-14f) return sign | static_cast<unsigned>(rounded * 0x1p24f);
  return sign | ((__float_as_uint(rounded) >> 13) - (112 << 10));
}
inline float FloatOfF16(unsigned bits) {
  const int exponent = static_cast<int>(bits >> 10 & 31),
            significand = static_cast<int>(bits & 1023);
  const float sign = (bits & 0x8000) != 0 ? -1.0f : 1.0f;
  if (exponent == 31)
    return significand == 0 ? sign * __uint_as_float(0x7f800000u) : __uint_as_float(0x7fc00000u);
  return sign * static_cast<float>(exponent == 0
                                       ? __builtin_ldexp(significand, -24)
                                       : __builtin_ldexp(significand + 1024, exponent - 25));
}
inline unsigned Bf16Bits(float v) {
  return v != v ? 0x7fff : __float_as_uint(Rounded<7, -126, false>(v)) >> 16;
}
inline float FloatOfBf16(unsigned bits) { return __uint_as_float(bits << 16); }
/// Cuts the bits that tensor cores do not read.
inline float CutToTf32(float v) {
  return v != v ? v : __uint_as_float(__float_as_uint(v) & ~0x1fffu);
}

inline float SumOfProducts(float c, const float* left, const float* right, int count) {
  double sum = c;
  for (int p = 0; p < count; ++p) sum += static_cast<double>(left[p]) * right[p];
  return static_cast<float>(sum);
}

}  // namespace mendel_shim

namespace mendel_text {

typedef unsigned F16Pair;
typedef unsigned Bf16Pair;
inline float RoundToTf32(float v) { return mendel_shim::Rounded<10, -126, true>(v); }
inline F16Pair RoundToF16(float first, float second) {
  return mendel_shim::F16Bits(first) | mendel_shim::F16Bits(second) << 16;
}
inline Bf16Pair RoundToBf16(float first, float second) {
  return mendel_shim::Bf16Bits(first) | mendel_shim::Bf16Bits(second) << 16;
}
inline void MultiplyTf32(float& c0, float& c1, float& c2, float& c3, const float (&a)[4],
                         const float (&b)[2]) {
  const auto part = [](float word, int) { return mendel_shim::CutToTf32(word); };
  mendel_shim::MultiplyInWarp<1>(c0, c1, c2, c3, a, b, part, mendel_shim::SumOfProducts);
}
inline void MultiplyF16(float& c0, float& c1, float& c2, float& c3, const F16Pair (&a)[4],
                        const F16Pair (&b)[2]) {
  const auto part = [](F16Pair word, int p) {
    return mendel_shim::FloatOfF16(word >> 16 * p & 0xffff);
  };
  mendel_shim::MultiplyInWarp<2>(c0, c1, c2, c3, a, b, part, mendel_shim::SumOfProducts);
}
inline void MultiplyBf16(float& c0, float& c1, float& c2, float& c3, const Bf16Pair (&a)[4],
                         const Bf16Pair (&b)[2]) {
  const auto part = [](Bf16Pair word, int p) {
    return mendel_shim::FloatOfBf16(word >> 16 * p & 0xffff);
  };
  mendel_shim::MultiplyInWarp<2>(c0, c1, c2, c3, a, b, part, mendel_shim::SumOfProducts);
}

}  // namespace mendel_text

#endif  // MENDEL_KERNELS_CUDA_TESTING_EMULATOR_TENSOR_CORES_H_
