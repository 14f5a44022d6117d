#include "kernels/cuda/fusion/preamble.h"

#include <cmath>
#include <cstdio>
#include <limits>

#include "base/check.h"
#include "base/status.h"
#include "kernels/cuda/emit/number_text.h"

namespace mendel::cuda {
namespace {

constexpr std::string_view kBegin = R"(#ifndef MENDEL_TEXT
#define MENDEL_TEXT
extern __shared__ __align__(16) unsigned char mendel_shared[];
#define MENDEL_HERE static __device__ __forceinline__
// Says to what checks the text that shared memory from here on is read later than after the next barrier.
#ifndef MENDEL_KEPT
#define MENDEL_KEPT(memory)
#endif

namespace mendel_text {

// What one vector access moves.
template <class T, int N>
struct alignas(sizeof(T) * N) Pack {
  T v[N];
};

)";

constexpr std::string_view kIntegers = R"(
// Integers are computed in 64 bits and wrap.
template <class T>
struct Integer {
  typedef T Stored;
  typedef long long Real;
  MENDEL_HERE Real Load(Stored s) { return s; }
  MENDEL_HERE Stored Store(Real v) { return static_cast<Stored>(v); }
};
typedef Integer<signed char> I8;
typedef Integer<unsigned char> U8;
typedef Integer<int> I32;
typedef Integer<long long> I64;
typedef Integer<short> I16;
typedef Integer<unsigned short> U16;
typedef Integer<unsigned int> U32;
typedef Integer<unsigned long long> U64;
struct Bool {
  typedef unsigned char Stored;
  typedef long long Real;
  MENDEL_HERE Real Load(Stored s) { return s != 0; }
  MENDEL_HERE Stored Store(Real v) { return v != 0; }
};
// A sign, an exponent and kMantissa bits, as graph/float8.cc describes them.
template <int kMantissa, int kBias, int kLargest, int kNan, bool kInfinite>
struct Float8 {
  typedef unsigned char Stored;
  typedef float Real;
  MENDEL_HERE float Power(int exponent) { return __uint_as_float(static_cast<unsigned int>(exponent + 127) << 23); }
  MENDEL_HERE float Load(Stored s) {
    const int magnitude = s & 0x7f, exponent = magnitude >> kMantissa;
    const int fraction = magnitude & ((1 << kMantissa) - 1);
    const int whole = exponent == 0 ? fraction : fraction + (1 << kMantissa);
    const float finite = static_cast<float>(whole) * Power(1 - kBias - kMantissa + (exponent == 0 ? 0 : exponent - 1));
    const bool infinite = kInfinite && magnitude == kLargest + 1;
    if (s == kNan || (magnitude > kLargest && !infinite)) return __uint_as_float(0x7fc00000u);
    const float value = infinite ? __uint_as_float(0x7f800000u) : finite;
    return (s & 0x80) != 0 ? -value : value;
  }
  MENDEL_HERE Stored Store(float v) {
    const unsigned int all = __float_as_uint(v), bits = all & 0x7fffffffu, sign = (all >> 24) & 0x80u;
    if (bits > 0x7f800000u) return kNan;
    unsigned int rounded = 0x80u;
    if (bits < (static_cast<unsigned int>(128 - kBias) << 23)) {
      const float place = Power(24 - kBias - kMantissa);
      rounded = __float_as_uint(__uint_as_float(bits) + place) - __float_as_uint(place);
    } else if (bits < 0x7f800000u) {
      constexpr int kDropped = 23 - kMantissa;
      rounded = ((bits + ((1u << (kDropped - 1)) - 1) + ((bits >> kDropped) & 1u)) >> kDropped) - (static_cast<unsigned int>(127 - kBias) << kMantissa);
    }
    if (rounded > kLargest) return kNan == 0x80 ? kNan : sign | (kInfinite ? kLargest + 1 : kNan);
    return rounded == 0 && kNan == 0x80 ? 0 : sign | rounded;
  }
};
typedef Float8<3, 7, 0x7e, 0x7f, false> F8E4M3FN;
typedef Float8<3, 8, 0x7f, 0x80, false> F8E4M3FNUZ;
typedef Float8<2, 15, 0x7b, 0x7f, true> F8E5M2;
typedef Float8<2, 16, 0x7f, 0x80, false> F8E5M2FNUZ;
struct F64 {
  typedef double Stored;
  typedef double Real;
  MENDEL_HERE Real Load(Stored s) { return s; }
  MENDEL_HERE Stored Store(Real v) { return v; }
};

)";

constexpr std::string_view kFunctions = R"(
#define MENDEL_FUNCTION(Name, name)                          \
  MENDEL_HERE float Name(float x) { return name##f(x); } \
  MENDEL_HERE double Name(double x) { return name(x); }
MENDEL_FUNCTION(Acos, acos)
MENDEL_FUNCTION(Acosh, acosh)
MENDEL_FUNCTION(Asin, asin)
MENDEL_FUNCTION(Asinh, asinh)
MENDEL_FUNCTION(Atan, atan)
MENDEL_FUNCTION(Ceil, ceil)
MENDEL_FUNCTION(Cos, cos)
MENDEL_FUNCTION(Cosh, cosh)
MENDEL_FUNCTION(Erf, erf)
MENDEL_FUNCTION(Erfc, erfc)
MENDEL_FUNCTION(Exp, exp)
MENDEL_FUNCTION(Expm1, expm1)
MENDEL_FUNCTION(Abs, fabs)
MENDEL_FUNCTION(Floor, floor)
MENDEL_FUNCTION(Log, log)
MENDEL_FUNCTION(Log1p, log1p)
MENDEL_FUNCTION(Rint, rint)
MENDEL_FUNCTION(Sin, sin)
MENDEL_FUNCTION(Sinh, sinh)
MENDEL_FUNCTION(Sqrt, sqrt)
MENDEL_FUNCTION(Tan, tan)
MENDEL_FUNCTION(Tanh, tanh)
MENDEL_FUNCTION(Atanh, atanh)

typedef unsigned long long Word;
MENDEL_HERE long long ShiftLeft(long long x, long long bits) { return static_cast<Word>(bits) < 64 ? static_cast<long long>(static_cast<Word>(x) << bits) : 0; }
MENDEL_HERE long long ShiftRight(long long x, long long bits) { return x >> (static_cast<Word>(bits) < 64 ? bits : 63); }
MENDEL_HERE long long ShiftWordRight(long long x, long long bits) { return static_cast<Word>(bits) < 64 ? static_cast<long long>(static_cast<Word>(x) >> bits) : 0; }
MENDEL_HERE long long ToWord(double x) { return x != x ? 0ll : x >= 18446744073709551616.0 ? -1ll : x >= 9223372036854775808.0 ? static_cast<long long>(static_cast<Word>(x)) : static_cast<long long>(x); }
template <class T>
MENDEL_HERE T Plus(T a, T b) { return a + b; }
template <class T>
MENDEL_HERE T Minus(T a, T b) { return a - b; }
template <class T>
MENDEL_HERE T Times(T a, T b) { return a * b; }
MENDEL_HERE long long Plus(long long a, long long b) { return static_cast<long long>(static_cast<Word>(a) + static_cast<Word>(b)); }
MENDEL_HERE long long Minus(long long a, long long b) { return static_cast<long long>(static_cast<Word>(a) - static_cast<Word>(b)); }
MENDEL_HERE long long Times(long long a, long long b) { return static_cast<long long>(static_cast<Word>(a) * static_cast<Word>(b)); }
MENDEL_HERE long long Abs(long long a) { return a < 0 ? Minus(0ll, a) : a; }
template <class T>
MENDEL_HERE T Quotient(T a, T b) { return a / b; }
MENDEL_HERE long long Quotient(long long a, long long b) { return b == 0 ? 0 : (b == -1 ? Minus(0ll, a) : a / b); }
MENDEL_HERE float Remainder(float a, float b, bool) { return fmodf(a, b); }
MENDEL_HERE double Remainder(double a, double b, bool) { return fmod(a, b); }
// The sign is the divisor's, or the dividend's as in fmod.
MENDEL_HERE long long Remainder(long long a, long long b, bool as_fmod) {
  if (b == 0 || b == -1) return 0;
  const long long rest = a % b;
  return !as_fmod && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
MENDEL_HERE float Power(float a, float b) { return powf(a, b); }
MENDEL_HERE double Power(double a, double b) { return pow(a, b); }
MENDEL_HERE long long Power(long long base, long long exponent) {
  if (exponent < 0) return base == 1 ? 1 : (base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0);
  long long result = 1;
  for (; exponent != 0; exponent >>= 1, base = Times(base, base)) {
    if (exponent & 1) result = Times(result, base);
  }
  return result;
}
// Not a number wins.
template <class T>
MENDEL_HERE T Max(T a, T b) { return b > a || b != b ? b : a; }
template <class T>
MENDEL_HERE T Min(T a, T b) { return b < a || b != b ? b : a; }
template <class T>
MENDEL_HERE T Clip(T x, T low, T high) {
  const T above = x < low ? low : x;
  return above > high ? high : above;
}
template <class T>
MENDEL_HERE T Relu(T x) { return x > T(0) ? x : (x == x ? T(0) : x); }
template <class T>
MENDEL_HERE T Sign(T x) { return x > T(0) ? T(1) : (x < T(0) ? T(-1) : x); }
template <class T>
MENDEL_HERE T Sigmoid(T x) {
  const T e = Exp(-Abs(x));
  return (x >= T(0) ? T(1) : e) / (T(1) + e);
}
template <class T>
MENDEL_HERE T Softplus(T x) { return Max(x, T(0)) + Log1p(Exp(-Abs(x))); }

struct SumOf {
  template <class T>
  MENDEL_HERE T Of(T a, T b) { return Plus(a, b); }
};
struct ProductOf {
  template <class T>
  MENDEL_HERE T Of(T a, T b) { return Times(a, b); }
};
struct MaxOf {
  template <class T>
  MENDEL_HERE T Of(T a, T b) { return Max(a, b); }
};
struct MinOf {
  template <class T>
  MENDEL_HERE T Of(T a, T b) { return Min(a, b); }
};
// The values of kThreads neighbors combined, for each of them; kThreads a power of two. All threads of the block, a multiple of 32, pass here.
// More than 32 neighbors need an element of shared memory for every warp of the block.
template <class Combine, int kThreads, class T>
MENDEL_HERE T OverThreads(T value) {
  constexpr int kWarp = 32;
#pragma unroll
  for (int width = (kThreads < kWarp ? kThreads : kWarp) / 2; width > 0; width /= 2) value = Combine::Of(value, __shfl_xor_sync(0xffffffffu, value, width));
  if (kThreads <= kWarp) return value;
  T* const shared = reinterpret_cast<T*>(mendel_shared);
  const int thread = static_cast<int>(threadIdx.x), first = thread / kThreads * (kThreads / kWarp);
  __syncthreads();
  if (thread % kWarp == 0) shared[thread / kWarp] = value;
  __syncthreads();
  value = shared[first];
#pragma unroll
  for (int warp = 1; warp < kThreads / kWarp; ++warp) value = Combine::Of(value, shared[first + warp]);
  return value;
}

}  // namespace mendel_text
#endif

)";

}  // namespace

