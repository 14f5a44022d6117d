// These are assumptions about libraries and kernels on a GPU that is not present. Nothing of them
// was measured.
#ifndef MENDEL_KERNELS_CUDA_OFFLINE_ASSUMPTIONS_H_
#define MENDEL_KERNELS_CUDA_OFFLINE_ASSUMPTIONS_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/types.h"
#include "kernels/cuda/backend/library_groups.h"
#include "kernels/cuda/emit/roofline.h"
#include "runtime/numerics.h"

namespace mendel::cuda {

/// Shares of the published peak that kernels reach. Direct kernels: a thread an element, whose
/// products read both factors from near caches. Tiled kernels: factors come from shared memory,
/// some are reused in registers (blocks and their padding count besides). Library calls: by the
/// processors' own arithmetic, and by tensor cores, which memory and power limit further below
/// their peak. Tiled kernels by tensor cores: half as much as libraries, whose instructions and
/// copies are those of the newest architecture.
inline constexpr double kDirectShare = 0.1, kTiledShare = 0.5, kCallShare = 0.75,
                        kTensorCoreShare = 0.5;
inline constexpr double kTiledTensorCoreShare = 0.25;

/// Operations a second, the share included, of a library's call by an algorithm of this name whose
/// factors are read as `factors`: f32 without tensor cores, or as TF32 where the name has "-tf32";
/// f16 and bf16 by tensor cores. 0: the GPU has no such arithmetic.
double CallFlops(const GpuModel& gpu, std::string_view algorithm, DType factors);

/// The same of tiled kernels, by tensor cores of a class or without them.
double TiledFlops(const GpuModel& gpu, std::optional<Numerics> tensor_cores, bool in_double);

/// True if the call is a convolution by tensor cores with its channels first. Those engines read
/// and write channels last, so the library is assumed to convert its inputs and its result: a pass
/// each.
bool ConvertsLayout(const LibraryGroup& call);

/// cuDNN and cuBLASLt by the forms of their calls (FormOf of each), installed or not, and tiled
/// kernels. A node is offered the first algorithm of every kind that its form and the GPU's
/// arithmetic allow: nothing ranks a library's own proposals here. The whole epilogue of a form is
/// assumed to be one call. Such calls cannot be loaded.
std::vector<std::unique_ptr<const CallLibrary>> AssumedLibraries(const GpuModel& gpu);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_OFFLINE_ASSUMPTIONS_H_
