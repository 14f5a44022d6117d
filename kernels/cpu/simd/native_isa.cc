#include "kernels/cpu/simd/native_isa.h"

#include "oneapi/dnnl/dnnl.hpp"

namespace mendel::cpu {
namespace {

NativeIsa Detect() {
  const auto allowed = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  const auto includes = [&](dnnl::cpu_isa wanted) {
    return (allowed & static_cast<unsigned>(wanted)) == static_cast<unsigned>(wanted);
  };
  if (MachineHas(NativeIsa::kAvx512) && includes(dnnl::cpu_isa::avx512_core))
    return NativeIsa::kAvx512;
  return MachineHas(NativeIsa::kAvx2) && includes(dnnl::cpu_isa::avx2) ? NativeIsa::kAvx2
                                                                       : NativeIsa::kNone;
}

}  // namespace

bool MachineHas(NativeIsa isa) {
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl");
  return isa == NativeIsa::kNone || (isa == NativeIsa::kAvx2 ? avx2 : avx512);
}

NativeIsa NativeIsaHere() {
  static const NativeIsa isa = Detect();
  return isa;
}

}  // namespace mendel::cpu
