// A program on a device: weights uploaded once, one captured graph replayed a run.
#ifndef MENDEL_KERNELS_CUDA_BACKEND_EXECUTABLE_H_
#define MENDEL_KERNELS_CUDA_BACKEND_EXECUTABLE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/backend/kernel_images.h"
#include "kernels/cuda/backend/program.h"
#include "kernels/cuda/driver_table/driver.h"
#include "runtime/backend.h"

namespace mendel::cuda {

/// Runs `program` on device 0 of `driver`, which must outlive the result. All memory, events and
/// the graph are made here; a run allocates nothing and waits once, for its results: copy in,
/// launches and copy out are one graph on a stream of its own. Errors are Internal with the
/// driver's text, ResourceExhausted where memory ran out; nothing is kept then.
absl::StatusOr<std::unique_ptr<Executable>> MakeExecutable(const Driver& driver,
                                                           DeviceProgram program,
                                                           const ImageOf& image);

/// The same of the fastest of `orders` (LowerInOrders), by a few interleaved replays on inputs of
/// zeros: a later one must win over the best so far by more than such times repeat. They share
/// kernels and constants, and what loses is given back. Where any but the first fails on a device
/// that stays usable, it is left out; the first step reports that with the reason, and the order
/// that is taken.
absl::StatusOr<std::unique_ptr<Executable>> MakeFastest(const Driver& driver,
                                                        std::vector<DeviceProgram> orders,
                                                        const ImageOf& image);

/// Retains the primary context of device 0 for the life of the process. Executables retain it for
/// as long as they live, so that without this it would be destroyed between one and the next, with
/// what libraries keep in it, and made anew. Errors are Internal with the driver's text,
/// ResourceExhausted where memory ran out.
absl::Status KeepPrimaryContext(const Driver& driver);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_BACKEND_EXECUTABLE_H_
