// The kernels of a program, compiled: a module each, so that programs which share kernels share
// what was compiled.
#ifndef MENDEL_KERNELS_CUDA_BACKEND_KERNEL_IMAGES_H_
#define MENDEL_KERNELS_CUDA_BACKEND_KERNEL_IMAGES_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cuda/backend/program.h"

namespace mendel::cuda {

/// The image of a module that the driver's ModuleLoadData takes (a cubin; the fake driver takes the
/// text). Called by several threads at once.
using ImageOf = std::function<absl::StatusOr<std::vector<char>>(const std::string& text)>;

/// One an entry of `program.texts`, made by as many threads as the machine has cores, at most one a
/// text. The error of the first text that has one.
absl::StatusOr<std::vector<std::vector<char>>> CompileKernels(const DeviceProgram& program,
                                                              const ImageOf& image);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_BACKEND_KERNEL_IMAGES_H_
