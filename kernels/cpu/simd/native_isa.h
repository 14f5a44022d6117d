// The instruction set that native kernels may use. The limit of oneDNN (DNNL_MAX_CPU_ISA) applies
// to them too.
#ifndef MENDEL_KERNELS_CPU_SIMD_NATIVE_ISA_H_
#define MENDEL_KERNELS_CPU_SIMD_NATIVE_ISA_H_

#include <cstdint>

namespace mendel::cpu {

enum class NativeIsa : uint8_t { kNone, kAvx2, kAvx512 };

/// True when this machine has the instructions (those of kNone always), whatever oneDNN is allowed.
/// Thread-safe.
bool MachineHas(NativeIsa isa);

/// The widest; kAvx2 includes FMA, kAvx512 the subsets F, BW, DQ and VL. Thread-safe.
NativeIsa NativeIsaHere();

/// Returns the kernel's variant for NativeIsaHere(); null when there is none.
template <class Isa>
const Isa* NativeKernelsHere(const Isa& (*avx2)(), const Isa& (*avx512)()) {
  const NativeIsa isa = NativeIsaHere();
  if (isa == NativeIsa::kNone) return nullptr;
  return isa == NativeIsa::kAvx512 ? &avx512() : &avx2();
}

/// Returns the variant for NativeIsaHere() of a function that each_isa.inc has compiled three
/// times.
template <class T>
T ForIsa(T baseline, T avx2, T avx512) {
  const NativeIsa isa = NativeIsaHere();
  return isa == NativeIsa::kAvx512 ? avx512 : isa == NativeIsa::kAvx2 ? avx2 : baseline;
}

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_SIMD_NATIVE_ISA_H_