const std::string& PreambleText() {
  static const auto* text =
      new std::string(Cat(kBegin, NumberText(DType::kF32), NumberText(DType::kF16),
                          NumberText(DType::kBF16), kIntegers, kFunctions));
  return *text;
}

std::string_view StorageName(DType dtype) {
  constexpr std::string_view kNames[] = {
      "F32", "F16", "BF16", "F64", "I8",       "U8",         "I32",    "I64",       "Bool",
      "I16", "U16", "U32",  "U64", "F8E4M3FN", "F8E4M3FNUZ", "F8E5M2", "F8E5M2FNUZ"};
  static_assert(std::size(kNames) == kDTypes);
  return kNames[static_cast<size_t>(dtype)];
}

std::string_view RealName(DType dtype) {
  if (dtype == DType::kF64) return "double";
  return IsFloat(dtype) ? "float" : "long long";
}

std::string_view StoredName(DType dtype) {
  constexpr std::string_view kNames[] = {"float",
                                         "unsigned short",
                                         "unsigned short",
                                         "double",
                                         "signed char",
                                         "unsigned char",
                                         "int",
                                         "long long",
                                         "unsigned char",
                                         "short",
                                         "unsigned short",
                                         "unsigned int",
                                         "unsigned long long",
                                         "unsigned char",
                                         "unsigned char",
                                         "unsigned char",
                                         "unsigned char"};
  static_assert(std::size(kNames) == kDTypes);
  return kNames[static_cast<size_t>(dtype)];
}

