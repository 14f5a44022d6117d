// Work that is put onto a stream, as a graph that is replayed.
#ifndef MENDEL_KERNELS_CUDA_BACKEND_GRAPH_CAPTURE_H_
#define MENDEL_KERNELS_CUDA_BACKEND_GRAPH_CAPTURE_H_

#include <cstddef>
#include <functional>

#include "absl/status/status.h"
#include "kernels/cuda/backend/launch_order.h"
#include "kernels/cuda/backend/resources.h"
#include "kernels/cuda/driver_table/driver.h"

namespace mendel::cuda {

/// Captures what enqueue(0), ... enqueue(pieces - 1) put onto `stream`, in this order, into
/// `captured`. With `dependencies` (one list a piece) the graph contains these alone, so that other
/// pieces may run side by side; null: each piece waits for the one before. The stream is the only
/// one: a piece may be a library's call, which knows no other. Calls that a capture forbids are
/// forbidden to this thread. Errors are the driver's or the piece's; nothing is kept then, and the
/// stream captures no more.
absl::Status CaptureGraph(const Driver& driver, DriverStream* stream, size_t pieces,
                          const std::function<absl::Status(size_t)>& enqueue,
                          const Dependencies* dependencies, Owned<DriverGraphExec*>& captured);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_BACKEND_GRAPH_CAPTURE_H_
