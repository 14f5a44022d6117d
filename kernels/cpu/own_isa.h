// Which instructions own kernels may use: those of the machine that oneDNN is allowed, too (DNNL_MAX_CPU_ISA).
#ifndef MENDEL_KERNELS_CPU_OWN_ISA_H_
#define MENDEL_KERNELS_CPU_OWN_ISA_H_

#include <cstdint>

namespace mendel::cpu {

enum class OwnIsa : uint8_t { kNone, kAvx2, kAvx512 };

/// Whether this machine has the instructions (those of kNone always), whatever oneDNN is allowed. Thread-safe.
bool MachineHas(OwnIsa isa);

/// The widest; kAvx2 includes FMA, kAvx512 the subsets F, BW, DQ and VL. Thread-safe.
OwnIsa OwnIsaHere();

/// Of a kernel's two forms the one for OwnIsaHere(); null: neither.
template <class Isa>
const Isa* OwnKernelsHere(const Isa& (*avx2)(), const Isa& (*avx512)()) {
  const OwnIsa isa = OwnIsaHere();
  if (isa == OwnIsa::kNone) return nullptr;
  return isa == OwnIsa::kAvx512 ? &avx512() : &avx2();
}

/// Of what each_isa.inc has compiled three times the one for OwnIsaHere().
template <class T>
T ForIsa(T baseline, T avx2, T avx512) {
  const OwnIsa isa = OwnIsaHere();
  return isa == OwnIsa::kAvx512 ? avx512 : isa == OwnIsa::kAvx2 ? avx2 : baseline;
}

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_OWN_ISA_H_
