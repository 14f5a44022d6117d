#include "kernels/cpu/own_isa.h"

#include "oneapi/dnnl/dnnl.hpp"

namespace mendel::cpu {
namespace {

OwnIsa Detect() {
  const auto allowed = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  const auto includes = [&](dnnl::cpu_isa wanted) {
    return (allowed & static_cast<unsigned>(wanted)) == static_cast<unsigned>(wanted);
  };
  if (MachineHas(OwnIsa::kAvx512) && includes(dnnl::cpu_isa::avx512_core)) return OwnIsa::kAvx512;
  return MachineHas(OwnIsa::kAvx2) && includes(dnnl::cpu_isa::avx2) ? OwnIsa::kAvx2 : OwnIsa::kNone;
}

}  // namespace

bool MachineHas(OwnIsa isa) {
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return isa == OwnIsa::kNone || (isa == OwnIsa::kAvx2 ? avx2 : avx512);
}

OwnIsa OwnIsaHere() {
  static const OwnIsa isa = Detect();
  return isa;
}

}  // namespace mendel::cpu
