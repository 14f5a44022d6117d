// Packed weights that executables have in common are kept once: a search compiles the same layers many times.
#ifndef MENDEL_KERNELS_CPU_SHARED_BYTES_H_
#define MENDEL_KERNELS_CPU_SHARED_BYTES_H_

#include <memory>

#include "kernels/cpu/program.h"

namespace mendel::cpu {

/// `fresh`, or bytes equal to it that some executable still holds. The result must not be modified. Thread-safe.
std::shared_ptr<const AlignedBytes> Share(std::shared_ptr<AlignedBytes> fresh);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_SHARED_BYTES_H_
