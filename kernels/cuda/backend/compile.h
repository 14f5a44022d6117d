// Compiles a graph to a program on a device.
#ifndef MENDEL_KERNELS_CUDA_BACKEND_COMPILE_H_
#define MENDEL_KERNELS_CUDA_BACKEND_COMPILE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "kernels/cuda/backend/kernel_images.h"
#include "kernels/cuda/backend/program.h"
#include "kernels/cuda/driver_table/driver.h"
#include "runtime/backend.h"

namespace mendel::cuda {

/// Lowers `graph` (LowerInOrders) and prepares its fastest order (MakeFastest). The kernel name of
/// the first step contains the order. Errors: those of both functions.
absl::StatusOr<std::unique_ptr<Executable>> CompileGraph(const Driver& driver, const Graph& graph,
                                                         const ProgramOptions& options,
                                                         const ImageOf& image);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_BACKEND_COMPILE_H_
