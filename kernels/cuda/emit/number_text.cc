#include "kernels/cuda/emit/number_text.h"

#include <cmath>
#include <cstdio>

#include "base/status.h"
#include "kernels/cuda/emit/expand.h"

namespace mendel::cuda {
namespace {

constexpr std::string_view kF32 = R"(  typedef float Stored;
  static __device__ __forceinline__ Real Load(Stored s) { return s; }
  static __device__ __forceinline__ Stored Store(Real v) { return v; }
)";

/// Text without headers has no such type. A GPU converts in one instruction; elsewhere (the
/// emulator, a host's compiler) integers do the same. PTX 8.x, section cvt: .rn rounds to even and
/// keeps subnormal numbers. sm_75 cannot convert to bf16.
constexpr std::string_view kF16 = R"(  typedef unsigned short Stored;
#ifdef __CUDA_ARCH__
  static __device__ __forceinline__ Real Load(Stored s) {
    Real v;
    asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(s));
    return v;
  }
  static __device__ __forceinline__ Stored Store(Real v) {
    Stored s;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(s) : "f"(v));
    return s;
  }
#else
  static __device__ __forceinline__ Real Load(Stored s) {
    // Scaling by 2^112 moves the exponent's offset, also of denormals.
    const unsigned magnitude = static_cast<unsigned>(s & 0x7fff) << 13;
    const float scaled = __uint_as_float(magnitude) * 5192296858534827628530496329220096.0f;
    const unsigned bits = (s & 0x7c00) == 0x7c00 ? magnitude | 0x7f800000u : __float_as_uint(scaled);
    return __uint_as_float(bits | static_cast<unsigned>(s & 0x8000) << 16);
  }
  static __device__ __forceinline__ Stored Store(Real v) {
    const unsigned bits = __float_as_uint(v);
    const unsigned sign = bits >> 16 & 0x8000;
    const unsigned magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000) return static_cast<Stored>(sign | 0x7e00);
    if (magnitude >= 0x477ff000) return static_cast<Stored>(sign | 0x7c00);  // rounds to infinity
    if (magnitude < 0x38800000) {  // a denormal: adding 0.5 leaves it, rounded, in the lowest bits
      return static_cast<Stored>(sign | (__float_as_uint(__uint_as_float(magnitude) + 0.5f) - 0x3f000000));
    }
    const unsigned even = magnitude >> 13 & 1;
    return static_cast<Stored>(sign | (magnitude - 0x38000000 + 0xfff + even) >> 13);
  }
#endif
)";

constexpr std::string_view kBf16 = R"(  typedef unsigned short Stored;
  static __device__ __forceinline__ Real Load(Stored s) { return __uint_as_float(static_cast<unsigned>(s) << 16); }
  static __device__ __forceinline__ Stored Store(Real v) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    Stored s;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(s) : "f"(v));
    return s;
#else
    const unsigned bits = __float_as_uint(v);
    if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<Stored>(bits >> 16 | 0x40);
    return static_cast<Stored>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
#endif
  }
)";

constexpr std::string_view kNumber = R"(// Elements are stored as $dtype, sums are f32.
struct $name {
  typedef float Real;
$storage  static __device__ __forceinline__ Real Zero() { return 0.0f; }
  static __device__ __forceinline__ Real Relu(Real v) { return v < 0.0f ? 0.0f : v; }
  static __device__ __forceinline__ Real LeakyRelu(Real v, double slope) { return v < 0.0f ? static_cast<float>(slope) * v : v; }
  static __device__ __forceinline__ Real Clip(Real v, double low, double high) {
    const float above = v < static_cast<float>(low) ? static_cast<float>(low) : v;
    return above > static_cast<float>(high) ? static_cast<float>(high) : above;
  }
  static __device__ __forceinline__ Real Sigmoid(Real v) { return 1.0f / (1.0f + expf(-v)); }
  static __device__ __forceinline__ Real Tanh(Real v) { return tanhf(v); }
};
)";

std::string DoubleLiteral(double value) {
  if (std::isinf(value))
    return value < 0 ? "-__longlong_as_double(0x7ff0000000000000ll)"
                     : "__longlong_as_double(0x7ff0000000000000ll)";
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  const std::string literal = text;
  return literal.find_first_of(".en") == std::string::npos ? literal + ".0" : literal;
}

}  // namespace

std::string NumberName(DType dtype) {
  return dtype == DType::kF32 ? "F32" : (dtype == DType::kF16 ? "F16" : "BF16");
}

std::string NumberText(DType dtype) {
  const std::string_view storage =
      dtype == DType::kF32 ? kF32 : (dtype == DType::kF16 ? kF16 : kBf16);
  return Expand(kNumber, {{"dtype", std::string(DTypeName(dtype))},
                          {"name", NumberName(dtype)},
                          {"storage", std::string(storage)}});
}

std::string EpilogueCode(const Correction& correction, const std::vector<std::string>& add_offsets,
                         const std::string& bias_index) {
  std::string code;
  size_t add = 0;
  for (const EpilogueStep& step : correction.epilogue) {
    switch (step.kind) {
      case EpilogueStep::Kind::kBias:
        code += Cat("value = value + Number::Load(bias[", bias_index, "]);\n");
        break;
      case EpilogueStep::Kind::kAdd:
        code += Cat("value = value + Number::Load(add", add, "[", add_offsets[add], "]);\n");
        ++add;
        break;
      case EpilogueStep::Kind::kRelu:
        code += "value = Number::Relu(value);\n";
        break;
      case EpilogueStep::Kind::kLeakyRelu:
        code += Cat("value = Number::LeakyRelu(value, ", DoubleLiteral(step.low), ");\n");
        break;
      case EpilogueStep::Kind::kClip:
        code += Cat("value = Number::Clip(value, ", DoubleLiteral(step.low), ", ",
                    DoubleLiteral(step.high), ");\n");
        break;
      case EpilogueStep::Kind::kSigmoid:
        code += "value = Number::Sigmoid(value);\n";
        break;
      case EpilogueStep::Kind::kTanh:
        code += "value = Number::Tanh(value);\n";
        break;
    }
  }
  return code;
}

}  // namespace mendel::cuda