std::string LiteralOf(DType dtype, int64_t value) {
  if (IsFloat(dtype)) return LiteralOf(dtype, static_cast<double>(value));
  if (value == std::numeric_limits<int64_t>::min()) return "(-9223372036854775807ll - 1)";
  return value < 0 ? Cat("(", value, "ll)") : Cat(value, "ll");
}

std::string LiteralOf(DType dtype, double value) {
  if (!IsFloat(dtype)) {
    MENDEL_CHECK(std::abs(value) < 0x1p63);
    return LiteralOf(dtype, static_cast<int64_t>(value));
  }
  const bool wide = dtype == DType::kF64;
  if (!wide) value = static_cast<double>(static_cast<float>(value));
  if (std::isnan(value))
    return wide ? "__longlong_as_double(0x7ff8000000000000ll)" : "__uint_as_float(0x7fc00000u)";
  if (std::isinf(value)) {
    const std::string infinity =
        wide ? "__longlong_as_double(0x7ff0000000000000ll)" : "__uint_as_float(0x7f800000u)";
    return value < 0 ? Cat("(-", infinity, ")") : infinity;
  }
  char text[48];
  std::snprintf(text, sizeof text, wide ? "%.17g" : "%.9g", value);
  std::string literal = text;
  if (literal.find_first_of(".e") == std::string::npos) literal += ".0";
  if (!wide) literal += "f";
  return std::signbit(value) ? Cat("(", literal, ")") : literal;
}

}  // namespace mendel::cuda
